// The samples in the page: a grid that grows at its end while the page follows live data, and slices
// of the past that were fetched.

import type { Frame, Track } from "./frame";

/** Columns that share one column of times, in raw units. */
export interface Slice {
  /** Milliseconds since 1970: the middle of each bucket, or the time of each row. */
  x: Float64Array;
  stepMs: number;
  /** Whether each row is one sample, so that minimum, mean and maximum are equal. */
  raw: boolean;
  track(series: number): Track | undefined;
}

export const EMPTY: Slice = { x: new Float64Array(0), stepMs: 1, raw: false, track: () => undefined };

/** Times in messages are in ns, those in the page in ms. */
export const NS_PER_MS = 1e6;

/** A slice made from the answer to a `fetch`. */
export function sliceOf(frame: Frame): Slice {
  const { header, tracks, times } = frame;
  const track = (series: number) => tracks.get(series);
  const stepMs = (header.step_ns ?? 0) / NS_PER_MS;
  const first = typeof header.first === "number" ? header.first * stepMs : (header.from_ns ?? 0) / NS_PER_MS;
  const x = new Float64Array(header.rows);
  if (header.kind === "raw" && times) {
    const from = (header.from_ns ?? 0) / NS_PER_MS;
    for (let row = 0; row < x.length; row++) x[row] = from + (times[row] ?? 0) / NS_PER_MS;
    return { x, stepMs, raw: true, track };
  }
  for (let row = 0; row < x.length; row++) x[row] = first + (row + 0.5) * stepMs;
  return { x, stepMs, raw: false, track };
}

/** Buckets of one length, counted since 1970, kept for a moving time window. */
export class Grid {
  /** Number of the first bucket kept. */
  private first = 0;
  private rows = 0;
  private capacity = 0;
  private readonly tracks = new Map<number, Track>();

  private readonly slack: number;

  /** `maxBuckets`: the number of buckets that are needed; up to an eighth more are kept. */
  constructor(
    readonly stepMs: number,
    private readonly maxBuckets: number,
  ) {
    this.slack = maxBuckets >> 3;
  }

  /** The time at which the last bucket ends, in ms; 0 while there is none. */
  get end(): number {
    return (this.first + this.rows) * this.stepMs;
  }

  get start(): number {
    return this.first * this.stepMs;
  }

  get length(): number {
    return this.rows;
  }

  /** Adds the buckets of a frame. Existing ones are replaced, a gap stays empty. */
  apply(frame: Frame): void {
    const first = frame.header.first ?? 0;
    const count = Math.min(frame.header.rows, this.maxBuckets);
    const skipped = frame.header.rows - count;
    if (count === 0) return;
    const begin = first + skipped;
    if (this.rows === 0) this.first = begin;
    const end = Math.max(begin + count, this.first + this.rows);
    const low = Math.min(begin, this.first);
    const least = end - this.maxBuckets;
    // Old buckets are dropped several at a time: it moves all others.
    this.moveTo(low >= least - this.slack ? low : least);
    const at = begin - this.first;
    if (at < 0) return; // older than everything that is kept
    this.rows = Math.max(this.rows, at + count);
    this.reserve(this.rows);
    for (const [series, from] of frame.tracks) {
      const to = this.tracks.get(series) ?? this.create(series);
      to.min.set(from.min.subarray(skipped), at);
      to.max.set(from.max.subarray(skipped), at);
      to.mean.set(from.mean.subarray(skipped), at);
    }
  }

  slice(): Slice {
    const { rows, stepMs } = this;
    const x = new Float64Array(rows);
    for (let row = 0; row < rows; row++) x[row] = (this.first + row + 0.5) * stepMs;
    // Each is asked for several times in one drawing.
    const known = new Map<number, Track>();
    const track = (series: number): Track | undefined => {
      const before = known.get(series);
      const whole = before ?? this.tracks.get(series);
      if (before || !whole) return before;
      const part = (values: Float64Array) => values.subarray(0, rows);
      const made = { min: part(whole.min), max: part(whole.max), mean: part(whole.mean) };
      known.set(series, made);
      return made;
    };
    return { x, stepMs, raw: false, track };
  }

