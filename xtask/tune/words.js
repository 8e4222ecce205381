// words.js N: counts N random words with a Map, and sorts them.
let state = 1;
const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
const counts = new Map();
for (let k = 0; k < Number(process.argv[2]); k++) {
    const word = `word${random() >>> 12}`;
    counts.set(word, (counts.get(word) ?? 0) + 1);
}
const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
console.log(counts.size, sorted[0]);
