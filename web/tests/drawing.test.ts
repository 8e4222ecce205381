import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import { chartOf } from "../src/drawing";
import { extent } from "../src/download";
import type { Track } from "../src/frame";
import type { Picture } from "../src/panels/chart";
import { besides, drawnOf, holes, stacked, totalOf } from "../src/panels/columns";
import { panelOf } from "../src/panels/lines";
import { Presence } from "../src/presence";
import { Catalog } from "../src/series";
import { ticks, timeTicks } from "../src/steps";
import type { Slice } from "../src/store";
import type { ObservationState } from "../src/wire";

const track = (...values: number[]): Track => ({ min: Float64Array.from(values, (v) => v - 1), max: Float64Array.from(values, (v) => v + 1), mean: Float64Array.from(values) });
const catalog = new Catalog(sourceInfo(4, 0));
const lines = panelOf(catalog, "m:node.MemUsed")!.lines.slice(0, 2).map((line) => ({ ...line, factor: 1 }));

function sliceOf(x: number[], tracks: Map<number, Track>): Slice {
  return { x: Float64Array.from(x), stepMs: 1000, raw: false, track: (series) => tracks.get(series) };
}

test("a stack sums its lines, missing values leave the sum unchanged, hidden lines are left out", () => {
  const tracks = new Map(lines.map((line, at) => [line.series.number, at === 0 ? track(1, NaN, 3) : track(10, 20, 30)]));
  const slice = sliceOf([0, 1, 2], tracks);
  const [first, second] = stacked(lines, slice, new Set());
  assert.deepEqual([...first!.mean], [1, NaN, 3]);
  assert.deepEqual([...second!.mean], [11, 20, 33]);
  assert.deepEqual([...second!.floor!], [1, 0, 3]);
  const [none, onlyThis] = stacked(lines, slice, new Set([0]));
  assert.equal(none, undefined);
  assert.deepEqual([...onlyThis!.mean], [10, 20, 30]);
});

test("the total of the second source is the sum of its lines", () => {
  const other = (series: number) => (series === lines[0]!.series.number ? track(1, NaN, NaN) : track(10, 20, NaN));
  assert.deepEqual([...totalOf(lines, other, new Set())!.mean], [11, 20, NaN]);
  assert.deepEqual([...totalOf(lines, other, new Set([0]))!.mean], [10, 20, NaN]);
  assert.equal(totalOf(lines, () => undefined, new Set()), undefined);
  assert.equal(besides(lines[0]!, undefined), undefined);
});

test("minimum and maximum are swapped if the factor of a line is negative", () => {
  const turned = drawnOf({ ...lines[0]!, offset: 100, factor: -1 }, track(30));
  assert.deepEqual([turned.min[0], turned.mean[0], turned.max[0]], [69, 70, 71]);
});

test("gaps are times without a value in any line", () => {
  const drawn = [track(1, NaN, NaN, NaN, 5, 6), track(NaN, 2, NaN, NaN, 5, 6)].map((one) => ({ ...one, floor: null }));
  const x = Float64Array.of(0, 1, 2, 3, 4, 5);
  assert.deepEqual(holes(x, drawn, 2), [[1, 4]]);
  assert.deepEqual(holes(x, drawn, 5), []);
  assert.deepEqual(holes(x, [undefined], 1), []);
});

test("an SVG has areas, axes, labels, and text that is escaped", () => {
  const [line] = lines;
  const drawn = drawnOf(line!, track(1, 2, 3));
  const picture: Picture = {
    shown: [{ line: { ...line!, label: '<script>"&' }, colour: "#123456", axis: 0, drawn, other: drawn }], total: drawn,
    axes: [{ quantity: "bytes", min: 0, max: 4 }], x: Float64Array.of(0, 1000, 2000), from: 0, to: 2000, gapMs: 2600, dense: false, marks: [{ time: 1000, text: "a & b" }, { time: 9000, text: "later" }],
  };
  const theme = { dark: false, text: "#000", quiet: "#555", grid: "#eee", panel: "#fff", accent: "#a00" };
  const svg = chartOf(picture, "node 0", { x: 0, y: 0, width: 400, height: 200 }, theme);
  assert.match(svg, /fill="#123456" fill-opacity="0.34"/);
  assert.equal(svg.match(/stroke-dasharray="5 4"/g)?.length, 2, "the other source and its total");
  assert.match(svg, />2 B</);
  assert.match(svg, />a &#38; b</);
  assert.doesNotMatch(svg, /<script|later|NaN|undefined/);
});

test("ticks are round and inside the axis", () => {
  assert.deepEqual(ticks(0, 100, 4, 10), [0, 50, 100]);
  assert.deepEqual(ticks(-3, 3, 6, 10), [-3, -2, -1, 0, 1, 2, 3]);
  assert.deepEqual(ticks(0, 5 * 2 ** 30, 4, 2), [0, 2 ** 31, 2 ** 32]);
  assert.deepEqual(ticks(1, 1, 4, 10), []);
  for (let length = 1; length < 1e9; length *= 3.7) {
    const { times, step } = timeTicks(1.7e12, 1.7e12 + length, 6);
    assert.ok(times.length <= 7 && times.every((time) => time >= 1.7e12 && time <= 1.7e12 + length && time % step < 1e-3), `${length}`);
  }
});

test("the size of a file is predicted, and whether it can hold every sample", () => {
  assert.deepEqual(extent(10, 60_000, 10, 1e6), { rows: 6000, series: 10, bytes: 6000 * 91, whole: true });
  const much = extent(100, 3_600_000, 1, 1e6);
  assert.deepEqual([much.rows, much.whole], [10_000, false]);
  assert.equal(extent(0, 0, 0, 0).rows, 1);
});

test("a series without values has a reason, one with values has none", () => {
  const free = catalog.at("node.MemFree", "node0")!;
  const used = catalog.at("node.MemFree", "node1")!;
  const idle = catalog.at("idle", "node0")!;
  const x = Array.from({ length: 20 }, (_, at) => at * 1000);
  const gone = track(...x.map((at) => (at < 5000 ? 1 : NaN)));
  const tracks = new Map([[free.number, gone], [used.number, track(...x)], [idle.number, track(...x.map(() => NaN))]]);
  const state = { paused: false, sensors: [{ name: "node", on: false }] } as unknown as ObservationState;
  let loading = false;
  const presence = new Presence(catalog, () => state, () => loading);
  presence.look(sliceOf(x, tracks), 0, 20_000, [free.number, used.number, idle.number]);
  assert.equal(presence.why(used), null);
  assert.match(presence.why(free)?.why ?? "", /No data since .*‘node’ is off/);
  assert.deepEqual(presence.why(idle), { why: "No data in this range; sensors off: node.", onlyThis: false, loading: false });
  presence.look(sliceOf(x, tracks), 0, 4000, [free.number, used.number]);
  assert.equal(presence.why(free), null, "it was there then");
  presence.look(sliceOf([], new Map()), 0, 1, [free.number]);
  assert.deepEqual(presence.why(free), { why: "No samples in this range.", onlyThis: false, loading: false });
  // What is still awaited is not absent.
  loading = true;
  presence.look(sliceOf(x, tracks), 0, 20_000, [free.number, used.number, idle.number]);
  assert.deepEqual([free, used, idle].map((one) => presence.why(one)?.loading ?? null), [null, null, true]);
});
