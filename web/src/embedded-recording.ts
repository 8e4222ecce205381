// A recording that is embedded in the page: its rows or buckets, put into the buckets that a view
// requests.

import { parseFrame, tracksOf, type Frame, type Parsed, type Track } from "./frame";
import { NS_PER_MS } from "./store";
import type { Contained, FrameHeader, Stretch } from "./wire";

/** Returns the bytes of a block of the file. Each block is requested only once. */
export type Block = (at: number) => Promise<ArrayBuffer>;

const MAX_BUCKETS = 65_536;

/** The buckets of an answer, in ns, or in ms if the file contains buckets: integers. */
interface Grid {
  from: number;
  step: number;
  count: number;
}

/** A stretch as read: the start times of its rows and their values. */
interface Piece {
  begin: Float64Array;
  /** How much later a row ends than it starts; 0 for a sample. */
  length: number;
  tracks: Map<number, Track>;
}

export class EmbeddedRecording {
  /** Length of a bucket; 0 if every row is kept. */
  readonly stepMs: number;
  private readonly blocks = new Map<number, Promise<Parsed>>();
  private readonly perStretch: number;

  constructor(
    readonly contained: Contained,
    private readonly block: Block,
  ) {
    this.stepMs = contained.step_ns / NS_PER_MS;
    const { metrics, formulas } = contained.info;
    const series = [...metrics, ...formulas].reduce((sum, one) => sum + one.instances.length, 0);
    this.perStretch = Math.ceil(series / contained.group) + (this.stepMs === 0 ? 1 : 0);
  }

  /** A range in at most `buckets` buckets, or its rows if there are fewer. */
  async range(id: number, series: number[], from: number, to: number, buckets: number): Promise<Frame> {
    const wanted = Math.max(1, Math.min(buckets, MAX_BUCKETS));
    const pieces = await this.pieces(series, from, to);
    const header = this.header(id);
    if (this.stepMs > 0) {
      // A multiple of the file's own buckets, so that none is split.
      const step = this.stepMs * Math.max(1, Math.ceil((to - from) / NS_PER_MS / wanted / this.stepMs));
      const first = Math.floor(from / NS_PER_MS / step);
      const count = Math.min(Math.max(0, Math.ceil(to / NS_PER_MS / step) - first), MAX_BUCKETS);
      const tracks = gather(pieces, series, { from: first * step, step, count });
      return { header: { ...header, first, step_ns: step * NS_PER_MS, rows: count }, tracks, times: null };
    }
    const rows = pieces.reduce((sum, piece) => sum + inside(piece, from, to).length, 0);
    if (rows <= wanted) return rowsOf(header, pieces, series, from, to, rows);
    const step = Math.max(1, Math.ceil((to - from) / wanted));
    const count = Math.ceil((to - from) / step);
    const tracks = gather(pieces, series, { from, step, count }, to);
    return { header: { ...header, from_ns: from, step_ns: step, rows: count }, tracks, times: null };
  }

  /** All buckets of a step since 1970, starting at a time. They are complete, since nothing follows. */
  async grid(id: number, series: number[], from: number, step: number): Promise<Frame> {
    const { from_ns, to_ns } = this.contained;
    const first = Math.floor(Math.max(from, from_ns) / step);
    const count = Math.max(0, Math.min(Math.floor(to_ns / step) + 1 - first, MAX_BUCKETS));
    const pieces = await this.pieces(series, first * step, (first + count) * step);
    const unit = this.stepMs > 0 ? NS_PER_MS : 1;
    const tracks = gather(pieces, series, { from: (first * step) / unit, step: step / unit, count });
    return { header: { ...this.header(id), first, step_ns: step, rows: count }, tracks, times: null };
  }

  private header(id: number): FrameHeader {
    const kind = "grid";
    return { id, source: this.contained.info.id, seq: 0, dropped: 0, kind, rows: 0, columns: [] };
  }

  /** The stretches of the file between two times, with these series. */
  private async pieces(series: number[], from: number, to: number): Promise<Piece[]> {
    const places = this.contained.stretches.map((stretch, at) => ({ stretch, at })).filter(({ stretch }) => stretch.from_ns < to && stretch.to_ns > from);
    return Promise.all(places.map(({ stretch, at }) => this.piece(stretch, at, series)));
  }

