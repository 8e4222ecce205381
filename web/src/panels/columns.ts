// From tracks in raw units to lines in shown units.

import type { Track } from "../frame";
import type { Slice } from "../store";
import type { Line } from "./lines";
import type { Drawn } from "./paths";

/** The second source's track for a series, at the same times. */
export type Other = (series: number) => Track | undefined;

/** A line with its minimum and maximum. */
export function drawnOf(line: Line, track: Track): Drawn {
  const { offset, factor } = line;
  // A plain loop, as this runs for every line and every update.
  const of = (values: Float64Array) => {
    const out = new Float64Array(values.length);
    for (let row = 0; row < out.length; row++) out[row] = offset + factor * (values[row] as number);
    return out;
  };
  const mean = of(track.mean);
  if (track.min === track.max) return { min: mean, max: mean, mean, floor: null };
  const [low, high] = factor < 0 ? [track.max, track.min] : [track.min, track.max];
  return { min: of(low), max: of(high), mean, floor: null };
}

/** Stacks lines; hidden ones are left out. */
export function stacked(lines: Line[], slice: Slice, hidden: Set<number>): (Drawn | undefined)[] {
  const floor = new Float64Array(slice.x.length);
  return lines.map((line, at) => {
    const track = slice.track(line.series.number);
    if (!track || hidden.has(at)) return undefined;
    const below = floor.slice();
    const mean = track.mean.map((value, row) => line.offset + line.factor * value + (floor[row] as number));
    mean.forEach((value, row) => {
      if (!Number.isNaN(value)) floor[row] = value;
    });
    return { min: mean, max: mean, mean, floor: below };
  });
}

/** The same line of the second source, as its mean. */
export function besides(line: Line, other: Other | undefined): Drawn | undefined {
  const track = other?.(line.series.number);
  if (!track) return undefined;
  const mean = track.mean.map((value) => line.offset + line.factor * value);
  return { min: mean, max: mean, mean, floor: null };
}

/** The sum of the second source's lines, for comparison with the top of a stack. */
export function totalOf(lines: Line[], other: Other | undefined, hidden: Set<number>): Drawn | undefined {
  let mean: Float64Array | undefined;
  lines.forEach((line, at) => {
    const track = hidden.has(at) ? undefined : other?.(line.series.number);
    if (!track) return;
    const sum = mean ?? new Float64Array(track.mean.length).fill(NaN);
    track.mean.forEach((value, row) => {
      if (!Number.isNaN(value)) sum[row] = ((sum[row] as number) || 0) + line.offset + line.factor * value;
    });
    mean = sum;
  });
  return mean && { min: mean, max: mean, mean, floor: null };
}

const DISTANCES = 15;
const MAX_DISTANCE_MS = 3000;

/** The typical time between two values of a line, which may be read less often than others; 0 if it has few. */
export function distanceOf(x: Float64Array, values: Float64Array): number {
  const distances: number[] = [];
  let later = NaN;
  for (let row = x.length - 1; row >= 0 && distances.length < DISTANCES; row--) {
    if (Number.isNaN(values[row])) continue;
    const time = x[row] as number;
    if (!Number.isNaN(later)) distances.push(later - time);
    later = time;
  }
  if (distances.length < 4) return 0;
  return Math.min(MAX_DISTANCE_MS, distances.sort((a, b) => a - b)[distances.length >> 1] as number);
}

/** Times longer than `gapMs` in which no line has a value. */
export function holes(x: Float64Array, drawn: (Drawn | undefined)[], gapMs: number): [number, number][] {
  // Also the last one: a source that stopped.
  const out: [number, number][] = [];
  const lines = drawn.filter((one) => one !== undefined);
  let last = NaN;
  for (let row = 0; row < x.length; row++) {
    if (lines.every((one) => Number.isNaN(one.mean[row]))) continue;
    const time = x[row] as number;
    if (time - last > gapMs) out.push([last, time]);
    last = time;
  }
  const end = x[x.length - 1] ?? NaN;
  if (end - last > gapMs) out.push([last, end]);
  return out;
}

/** The first and the last row that are drawn between two times: a neighbour outside counts, as a line leads to it. */
export function rowsAround(x: Float64Array, from: number, to: number, gapMs: number): [number, number] {
  let first = 0;
  while (first < x.length && (x[first] as number) < from) first++;
  let last = x.length - 1;
  while (last >= 0 && (x[last] as number) > to) last--;
  const joined = (left: number, right: number) => (x[right] as number) - (x[left] as number) <= gapMs;
  if (first > 0 && first < x.length && joined(first - 1, first)) first--;
  if (last >= 0 && last < x.length - 1 && joined(last, last + 1)) last++;
  return [first, last];
}

/** The lowest and the highest value of a line and of its counterpart in some rows; 0 if they are above and below it. */
export function extremes(drawn: Drawn, beside: Float64Array | undefined, [first, last]: [number, number]): [number, number] {
  let [low, high] = [0, 0];
  for (let row = first; row <= last; row++) {
    if ((drawn.max[row] as number) > high) high = drawn.max[row] as number;
    if ((drawn.min[row] as number) < low) low = drawn.min[row] as number;
    if (beside && (beside[row] as number) > high) high = beside[row] as number;
  }
  return [low, high];
}
