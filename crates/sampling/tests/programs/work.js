// Maps, objects and sorting, until it is killed.
for (;;) {
    const table = new Map();
    for (let i = 0; i < 20000; i++) table.set(Math.floor(Math.random() * 100000), { value: i, name: "n" + i });
    const list = [...table.values()];
    list.sort((a, b) => a.value - b.value);
    let sum = 0;
    for (let k = 0; k < 20000; k++) sum += table.get(k)?.value ?? 0;
    globalThis.sum = sum;
}
