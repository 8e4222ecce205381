// How a line is drawn: its mean as a line, the range from minimum to maximum as an area. So no spike is
// lost, however many samples a pixel covers.

import uPlot from "uplot";

/** A line in shown units, over the rows of the chart's data. */
export interface Drawn {
  min: Float64Array;
  max: Float64Array;
  mean: Float64Array;
  /** In stacks: what is below it. */
  floor: Float64Array | null;
}

/** In pixels. */
const MIN_SPIKE = 6;

type Point = (row: number) => number;

/** Runs of measured rows that are at most `gapMs` apart. Rows without values between them are left out. */
export function runs(x: ArrayLike<number>, values: Float64Array, from: number, to: number, gapMs: number): number[][] {
  const all: number[][] = [];
  let rows: number[] = [];
  for (let row = from; row <= to; row++) {
    if (Number.isNaN(values[row])) continue;
    const last = rows[rows.length - 1];
    if (last !== undefined && (x[row] ?? 0) - (x[last] ?? 0) > gapMs) {
      all.push(rows);
      rows = [];
    }
    rows.push(row);
  }
  if (rows.length > 0) all.push(rows);
  return all;
}

/**
 * A path builder for uPlot that gets its line and maximum gap when it draws. `dense`: for very many
 * lines, where areas would hide each other and cost much: spikes become part of the line.
 */
export function pathsOf(line: () => Drawn | undefined, gapMs: () => number, dense = false): uPlot.Series.PathBuilder {
  return (u, seriesIndex, from, to) => {
    const drawn = line();
    const stroke = new Path2D();
    const fill = new Path2D();
    const result = { stroke, fill, clip: null, band: null, gaps: null, flags: 3 } as unknown as uPlot.Series.Paths;
    if (!drawn) return result;
    const scale = u.series[seriesIndex]?.scale ?? "y";
    const { min, max } = u.scales[scale] ?? {};
    if (min === undefined || max === undefined) return result;
    const x = u.data[0] as ArrayLike<number>;
    const place = placing(u, min, max);
    // One more row on each side, so that lines reach the edges.
    const rows = runs(x, drawn.mean, Math.max(0, from - 1), Math.min(x.length - 1, to + 1), gapMs());
    for (const run of rows) trace(drawn, run, (row) => place.x(x[row] as number), place.y, dense, stroke, fill);
    return result;
  };
}

/** What a path is drawn on: a `Path2D`, or SVG. */
export type Pen = Pick<Path2D, "moveTo" | "lineTo" | "closePath">;

/** Draws a run of rows: its line, and the area around it or below it. */
export function trace(drawn: Drawn, rows: number[], x: Point, y: (value: number) => number, dense: boolean, stroke: Pen, fill: Pen): void {
  const of = (values: Float64Array): Point => (row) => y(values[row] as number);
  const { min, max, floor } = drawn;
  const mean = of(drawn.mean);
  if (dense && !floor) return traceSpikes(stroke, rows, x, mean, of(max), of(min));
  traceLine(stroke, rows, x, mean);
  if (floor) traceSurface(fill, rows, x, mean, of(floor));
  else if (min !== max) {
    traceIsolated(stroke, rows, x, mean, of(max));
    traceIsolated(stroke, rows, x, mean, of(min));
    traceSurface(fill, rows, x, of(max), of(min));
  }
}

function placing(u: uPlot, low: number, high: number): { x(v: number): number; y(v: number): number } {
  const { left, top, width, height } = u.bbox;
  const from = u.scales.x?.min ?? 0;
  const length = (u.scales.x?.max ?? 1) - from || 1;
  return {
    x: (v) => left + ((v - from) / length) * width,
    y: (v) => top + height - ((v - low) / (high - low || 1)) * height,
  };
}

function traceLine(path: Pen, rows: number[], x: Point, y: Point): void {
  rows.forEach((row, at) => (at === 0 ? path.moveTo(x(row), y(row)) : path.lineTo(x(row), y(row))));
  const [only] = rows;
  // A single row would be invisible.
  if (rows.length === 1 && only !== undefined) path.lineTo(x(only) + 1.5, y(only));
}

/** The mean as a line, with a vertical line wherever minimum and maximum are visibly apart. */
function traceSpikes(path: Pen, rows: number[], x: Point, y: Point, top: Point, bottom: Point): void {
  rows.forEach((row, at) => {
    const [along, middle] = [x(row), y(row)];
    if (at === 0) path.moveTo(along, middle);
    else path.lineTo(along, middle);
    const [high, low] = [top(row), bottom(row)];
    if (low - high < MIN_SPIKE) return;
    path.moveTo(along, high);
    path.lineTo(along, low);
    path.moveTo(along, middle);
  });
}

/** Vertical lines to isolated extremes: an area one pixel wide would hardly be visible. */
function traceIsolated(path: Pen, rows: number[], x: Point, y: Point, end: Point): void {
  const reach = (at: number) => {
    const row = rows[at];
    return row === undefined ? 0 : Math.abs(end(row) - y(row));
  };
  let [before, here] = [0, reach(0)];
  rows.forEach((row, at) => {
    const after = reach(at + 1);
    if (here >= MIN_SPIKE && 2 * Math.max(before, after) < here) {
      path.moveTo(x(row), y(row));
      path.lineTo(x(row), end(row));
    }
    [before, here] = [here, after];
  });
}

/** On whole pixels: without a GPU, edges between pixels cost several times as much. */
function traceSurface(path: Pen, rows: number[], x: Point, top: Point, bottom: Point): void {
  rows.forEach((row, at) => {
    const [along, high] = [Math.round(x(row)), Math.floor(top(row))];
    if (at === 0) path.moveTo(along, high);
    else path.lineTo(along, high);
  });
  for (let at = rows.length - 1; at >= 0; at--) {
    const row = rows[at] as number;
    path.lineTo(Math.round(x(row)), Math.ceil(bottom(row)));
  }
  path.closePath();
}
