import assert from "node:assert/strict";
import { test } from "node:test";
import { tokenIn } from "../src/connection";
import { keepInside, roundUp, stepFor, zoomed } from "../src/steps";
import { freshView, readView, writeView } from "../src/view";

test("a view can be written to an address and read again", () => {
  const view = { ...freshView(), follow: false, from: 1.7e12, to: 1.7e12 + 500.25, spanMs: 500.25, panels: ["cpu", "m:node.Active(anon)+node.MemFree"], sizes: { cpu: [2, 1] as [number, number], "m:a=b": [1, 3] as [number, number] }, modes: { cpu: "stack" as const }, colour: "memory", nodes: "distances" as const, node: 3, hidden: { cpu: { only: false, lines: ["idle@node1"] }, "m:node.MemFree": { only: true, lines: ["node.MemFree@node2", "node.MemFree@node3"] } }, tables: ["cpu"], search: "mem node2", theme: "dark" as const, processes: { open: true, sort: "-pid", filter: "a & b" }, source: 1, beside: 0, columns: true, at: "phase 2 & more" };
  assert.deepEqual(readView(`#${writeView(view)}`), view);
  assert.deepEqual(readView(writeView({ ...freshView(), spanMs: 300_000 })).spanMs, 300_000);
  assert.equal(writeView(freshView()), "");
});

test("an invalid address gives the default view", () => {
  for (const text of ["#", "#from=5&to=1", "#span=abc", "#from=&to=", "#modes=cpu=evil,=,x", "#source=-1&beside=1.5&at=x", "#nodes=evil", "#node=-1", "#theme=pink", "#sizes=cpu=9x1,cpu=1,x", "#hide=cpu", "#process=x", "#%%%"]) assert.deepEqual(readView(text), freshView());
});

test("the token is found in the fragment, and nothing else is mistaken for one", () => {
  assert.equal(tokenIn("#token=abc"), "abc");
  assert.equal(tokenIn("#AbCdEfGhIjKlMnOpQrStUv_-"), "AbCdEfGhIjKlMnOpQrStUv_-");
  assert.equal(tokenIn("#span=60000"), null);
  assert.equal(tokenIn(""), null);
});

test("a step is round, not below the interval, and has few enough buckets", () => {
  assert.equal(stepFor(60_000, 600, 1), 100);
  assert.equal(stepFor(60_000, 500, 1), 200);
  assert.equal(stepFor(10, 600, 1), 1);
  assert.equal(stepFor(1000, 600, 100), 100);
  for (let length = 1; length < 1e9; length *= 1.7) assert.ok(length / stepFor(length, 640, 1) <= 641);
});

test("ranges stay inside the limits and zoom around the given point", () => {
  assert.deepEqual(keepInside(-10, 40, 0, 100), [0, 50]);
  assert.deepEqual(keepInside(80, 130, 0, 100), [50, 100]);
  assert.deepEqual(keepInside(-10, 400, 0, 100), [0, 100]);
  assert.deepEqual(zoomed(0, 100, 25, 0.5, 1), [12.5, 62.5]);
  assert.deepEqual(zoomed(0, 100, 50, 0.0001, 10), [45, 55]);
});

test("axes end at round numbers above their values", () => {
  assert.deepEqual([0, 0.93, 1.2, 17, 81, 999].map((v) => roundUp(v, 10)), [1, 1, 1.5, 20, 100, 1000]);
  assert.equal(roundUp(33 * 2 ** 30, 2), 40 * 2 ** 30);
});
