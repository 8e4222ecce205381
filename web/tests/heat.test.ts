import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import type { Track } from "../src/frame";
import { byWorst, cellsOf } from "../src/panels/cells";
import { panelOf } from "../src/panels/lines";
import { usualMode } from "../src/panels/panel";
import { Catalog } from "../src/series";
import type { Slice } from "../src/store";

const lines = panelOf(new Catalog(sourceInfo(4, 0)), "m:node.MemUsed")!.lines.slice(0, 3).map((line) => ({ ...line, offset: 0, factor: 1 }));
const track = (min: number[], max = min): Track => ({ min: Float64Array.from(min), max: Float64Array.from(max), mean: Float64Array.from(min) });

function sliceOf(x: number[], tracks: (Track | undefined)[], raw = false): Slice {
  return { x: Float64Array.from(x), stepMs: 10, raw, track: (series) => tracks[lines.findIndex((line) => line.series.number === series)] };
}

const rows = ({ values, columns }: ReturnType<typeof cellsOf>) => lines.map((_, line) => [...values.subarray(line * columns, (line + 1) * columns)]);

test("a cell has the worst value of its samples: the highest, or the lowest where that is bad", () => {
  const slice = sliceOf([5, 15, 25, 35], [track([1, 2, 3, 4], [9, 2, 3, 7]), track([NaN, NaN, 5, NaN]), undefined]);
  const high = cellsOf(lines, slice, 0, 40, 2, "high", 25);
  assert.deepEqual(rows(high), [[9, 7], [NaN, 5], [NaN, NaN]]);
  assert.equal(high.highest, 9);
  assert.deepEqual(rows(cellsOf(lines, slice, 0, 40, 2, "low", 25))[0], [1, 3]);
  const turned = lines.map((line) => ({ ...line, offset: 100, factor: -1 }));
  assert.deepEqual([...cellsOf(turned, slice, 0, 40, 2, "high", 25).values.subarray(0, 2)], [99, 97], "100 minus the lowest");
});

test("buckets fill the columns that they cover, samples reach to the next one but over no gap", () => {
  const one = [track([1, 2]), undefined, undefined];
  assert.deepEqual(rows(cellsOf(lines, sliceOf([5, 25], one), 0, 30, 6, "high", 25))[0], [1, 1, NaN, NaN, 2, 2]);
  assert.deepEqual(rows(cellsOf(lines, sliceOf([5, 25], one, true), 0, 30, 6, "high", 25))[0], [NaN, 1, 1, 1, 1, 2]);
  assert.deepEqual(rows(cellsOf(lines, sliceOf([5, 25], one, true), 0, 30, 6, "high", 15))[0], [NaN, 1, NaN, NaN, NaN, 2]);
  assert.deepEqual(rows(cellsOf(lines, sliceOf([], one), 0, 30, 2, "high", 15))[0], [NaN, NaN]);
});

test("lines are sorted by their worst cell, those without values come last", () => {
  const slice = sliceOf([5, 15], [track([3, 3]), undefined, track([1, 8])]);
  assert.deepEqual(byWorst(cellsOf(lines, slice, 0, 20, 2, "high", 25), 3, "high"), [2, 0, 1]);
  const low = sliceOf([5, 15], [track([3, 3]), undefined, track([2, 8])]);
  assert.deepEqual(byWorst(cellsOf(lines, low, 0, 20, 2, "low", 25), 3, "low"), [2, 0, 1]);
});

test("above eight lines of one quantity the usual chart is a heat map", () => {
  const usual = (nodes: number, id: string) => usualMode(panelOf(new Catalog(sourceInfo(nodes, 0)), id)!);
  assert.deepEqual([usual(8, "cpu"), usual(9, "cpu"), usual(128, "cpu")], ["lines", "heat", "heat"]);
  assert.equal(usual(1, "m:cpu.idle"), "heat", "16 CPUs");
  assert.equal(usual(16, "m:cpu.idle+node.MemFree"), "lines", "two quantities have no common scale of colours");
});