  /** Makes `first` the first bucket: drops those before it, or makes room in front. */
  private moveTo(first: number): void {
    const by = first - this.first;
    if (by === 0) return;
    const kept = Math.max(0, this.rows - by);
    this.reserve(kept);
    for (const track of this.tracks.values()) {
      for (const values of [track.min, track.max, track.mean]) {
        if (by > 0) values.copyWithin(0, by, this.rows).fill(NaN, kept);
        else values.copyWithin(-by, 0, this.rows).fill(NaN, 0, -by);
      }
    }
    this.first = first;
    this.rows = kept;
  }

  private create(series: number): Track {
    const column = () => new Float64Array(this.capacity).fill(NaN);
    const track = { min: column(), max: column(), mean: column() };
    this.tracks.set(series, track);
    return track;
  }

  private reserve(rows: number): void {
    if (rows <= this.capacity) return;
    this.capacity = Math.min(Math.max(rows + (rows >> 1), 64), Math.max(this.maxBuckets + this.slack, rows));
    const grown = (values: Float64Array) => {
      const next = new Float64Array(this.capacity).fill(NaN);
      next.set(values);
      return next;
    };
    for (const [series, track] of this.tracks) {
      this.tracks.set(series, { min: grown(track.min), max: grown(track.max), mean: grown(track.mean) });
    }
  }
}

/** The row whose time is nearest to `ms`; -1 if there is none. */
export function rowAt(x: Float64Array, ms: number): number {
  if (x.length === 0) return -1;
  let low = 0;
  let high = x.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((x[middle] ?? 0) < ms) low = middle;
    else high = middle;
  }
  return ms - (x[low] ?? 0) <= (x[high] ?? 0) - ms ? low : high;
}

/**
 * The value at a row. Where nothing was measured in it, the nearer one of its measured neighbours, if these are at most `gapMs`
 * apart: so there is a value wherever a line is drawn.
 */
export function valueNear(x: Float64Array, values: Float64Array, row: number, gapMs: number): number {
  const here = values[row] ?? NaN;
  if (here === here || row < 0) return here;
  const time = x[row] as number;
  const measured = (step: number) => {
    for (let at = row + step; at >= 0 && at < x.length && Math.abs((x[at] as number) - time) <= gapMs; at += step) if (!Number.isNaN(values[at])) return at;
    return -1;
  };
  const [before, after] = [measured(-1), measured(1)];
  if (before < 0 || after < 0 || (x[after] as number) - (x[before] as number) > gapMs) return NaN;
  return values[time - (x[before] as number) <= (x[after] as number) - time ? before : after] ?? NaN;
}

/** The last measured value at or before a row, and not before a time; NaN if there is none. */
export function lastSince(x: Float64Array, values: Float64Array, row: number, from: number): number {
  for (let at = row; at >= 0 && (x[at] as number) >= from; at--) {
    const value = values[at] ?? NaN;
    if (!Number.isNaN(value)) return value;
  }
  return NaN;
}

const MAX_ROWS_BACK = 50;

/** The last measured value at or before a row; the newest bucket is empty until its first sample. */
export function lastMeasured(values: Float64Array, row: number): number {
  for (let at = row; at >= Math.max(0, row - MAX_ROWS_BACK); at--) {
    const value = values[at] ?? NaN;
    if (!Number.isNaN(value)) return value;
  }
  return NaN;
}

export interface Statistics {
  min: number;
  max: number;
  mean: number;
  last: number;
  rows: number;
  /** For a rate per second: its integral over time. */
  sum: number;
}

/** Statistics of the measured buckets between two times. */
export function statistics(slice: Slice, track: Track, from: number, to: number): Statistics {
  const { x, stepMs, raw } = slice;
  const result = { min: NaN, max: NaN, mean: NaN, last: NaN, rows: 0, sum: 0 };
  let [sum, before] = [0, NaN];
  for (let row = 0; row < x.length; row++) {
    const time = x[row] as number;
    const mean = track.mean[row] as number;
    if (Number.isNaN(mean)) continue;
    // A sample covers the time since the previous one, except after a gap.
    const since = time - before;
    const stands = raw ? since || 0 : since < stepMs * 2.6 ? since : stepMs;
    before = time;
    if (time < from || time > to) continue;
    const low = track.min[row] as number;
    const high = track.max[row] as number;
    if (!(result.min <= low)) result.min = low;
    if (!(result.max >= high)) result.max = high;
    result.last = mean;
    result.rows += 1;
    sum += mean;
    result.sum += (mean * stands) / 1000;
  }
  if (result.rows > 0) result.mean = sum / result.rows;
  return result;
}
