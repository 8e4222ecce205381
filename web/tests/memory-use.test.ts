import assert from "node:assert/strict";
import { test } from "node:test";
import { Catalog } from "../src/series";
import { interval, MemoryUse, wholePercent } from "../src/side-views/memory-use";
import type { Visible } from "../src/side-views/side-view";
import type { Machine } from "../src/topology";
import type { MetricInfo, SourceInfo } from "../src/wire";

const PAIRS = ["pair0.0", "pair0.2", "pair2.0", "pair2.2"];
const node = (id: number) => ({ id, cpus: [id], cores: [], memoryBytes: null });
/** The nodes 0 and 2: numbers and positions differ. */
const machine: Machine = { packages: [], nodes: [node(0), node(2)], distances: [[10, 21], [21, 10]] };

function metric(name: string, unit: string, instances: string[]): MetricInfo {
  return { name, sensor: "access", unit, kind: "counter", scope: "pair", help: "", source: "", resolution_ns: 0, instances };
}

function catalog(...metrics: MetricInfo[]): Catalog {
  return new Catalog({ metrics, formulas: [], absent: [], page_size: 4096 } as unknown as SourceInfo);
}

/** Buckets of 100 ms since 0, with the raw rates of each series. */
function visible(rates: Record<number, number[]>, from = 0, to = 1e9): Visible {
  const columns = new Map(Object.entries(rates).map(([number, values]) => [Number(number), Float64Array.from(values)]));
  const rows = Math.max(0, ...[...columns.values()].map((values) => values.length));
  const x = Float64Array.from({ length: rows }, (_, row) => 50 + 100 * row);
  const track = (series: number) => {
    const mean = columns.get(series);
    return mean && { min: mean, max: mean, mean };
  };
  return { slice: { x, stepMs: 100, raw: false, track }, from, to, at: to };
}

const precise = () => MemoryUse.of(machine, catalog(metric("access.memory", "ns", PAIRS), metric("access.clusters", "count", ["node0", "node2"])));

test("memory time is summed over the visible range, by pair, in seconds", () => {
  const use = precise();
  assert.deepEqual([use?.kind, use?.series()], ["time", [0, 1, 2, 3, 4, 5]]);
  // Half a CPU waits at node 0's own memory; node 2's CPUs wait three times as long for node 0 as for their own.
  const shown = visible({ 0: Array(20).fill(5e8), 1: Array(20).fill(0), 2: Array(20).fill(1.5e9), 3: Array(20).fill(5e8), 4: Array(20).fill(10), 5: Array(20).fill(50) }, 0, 1000);
  const totals = use?.over(shown);
  assert.ok(use && totals);
  assert.equal(totals.quantity, "seconds");
  const rounded = totals.cells.map((row) => row.map((value) => Number(value.toFixed(6))));
  assert.deepEqual(rounded, [[0.5, 0], [1.5, 0.5]], "ten of the twenty buckets");
  assert.ok(Math.abs(totals.all - 2.5) < 1e-9 && Math.abs(totals.highest - 1.5) < 1e-9);
  assert.deepEqual(totals.rows.map(({ near, far, observations }) => [near, far, observations].map((value) => Number(value.toFixed(6)))), [[0.5, 0, 10], [0.5, 1.5, 50]]);
  assert.equal(use.describe(totals, 1, 0), "threads on node 2 waited 1.50 s for memory of node 0: 75 % of their time at memory, between 63 % and 87 %");
  assert.equal(use.describe(totals, 0, 1), "threads on node 0 waited 0 s for memory of node 2: 0 % of their time at memory, between 0 % and 30 %");
});

test("what was not measured is not 0", () => {
  const use = precise();
  const totals = use?.over(visible({ 0: [NaN, NaN], 1: [1e9, NaN], 3: [NaN, 2e9] }));
  assert.ok(use && totals);
  const [[own = 0, other = 0] = [], [far = 0, near = 0] = []] = totals.cells;
  assert.deepEqual([own, far, totals.rows[0]?.near, totals.rows[1]?.far, totals.rows[0]?.observations], [NaN, NaN, NaN, NaN, NaN]);
  assert.ok(Math.abs(other - 0.1) < 1e-9 && Math.abs(near - 0.2) < 1e-9 && Math.abs(totals.all - 0.3) < 1e-9);
  assert.equal(use.describe(totals, 1, 0), "threads on node 2, memory of node 0: not measured in this range");
  assert.equal(use.describe(totals, 1, 1), "threads on node 2 waited 200 ms for memory of node 2: 100 % of their time at memory");
  assert.deepEqual([wholePercent(NaN), wholePercent(0), wholePercent(0.001), wholePercent(0.626)], ["–", "0", "<1", "63"]);
});

test("pages are never shown as time", () => {
  const use = MemoryUse.of(machine, catalog(metric("access.samples", "count", ["node0"]), metric("access.pages", "count", PAIRS)));
  const totals = use?.over(visible({ 1: Array(10).fill(40), 2: Array(10).fill(0), 3: Array(10).fill(1000), 4: Array(10).fill(3000) }));
  assert.ok(use && totals);
  assert.deepEqual([use.kind, totals.quantity, Math.round(totals.all)], ["pages", "count", 4040]);
  assert.equal(use.describe(totals, 1, 1), "threads on node 2 used 3k pages of node 2: 75 % of their pages");
});

test("without samples of instructions there is no use", () => {
  assert.equal(MemoryUse.of(machine, catalog(metric("node.MemFree", "KiB", ["node0", "node2"]))), null);
  assert.equal(MemoryUse.of(machine, catalog(metric("access.memory", "ns", []))), null);
});

test("the sums are computed again for another range or other samples, not for another cursor", () => {
  const use = precise();
  const first = visible({ 0: Array(20).fill(5e8) }, 0, 2000);
  const totals = use?.over(first);
  assert.equal(use?.over({ ...first, at: 3 }), totals);
  assert.equal(use?.over({ ...first, to: 1000 }).all.toFixed(6), "0.500000");
  assert.equal(use?.over(visible({ 0: Array(20).fill(1e8) }, 0, 2000)).all.toFixed(6), "0.200000");
});

test("the interval of a share becomes narrower with more observations, and never leaves 0 to 1", () => {
  assert.deepEqual(interval(0.5, 0), [NaN, NaN]);
  assert.deepEqual(interval(0.5, NaN), [NaN, NaN]);
  assert.deepEqual(interval(0, 2), [0, 1]);
  assert.deepEqual(interval(1, 30), [0.9, 1]);
  for (const share of [0, 0.01, 0.3, 0.5, 0.99, 1]) {
    let before = 2;
    for (let observations = 1; observations < 1e6; observations *= 3) {
      const [low, high] = interval(share, observations);
      assert.ok(low >= 0 && high <= 1 && low <= share && share <= high && high - low <= before, `${share} of ${observations}`);
      before = high - low;
    }
  }
});
