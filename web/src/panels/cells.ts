// The cells of a heat map: lines by time.

import type { Slice } from "../store";
import type { Line } from "./lines";

/** Which values of a line are bad, and so are kept where a cell covers several samples. */
export type Worst = "high" | "low";

/** The cells of each line, one line after the other; NaN where nothing was measured. */
export interface Cells {
  values: Float32Array;
  columns: number;
  /** The highest value, at least 0. */
  highest: number;
}

/** The worst value of each line in each of `columns` parts of a time range, in shown units. */
export function cellsOf(lines: Line[], slice: Slice, from: number, to: number, columns: number, worst: Worst, gapMs: number): Cells {
  const values = new Float32Array(lines.length * columns).fill(NaN);
  const { rows, first, last } = columnsOf(slice, from, to, columns, gapMs);
  const sign = worst === "high" ? 1 : -1;
  let highest = 0;
  lines.forEach(({ series, offset, factor }, line) => {
    const track = slice.track(series.number);
    if (!track) return;
    const raw = sign * factor > 0 ? track.max : track.min;
    const begin = line * columns;
    // Plain loops, as this runs for every cell and every update.
    for (let at = 0; at < rows.length; at++) {
      const value = offset + factor * (raw[rows[at] as number] as number);
      if (value !== value) continue;
      if (value > highest) highest = value;
      for (let cell = begin + (first[at] as number); cell <= begin + (last[at] as number); cell++) {
        if (!(sign * (values[cell] as number) >= sign * value)) values[cell] = value;
      }
    }
  });
  return { values, columns, highest };
}

/** The columns that each visible row covers. A bucket covers its length; a sample reaches to the next one, but over no gap. */
function columnsOf(slice: Slice, from: number, to: number, columns: number, gapMs: number): { rows: number[]; first: number[]; last: number[] } {
  const { x, stepMs, raw } = slice;
  const scale = columns / (to - from || 1);
  const places = { rows: [] as number[], first: [] as number[], last: [] as number[] };
  for (let row = 0; row < x.length; row++) {
    const time = x[row] as number;
    const next = row + 1 < x.length ? (x[row + 1] as number) - time : 0;
    const [begin, end] = raw ? [time, time + (next <= gapMs ? next : 0)] : [time - stepMs / 2, time + stepMs / 2];
    if (end < from || begin > to) continue;
    const first = Math.max(0, Math.min(columns - 1, Math.floor((begin - from) * scale + 1e-6)));
    const last = Math.max(first, Math.min(columns - 1, Math.ceil((end - from) * scale - 1e-6) - 1));
    places.rows.push(row);
    places.first.push(first);
    places.last.push(last);
  }
  return places;
}

/** The lines in the order of their worst cells; lines without values come last. */
export function byWorst({ values, columns }: Cells, lines: number, worst: Worst): number[] {
  const sign = worst === "high" ? 1 : -1;
  const peaks = Array.from({ length: lines }, (_, line) => {
    let peak = -Infinity;
    for (let at = line * columns; at < (line + 1) * columns; at++) {
      const value = sign * (values[at] as number);
      if (value > peak) peak = value;
    }
    return peak;
  });
  return peaks.map((_, line) => line).sort((a, b) => (peaks[a] === peaks[b] ? a - b : (peaks[b] as number) > (peaks[a] as number) ? 1 : -1));
}
