import assert from "node:assert/strict";
import { test } from "node:test";
import { emulated, madeUp, oneNode } from "../e2e/infra/made-up-result";
import { bytes, estimate, flameTree, nodesText, notesOf, pairsOf, percent, projectedText, resultsIn, squareOf, withoutNodes, worthText } from "../src/explained/result";

test("shares, sizes and nodes as text, and absence as absence", () => {
  assert.deepEqual([percent(0.123), percent(0), percent(0.0002), percent(null), percent(undefined), percent(NaN)], ["12.3 %", "0.0 %", "< 0.1 %", null, null, null]);
  assert.deepEqual([bytes(0), bytes(512), bytes(65536), bytes(3.2e9)], [null, "512 B", "64.0 KiB", "3.0 GiB"]);
  assert.equal(estimate({ share: 0.734, low: 0.7, high: 0.761 }), "73.4 % (70 to 76 %)");
  const even = Array.from({ length: 128 }, (_, node) => ({ node, share: 1 / 128 }));
  assert.deepEqual([nodesText([]), nodesText(null), nodesText([{ node: 3, share: 1 }])], [null, null, "node 3"]);
  assert.equal(nodesText([{ node: 0, share: 0.25 }, { node: 2, share: 0.75 }]), "2: 75 %, 0: 25 %");
  assert.equal(nodesText([{ node: 0, share: 0.995 }, { node: 2, share: 0.005 }]), "node 0 (100 %)");
  assert.equal(nodesText(even), "128 nodes, at most 0.8 % (node 0)");
});

test("pairs of nodes become a square of shares", () => {
  const square = squareOf([{ cpu_node: 5, memory_node: 0, time: 1 }, { cpu_node: 0, memory_node: 0, time: 2 }, { cpu_node: 5, memory_node: 0, time: 5 }]);
  assert.deepEqual(square, { nodes: [0, 5], cells: [[0.25, 0], [0.75, 0]], highest: 0.75 });
  assert.equal(squareOf([{ cpu_node: 1, memory_node: 1, time: 5 }]), null, "one node");
  assert.deepEqual([squareOf([]), squareOf(null), squareOf([{ cpu_node: 0, memory_node: 1, time: 0 }])], [null, null, null]);
});

test("where time cannot be told, pages in use are shown, and the reason is said", () => {
  const result = emulated();
  assert.equal(squareOf(pairsOf(result))?.nodes.length, 2);
  assert.match(withoutNodes(result), /emulated/);
  assert.match(withoutNodes(oneNode()), /one node/);
  assert.match(withoutNodes(madeUp()), /No sample at it/);
});

test("a worth that is not known is not 0", () => {
  const [first, second, third] = madeUp().objects;
  assert.ok(first && second && third);
  assert.deepEqual([first, second, third].map(worthText), ["worth at most 21.0 %", "worth not known", "worth not known"]);
});

test("notes say what is missing, and nothing of what is not", () => {
  const notes = notesOf(madeUp()).join("\n");
  assert.match(notes, /20,312 samples by timers in the program, 199 per second/);
  assert.match(notes, /Samples lost.*: 3\./);
  assert.doesNotMatch(notes, /skipped|had gone|had not ended/);
  assert.match(notesOf({ ...madeUp(), complete: false }).join("\n"), /had not ended/);
});

test("what is no result is refused with its name", () => {
  assert.equal(resultsIn([{ name: "a", result: madeUp() }])[0]?.name, "a");
  assert.throws(() => resultsIn({}), /no results/);
  assert.throws(() => resultsIn([{ name: "b.json", result: { ...madeUp(), objects: undefined } }]), /b\.json has no 'objects'/);
  assert.throws(() => resultsIn([{ name: "c.json", result: null }]), /c\.json/);
});

test("another machine is told with what was left out, or why nothing is told", () => {
  const projected = madeUp().projected;
  assert.ok(projected);
  assert.deepEqual(projectedText(projected), [
    "As on node:8 core:8, with its 64 threads spread over the nodes and pages where they are touched first.",
    "Of the time at memory, 86.0 % (82 to 90 %) would be at memory of other nodes.",
    "8.0 % of the time at memory is left out: the first touch of its pages was not seen, or its addresses are not known.",
  ]);
  assert.equal(projectedText({ ...projected, unknown: 0.04 }).length, 2);
  const [how, share] = projectedText({ ...projected, threads: 1, remote_share: null });
  assert.match(how ?? "", /with its thread spread/);
  assert.match(share ?? "", /Too little time/);
  assert.deepEqual(projectedText({ ...projected, why_not: "no page faults were seen" }), ["Not told: no page faults were seen."]);
});

test("stacks of a flame graph become a tree", () => {
  const tree = flameTree({ title: "t", unit: "ns", parts: ["node 0", "node 1"], names: ["main", "f", "g"], stacks: [{ frames: [0, 1], values: [1, 2] }, { frames: [0, 2], values: [4, 0] }, { frames: [0], values: [0, 8] }] });
  const main = tree.inner.get("main");
  assert.ok(main);
  assert.deepEqual([tree.total, tree.values, main.total, main.values], [15, [5, 10], 15, [5, 10]]);
  assert.deepEqual([...main.inner.values()].map(({ name, total, caller }) => [name, total, caller?.name]), [["f", 3, "main"], ["g", 4, "main"]]);
});
