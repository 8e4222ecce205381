// Decodes binary frames: a JSON header, then columns of integers or floats.

import type { FrameColumn, FrameHeader } from "./wire";

/** The values of one series, one per bucket or row; NaN if nothing was measured. */
export interface Track {
  min: Float64Array;
  max: Float64Array;
  mean: Float64Array;
}

export interface Frame {
  header: FrameHeader;
  tracks: Map<number, Track>;
  /** In raw frames: nanoseconds after `header.from_ns`. */
  times: Float64Array | null;
}

const WIDTH = { const: 0, u8: 1, u16: 2, u32: 4, f32: 4, f64: 8 } as const;
const MAX_ROWS = 4_000_000;

/** A frame whose columns are not yet decoded. */
export interface Parsed {
  header: FrameHeader;
  buffer: ArrayBuffer;
  /** Offset of the columns. */
  start: number;
}

/** Decodes a frame; throws an error that says what is wrong with it. */
export function decodeFrame(buffer: ArrayBuffer): Frame {
  return tracksOf(parseFrame(buffer));
}

export function parseFrame(buffer: ArrayBuffer): Parsed {
  if (buffer.byteLength < 4) throw new Error(`a frame of ${buffer.byteLength} bytes has no header`);
  const length = new DataView(buffer).getUint32(0, true);
  if (4 + length > buffer.byteLength) throw new Error(`a header of ${length} bytes exceeds its frame`);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const header = JSON.parse(text) as FrameHeader;
  const { rows } = header;
  if (!Number.isInteger(rows) || rows < 0 || rows > MAX_ROWS) throw new Error(`a frame of ${rows} rows`);
  return { header, buffer, start: Math.ceil((4 + length) / 8) * 8 };
}

/** Decodes the times, and the series for which `wanted` is true. */
export function tracksOf({ header, buffer, start }: Parsed, wanted = (_series: number) => true): Frame {
  const parts = new Map<number, Partial<Record<FrameColumn["what"], Float64Array>>>();
  let times: Float64Array | null = null;
  for (const column of header.columns) {
    const isTime = column.what === "time";
    if (!isTime && !wanted(column.series)) continue;
    const values = decodeColumn(buffer, start, column, header.rows);
    if (isTime) {
      times = values;
      continue;
    }
    let part = parts.get(column.series);
    if (!part) parts.set(column.series, (part = {}));
    part[column.what] = values;
  }
  const tracks = new Map<number, Track>();
  for (const [series, part] of parts) {
    const min = part.min ?? part.value ?? part.mean ?? part.max;
    if (!min) continue;
    const max = part.max ?? min;
    tracks.set(series, { min, max, mean: part.mean ?? middle(min, max) });
  }
  return { header, tracks, times };
}

function middle(min: Float64Array, max: Float64Array): Float64Array {
  return min === max ? min : min.map((low, row) => (low + (max[row] ?? low)) / 2);
}

/** Value = base + scale * stored; the largest integer of a type means that nothing was measured. */
function decodeColumn(buffer: ArrayBuffer, start: number, column: FrameColumn, rows: number): Float64Array {
  const out = new Float64Array(rows);
  const base = column.base ?? NaN;
  const scale = column.scale ?? 1;
  const width = WIDTH[column.type];
  if (width === undefined) throw new Error(`a column of type '${String(column.type)}'`);
  if (column.type === "const") return out.fill(base);
  const at = start + column.at;
  if (!(column.at >= 0) || at + rows * width > buffer.byteLength) {
    throw new Error(`the column of series ${column.series} exceeds its frame`);
  }
  const stored = view(buffer, at, column.type, rows);
  const none = column.type[0] === "u" ? 2 ** (8 * width) - 1 : NaN;
  const plain = column.type[0] === "f" && !(base !== 0 && base === base) && scale === 1;
  for (let row = 0; row < rows; row++) {
    const value = stored[row] as number;
    out[row] = value === none ? NaN : plain ? value : base + scale * value;
  }
  return out;
}

function view(buffer: ArrayBuffer, at: number, type: FrameColumn["type"], rows: number): ArrayLike<number> {
  const width = WIDTH[type];
  // A typed array must begin at a multiple of its element size; copy columns that do not.
  const [from, offset] = at % width === 0 ? [buffer, at] : [buffer.slice(at, at + rows * width), 0];
  switch (type) {
    case "u8":
      return new Uint8Array(from, offset, rows);
    case "u16":
      return new Uint16Array(from, offset, rows);
    case "u32":
      return new Uint32Array(from, offset, rows);
    case "f32":
      return new Float32Array(from, offset, rows);
    default:
      return new Float64Array(from, offset, rows);
  }
}
