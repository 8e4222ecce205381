import assert from "node:assert/strict";
import { test } from "node:test";
import type { Frame, Track } from "../src/frame";
import { Grid, rowAt, sliceOf, statistics, lastSince, valueNear } from "../src/store";
import type { FrameHeader } from "../src/wire";

function track(values: number[]): Track {
  return { min: Float64Array.from(values, (v) => v - 1), max: Float64Array.from(values, (v) => v + 1), mean: Float64Array.from(values) };
}

function frame(first: number, values: number[], series = 1): Frame {
  const header = { id: 1, source: 0, seq: 0, dropped: 0, kind: "grid", first, step_ns: 1e7, rows: values.length, columns: [] } as unknown as FrameHeader;
  return { header, tracks: new Map([[series, track(values)]]), times: null };
}

function means(grid: Grid, series = 1): number[] {
  return [...(grid.slice().track(series)?.mean ?? [])];
}

test("a grid grows, leaves gaps empty and replaces buckets", () => {
  const grid = new Grid(10, 100);
  grid.apply(frame(1000, [1, 2]));
  grid.apply(frame(1004, [5]));
  assert.deepEqual(means(grid), [1, 2, NaN, NaN, 5]);
  grid.apply(frame(1002, [3, 4]));
  assert.deepEqual(means(grid), [1, 2, 3, 4, 5]);
  assert.equal(grid.start, 10_000);
  assert.equal(grid.end, 10_050);
  assert.deepEqual([...grid.slice().x], [10_005, 10_015, 10_025, 10_035, 10_045]);
});

test("a grid keeps the newest buckets, and a series that was added later has no earlier values", () => {
  const grid = new Grid(10, 4);
  for (let at = 0; at < 50; at++) grid.apply(frame(at, [at]));
  assert.deepEqual(means(grid), [46, 47, 48, 49]);
  grid.apply(frame(50, [50], 2));
  assert.deepEqual(means(grid), [47, 48, 49, NaN]);
  assert.deepEqual(means(grid, 2), [NaN, NaN, NaN, 50]);
  grid.apply(frame(100, [1, 2, 3, 4, 5, 6]));
  assert.deepEqual(means(grid), [3, 4, 5, 6]);
  assert.equal(grid.start, 1020);
});

test("older buckets are added in front, those older than the limit are dropped", () => {
  const grid = new Grid(10, 6);
  grid.apply(frame(100, [3, 4]));
  grid.apply(frame(98, [1, 2]));
  assert.deepEqual(means(grid), [1, 2, 3, 4]);
  grid.apply(frame(90, [9]));
  assert.equal(grid.length <= 6, true);
  assert.deepEqual(means(grid).slice(-2), [3, 4]);
});

test("frames in any order give the same result as one array", () => {
  let seed = 7;
  const random = (below: number) => ((seed = (seed * 1103515245 + 12345) % 2 ** 31) / 2 ** 31) * below | 0;
  for (let round = 0; round < 200; round++) {
    const grid = new Grid(1, 1000);
    const naive = new Map<number, number>();
    for (let at = 0; at < 20; at++) {
      const first = 500 + random(200);
      const values = Array.from({ length: 1 + random(30) }, () => random(100));
      grid.apply(frame(first, values));
      values.forEach((value, row) => naive.set(first + row, value));
    }
    const keys = [...naive.keys()];
    const from = Math.min(...keys);
    const wanted = Array.from({ length: Math.max(...keys) - from + 1 }, (_, row) => naive.get(from + row) ?? NaN);
    assert.deepEqual(means(grid), wanted);
  }
});

test("a slice of raw rows has the times of the rows", () => {
  const raw = frame(0, [1, 2]);
  Object.assign(raw.header, { kind: "raw", first: undefined, from_ns: 5e9 });
  raw.times = new Float64Array([0, 2.5e6]);
  assert.deepEqual([...sliceOf(raw).x], [5000, 5002.5]);
  const range = frame(0, [1, 2]);
  Object.assign(range.header, { first: null, from_ns: 5e9 });
  assert.deepEqual([...sliceOf(range).x], [5005, 5015]);
});

test("the nearest row is found, statistics cover the range only", () => {
  const x = Float64Array.of(0, 10, 20, 30);
  assert.equal(rowAt(x, -5), 0);
  assert.equal(rowAt(x, 14), 1);
  assert.equal(rowAt(x, 16), 2);
  assert.equal(rowAt(x, 99), 3);
  assert.equal(rowAt(new Float64Array(0), 1), -1);
  const slice = { x, stepMs: 10, raw: false, track: () => undefined };
  const s = statistics(slice, track([1, 5, NaN, 100]), 0, 25);
  assert.deepEqual({ ...s, sum: s.sum.toFixed(3) }, { min: 0, max: 6, mean: 3, last: 5, rows: 2, sum: "0.060" });
  assert.equal(statistics(slice, track([NaN, NaN, NaN, NaN]), 0, 40).rows, 0);
});

test("the total of a rate covers all time except gaps", () => {
  const x = Float64Array.of(0, 1000, 2000, 3000, 60_000, 61_000);
  const values = track([10, 10, NaN, 10, 10, 10]);
  assert.equal(statistics({ x, stepMs: 1000, raw: false, track: () => undefined }, values, 0, 1e9).sum, 60);
  assert.equal(statistics({ x: x.slice(0, 4), stepMs: 0, raw: true, track: () => undefined }, values, 0, 1e9).sum, 30);
});

test("old buckets are dropped several at a time, and those that are needed are kept", () => {
  const grid = new Grid(10, 80);
  const lengths = new Set<number>();
  for (let at = 0; at < 500; at++) {
    grid.apply(frame(at, [at]));
    if (at >= 100) lengths.add(grid.length);
    const kept = means(grid);
    assert.deepEqual(kept, Array.from({ length: kept.length }, (_, row) => at - kept.length + 1 + row));
  }
  assert.deepEqual([Math.min(...lengths), Math.max(...lengths)], [80, 90]);
});

test("where a line is drawn there is a value, and elsewhere none", () => {
  const x = Float64Array.from({ length: 12 }, (_, row) => row * 10);
  // Measured at 0, 40 and 80; the next one would be at 120.
  const values = Float64Array.from(x, (time) => (time % 40 === 0 && time < 90 ? time : NaN));
  const at = (row: number, gap: number) => valueNear(x, values, row, gap);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 7].map((row) => at(row, 40)), [0, 0, 0, 40, 40, 40, 80]);
  assert.ok(Number.isNaN(at(9, 40)), "behind the last one no line is drawn");
  assert.ok(Number.isNaN(at(2, 30)), "the line is interrupted");
  assert.equal(at(4, 0), 40);
  assert.ok(Number.isNaN(at(-1, 40)) && Number.isNaN(valueNear(new Float64Array(0), new Float64Array(0), -1, 40)));
});

test("the last value of a range is as old as it is, but not older than the range", () => {
  const x = Float64Array.from({ length: 200 }, (_, row) => row);
  const values = Float64Array.from(x, (time) => (time === 20 ? 7 : NaN));
  assert.equal(lastSince(x, values, 199, 0), 7);
  assert.equal(lastSince(x, values, 199, 20), 7);
  assert.ok(Number.isNaN(lastSince(x, values, 199, 21)));
  assert.ok(Number.isNaN(lastSince(x, values, 19, 0)));
  assert.ok(Number.isNaN(lastSince(x, values, -1, 0)));
});
