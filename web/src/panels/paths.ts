// How a line is drawn: its mean as a stroke, what is between minimum and maximum as a surface. So no
// spike is lost, however many samples a pixel has.

import uPlot from "uplot";

/** A line in shown units, over the rows of the chart's data. */
export interface Drawn {
  min: Float64Array;
  max: Float64Array;
  mean: Float64Array;
  /** Of stacks: what is below it. */
  floor: Float64Array | null;
}

type Point = (row: number) => number;

/** Runs of measured rows that are no more than `gapMs` apart: `[first, last]`, with holes inside. */
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

/** A builder of paths for uPlot that asks for its line and its longest gap when it draws. */
export function pathsOf(line: () => Drawn | undefined, gapMs: () => number): uPlot.Series.PathBuilder {
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
    // One row more on each side, so that lines reach the edges.
    const rows = runs(x, drawn.mean, Math.max(0, from - 1), Math.min(x.length - 1, to + 1), gapMs());
    for (const run of rows) {
      const along: Point = (row) => place.x(x[row] as number);
      traceLine(stroke, run, along, (row) => place.y(drawn.mean[row] as number));
      const { floor } = drawn;
      if (floor) traceSurface(fill, run, along, (row) => place.y(drawn.mean[row] as number), (row) => place.y(floor[row] as number));
      else if (drawn.min !== drawn.max) {
        traceSurface(fill, run, along, (row) => place.y(drawn.max[row] as number), (row) => place.y(drawn.min[row] as number));
      }
    }
    return result;
  };
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

function traceLine(path: Path2D, rows: number[], x: Point, y: Point): void {
  rows.forEach((row, at) => (at === 0 ? path.moveTo(x(row), y(row)) : path.lineTo(x(row), y(row))));
  const [only] = rows;
  // A row alone would leave no mark.
  if (rows.length === 1 && only !== undefined) path.lineTo(x(only) + 1.5, y(only));
}

function traceSurface(path: Path2D, rows: number[], x: Point, top: Point, bottom: Point): void {
  rows.forEach((row, at) => (at === 0 ? path.moveTo(x(row), top(row)) : path.lineTo(x(row), top(row))));
  for (let at = rows.length - 1; at >= 0; at--) path.lineTo(x(rows[at] as number), bottom(rows[at] as number));
  path.closePath();
}