  private async piece(stretch: Stretch, at: number, series: number[]): Promise<Piece> {
    const first = this.contained.block + at * this.perStretch;
    const timed = this.stepMs === 0;
    const groups = [...new Set(series.map((number) => Math.floor(number / this.contained.group)))];
    const read = await Promise.all(groups.map((group) => this.parsed(first + group + (timed ? 1 : 0))));
    const wanted = new Set(series);
    const tracks = new Map(read.flatMap((parsed) => [...tracksOf(parsed, (number) => wanted.has(number)).tracks]));
    if (!timed) {
      const begin = new Float64Array(stretch.rows);
      const number = Math.round(stretch.from_ns / NS_PER_MS / this.stepMs);
      for (let row = 0; row < begin.length; row++) begin[row] = (number + row) * this.stepMs;
      return { begin, length: this.stepMs, tracks };
    }
    const times = await this.parsed(first);
    const start = times.header.from_ns ?? 0;
    const begin = (tracksOf(times, () => false).times ?? new Float64Array(0)).map((time) => start + time);
    return { begin, length: 0, tracks };
  }

  private parsed(at: number): Promise<Parsed> {
    let parsed = this.blocks.get(at);
    if (!parsed) {
      parsed = this.block(at).then(parseFrame);
      this.blocks.set(at, parsed);
    }
    return parsed;
  }
}

/** The rows of a piece in `from <= time < to`. */
function inside({ begin }: Piece, from: number, to: number): Float64Array {
  const place = (time: number) => {
    let [low, high] = [0, begin.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((begin[middle] as number) < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return begin.subarray(place(from), place(to));
}

function rowsOf(header: FrameHeader, pieces: Piece[], series: number[], from: number, to: number, rows: number): Frame {
  const times = new Float64Array(rows);
  const tracks = new Map<number, Track>();
  const columns = new Map(series.map((number) => [number, new Float64Array(rows).fill(NaN)] as const));
  let next = 0;
  for (const piece of pieces) {
    const part = inside(piece, from, to);
    const skipped = (part.byteOffset - piece.begin.byteOffset) / part.BYTES_PER_ELEMENT;
    times.set(part.map((time) => time - from), next);
    for (const [number, column] of columns) {
      const values = piece.tracks.get(number)?.mean;
      if (values) column.set(values.subarray(skipped, skipped + part.length), next);
    }
    next += part.length;
  }
  for (const [number, column] of columns) tracks.set(number, { min: column, max: column, mean: column });
  return { header: { ...header, kind: "raw", from_ns: from, rows }, tracks, times };
}

/** Minimum, maximum and mean of each bucket, before `end`. */
function gather(pieces: Piece[], series: number[], grid: Grid, end = Infinity): Map<number, Track> {
  const places = pieces.map((piece) => placesOf(piece, grid, end));
  return new Map(series.map((number) => {
    const column = () => new Float64Array(grid.count).fill(NaN);
    const [track, counts] = [{ min: column(), max: column(), mean: column() }, new Uint32Array(grid.count)];
    pieces.forEach((piece, at) => {
      const from = piece.tracks.get(number);
      if (from) add(track, counts, from, places[at] as Places);
    });
    for (let at = 0; at < grid.count; at++) (track.mean as Float64Array)[at] = (track.mean[at] as number) / (counts[at] as number);
    return [number, track] as const;
  }));
}

/** The first and the last bucket of each row; -1 for none. */
interface Places {
  first: Int32Array;
  last: Int32Array;
}

function placesOf({ begin, length }: Piece, grid: Grid, end: number): Places {
  const [first, last] = [new Int32Array(begin.length), new Int32Array(begin.length)];
  const lastBucket = grid.count - 1;
  for (let row = 0; row < begin.length; row++) {
    const time = begin[row] as number;
    const from = Math.floor((time - grid.from) / grid.step);
    const to = length === 0 ? from : Math.ceil((time + length - grid.from) / grid.step) - 1;
    const none = time >= end || to < 0 || from > lastBucket;
    first[row] = none ? 0 : Math.max(0, from);
    last[row] = none ? -1 : Math.min(lastBucket, to);
  }
  return { first, last };
}

/** `mean` holds sums until they are divided. */
function add(to: Track, counts: Uint32Array, from: Track, { first, last }: Places): void {
  const { min, max, mean } = to;
  for (let row = 0; row < first.length; row++) {
    const value = from.mean[row] as number;
    if (value !== value) continue;
    const [low, high] = [from.min[row] as number, from.max[row] as number];
    for (let at = first[row] as number; at <= (last[row] as number); at++) {
      // Comparisons with NaN are false, so the first value is always taken.
      if (!((min[at] as number) <= low)) min[at] = low;
      if (!((max[at] as number) >= high)) max[at] = high;
      mean[at] = counts[at] === 0 ? value : (mean[at] as number) + value;
      counts[at] = (counts[at] as number) + 1;
    }
  }
}
