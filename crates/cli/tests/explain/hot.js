// A function that takes all the time: 'node hot.js SECONDS'.
function hotLoop(count) {
    let sum = 0;
    for (let i = 0; i < count; i++) sum = (sum * 31 + i) | 0;
    return sum;
}
const end = Date.now() + Number(process.argv[2]) * 1000;
let total = 0;
while (Date.now() < end) total += hotLoop(100000);
console.log(total, process.env.NODE_OPTIONS);
