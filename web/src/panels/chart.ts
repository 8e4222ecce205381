// One chart: lines over time, drawn by uPlot.

import uPlot from "uplot";
import { roundUp } from "../steps";
import { rowAt, valueNear, type Slice } from "../store";
import type { Quantity } from "../units";
import { timeAxis, valueAxis } from "./axes";
import { besides, distanceOf, drawnOf, extremes, holes, rowsAround, stacked, totalOf, type Other } from "./columns";
import type { Line } from "./lines";
import { currentTheme, lineColour, type Theme } from "./palette";
import { paintHoles, paintMarks, type Mark } from "./marks";
import { pathsOf, type Drawn } from "./paths";
import { around, type Pointed } from "./near";
import { PlotView } from "./plot";

/** Events of a chart. */
export interface ChartEvents {
  cursor(ms: number | null): void;
  select(from: number, to: number): void;
  back(): void;
}

/** Events of a chart in its panel. */
export interface PointedEvents extends ChartEvents {
  /** The pointer is on a chart; null: on none. */
  near(at: Pointed | null): void;
}

export interface ChartLook {
  /** Whether a second source is drawn, dashed. */
  compared: boolean;
  stacked: boolean;
  /** Times are distances from this one; null: times of the day. */
  origin: number | null;
  small: boolean;
  /** Total number of colours, of which each line has one. */
  colours: number;
}

/** Shorter gaps only interrupt the lines, without hatching. */
const HOLE_MS = 1000;
/** The pointer is on a line that is this near. */
const NEAR_PIXELS = 12;
/** The opacity of the other lines. */
const FADED = 0.22;
/** With more lines, areas are not drawn. */
const DENSE_LINES = 24;
/** With more lines, lines are one pixel wide: without a GPU, wider ones cost a hundred times as much. */
const WIDE_LINES = 4;
const SCALES = ["y", "second"];
const NONE = new Float64Array(0);

/** A line as it is on screen. */
export interface Shown {
  line: Line;
  colour: string;
  /** The number of its axis. */
  axis: number;
  drawn: Drawn | undefined;
  /** The same line of the second source. */
  other: Drawn | undefined;
}

/** A chart as it is on screen, for exports. */
export interface Picture {
  shown: Shown[];
  /** The sum of the second source's lines, for comparison with a stack. */
  total: Drawn | undefined;
  axes: { quantity: Quantity; min: number; max: number }[];
  x: Float64Array;
  from: number;
  to: number;
  gapMs: number;
  /** Whether there are too many lines for areas. */
  dense: boolean;
  marks: Mark[];
  /** The cells of a heat map with its scale of colours and the names of its rows. */
  heat?: { image: string; scale: string; names: string[] };
}

/** The area between minimum and maximum has the colour of its line. */
function faint(colour: string, share: number): string {
  return `color-mix(in srgb, ${colour} ${share}%, transparent)`;
}

export class Chart extends PlotView {
  readonly plot: uPlot;
  private theme: Theme;
  private drawn: (Drawn | undefined)[] = [];
  private others: (Drawn | undefined)[] = [];
  private total: Drawn | undefined;
  private x: Float64Array = new Float64Array(0);
  private span: [number, number] = [0, 1];
  /** Values that are farther apart are not joined. */
  gapMs = 1;
  private quantities: Quantity[];
  private top: Record<string, number> = {};
  private bottom: Record<string, number> = {};
  /** The line that the others are faded for. */
  private focused: number | null = null;
  hidden = new Set<number>();
  marks: Mark[] = [];

  constructor(
    host: HTMLElement,
    readonly lines: Line[],
    private readonly look: ChartLook,
    private readonly events: PointedEvents,
  ) {
    super(host);
    this.theme = currentTheme();
    this.quantities = quantitiesOf(lines);
    this.plot = new uPlot(this.options(), [[]] as unknown as uPlot.AlignedData, host);
    for (const name of ["pointermove", "pointerdown"] as const) this.plot.over.addEventListener(name, (event) => this.pointedNear(event));
    this.plot.over.addEventListener("mouseleave", () => {
      this.fade(null);
      events.near(null);
      events.cursor(null);
    });
  }

  /** Takes a slice from `from` to `to`; `draw` shows it. */
  prepare(slice: Slice, from: number, to: number, other?: Other): void {
    const { lines, look } = this;
    this.x = slice.x;
    this.span = [from, to];
    const apart = lines.map((line) => distanceOf(slice.x, slice.track(line.series.number)?.mean ?? NONE));
    this.gapMs = Math.max(slice.stepMs * 2.6, slice.raw ? typicalGap(slice.x) * 3 : 0, ...apart.map((ms) => ms * 2.6));
    this.drawn = look.stacked ? stacked(lines, slice, this.hidden) : lines.map((line) => {
      const track = slice.track(line.series.number);
      return track && drawnOf(line, track);
    });
    this.others = look.compared && !look.stacked ? lines.map((line) => besides(line, other)) : [];
    this.total = look.compared && look.stacked ? totalOf(lines, other, this.hidden) : undefined;
    this.range(slice, from, to);
  }

  draw(): void {
    const { x, look } = this;
    const empty = new Float64Array(x.length).fill(NaN);
    const beside = look.stacked ? [this.total] : this.others;
    const all = look.compared ? [...this.drawn, ...beside] : this.drawn;
    const [min, max] = this.span;
    this.plot.batch(() => {
      this.plot.setData([x, ...all.map((one) => one?.mean ?? empty)] as uPlot.AlignedData, false);
      this.plot.setScale("x", { min, max });
    });
  }

  /** The largest visible value, so that small charts can share a scale. */
  get highest(): number {
    return this.top.y ?? 0;
  }

  shareTop(value: number): void {
    if (this.quantities.length === 1) this.top.y = value;
  }

  picture(): Picture {
    const visible = this.lines.map((line, at) => ({ line, colour: this.colour(line), axis: SCALES.indexOf(this.scaleOf(line)), drawn: this.drawn[at], other: this.others[at] }));
    const axes = this.quantities.slice(0, 2).map((quantity, at) => {
      const [min, max] = this.limits(SCALES[at] ?? "y");
      return { quantity, min, max };
    });
    const { total, x, gapMs, marks } = this;
    return { shown: visible.filter((_, at) => !this.hidden.has(at)), total, axes, x, from: this.span[0], to: this.span[1], gapMs, dense: this.dense, marks };
  }

  private range(slice: Slice, from: number, to: number): void {
    this.top = {};
    this.bottom = {};
    const rows = rowsAround(slice.x, from, to, this.gapMs);
    this.lines.forEach((line, at) => {
      const drawn = this.drawn[at];
      if (!drawn || this.hidden.has(at)) return;
      const scale = this.scaleOf(line);
      const beside = (this.others[at] ?? this.total)?.mean;
      const [low, high] = extremes(drawn, beside, rows);
      this.bottom[scale] = Math.min(this.bottom[scale] ?? 0, low);
      this.top[scale] = Math.max(this.top[scale] ?? 0, high);
    });
  }

  private limits(scale: string): [number, number] {
    const quantity = this.quantities[SCALES.indexOf(scale)] ?? "count";
    const high = this.top[scale] ?? 0;
    const low = this.bottom[scale] ?? 0;
    // Percentages of time may slightly exceed 100: ticks are not exactly on time.
    if (quantity === "percent" && high <= 110 && high > 40) return [low < -1 ? low : 0, Math.max(100, high)];
    return [low < 0 ? -roundUp(-low, 10) : 0, roundUp(high * 1.04, quantity === "bytes" ? 2 : 10)];
  }

  private scaleOf(line: Line): string {
    return SCALES[Math.min(1, Math.max(0, this.quantities.indexOf(line.quantity)))] ?? "y";
  }

  private get dense(): boolean {
    return this.lines.length > DENSE_LINES;
  }

  private colour(line: Line): string {
    return lineColour(line.slot, this.look.colours, this.theme.dark);
  }

  private options(): uPlot.Options {
    const { small } = this.look;
    const axis = (scale: string, side: number) => valueAxis(scale, side, this.quantities[SCALES.indexOf(scale)] ?? "count", this.theme, small);
    const scales: uPlot.Scales = { x: { time: true, auto: false } };
    for (const scale of SCALES) scales[scale] = { auto: true, range: () => this.limits(scale) };
    return {
      width: Math.max(this.host.clientWidth, 50),
      height: Math.max(this.host.clientHeight, 40),
      ms: 1,
      legend: { show: false },
      padding: [small ? 5 : 8, this.quantities.length > 1 ? 0 : 20, small ? 6 : 0, 0],
      scales,
      series: [{}, ...this.lines.map((line, at) => this.seriesOf(line, at)), ...this.besideOf()],
      axes: [timeAxis(this.theme, small, this.look.origin), axis("y", 3), ...(this.quantities.length > 1 ? [axis("second", 1)] : [])],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { this.events.back(); return null; } },
      },
      hooks: {
        setCursor: [(u) => this.pointed(u)],
        setSelect: [(u) => this.selected(u)],
        draw: [(u) => this.decorate(u)],
      },
    };
  }

  private seriesOf(line: Line, at: number): uPlot.Series {
    const colour = this.colour(line);
    const { dense } = this;
    return {
      scale: this.scaleOf(line),
      stroke: colour,
      width: this.lines.length > WIDE_LINES ? 1 : 1.4,
      fill: faint(colour, this.look.stacked ? 42 : 34),
      points: { show: false },
      paths: pathsOf(() => (this.hidden.has(at) ? undefined : this.drawn[at]), () => this.gapMs, dense),
    };
  }

  /** The second source: a dashed line for each line, or one for the total of a stack. */
  private besideOf(): uPlot.Series[] {
    if (!this.look.compared) return [];
    const dashed = (scale: string, stroke: string, width: number, drawn: () => Drawn | undefined): uPlot.Series =>
      ({ scale, stroke, width, dash: [5, 4], points: { show: false }, paths: pathsOf(drawn, () => this.gapMs) });
    const [first] = this.lines;
    if (this.look.stacked) return first ? [dashed(this.scaleOf(first), this.theme.text, 1.6, () => this.total)] : [];
    return this.lines.map((line, at) => dashed(this.scaleOf(line), faint(this.colour(line), 80), 1.3, () => (this.hidden.has(at) ? undefined : this.others[at])));
  }

  /** Finds the line under the pointer, and those around it. */
  private pointedNear(event: PointerEvent): void {
    const { plot, lines } = this;
    const box = plot.over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = rowAt(this.x, plot.posToVal(x, "x"));
    const heights = lines.flatMap((line, at) => {
      const drawn = this.hidden.has(at) ? undefined : this.drawn[at];
      const value = drawn ? valueNear(this.x, drawn.mean, row, this.gapMs) : NaN;
      return Number.isNaN(value) ? [] : [{ at, top: plot.valToPos(value, this.scaleOf(line)) }];
    }).sort((a, b) => a.top - b.top);
    const distance = (one: { top: number }) => Math.abs(one.top - y);
    const nearest = heights.reduce((best, one, at) => (distance(one) < distance(heights[best] ?? one) ? at : best), 0);
    const found = heights[nearest];
    const line = found && distance(found) <= NEAR_PIXELS && heights.length > 1 ? found.at : null;
    this.fade(line);
    this.events.near({ line, around: around(heights, nearest).map(({ at }) => at), x: event.clientX, y: event.clientY });
  }

  /** Fades all lines but one. */
  private fade(line: number | null): void {
    if (line === this.focused) return;
    this.focused = line;
    const { series } = this.plot;
    const { length } = this.lines;
    series.forEach((one, at) => {
      if (at > 0) one.alpha = line === null || (at - 1) % length === line ? 1 : FADED;
    });
    this.plot.redraw(false);
  }

  private pointed(u: uPlot): void {
    const left = u.cursor.left ?? -10;
    this.events.cursor(left < 0 ? null : u.posToVal(left, "x"));
  }

  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width > 3) this.events.select(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  private decorate(u: uPlot): void {
    paintHoles(u, holes(this.x, this.drawn, Math.max(this.gapMs, HOLE_MS)), this.theme);
    paintMarks(u, this.marks, this.theme, !this.look.small);
  }
}

/** The quantities of lines; percentages are on the second axis if there is another quantity. */
export function quantitiesOf(lines: Line[]): Quantity[] {
  const all = [...new Set(lines.map((line) => line.quantity))];
  return all.length > 1 ? all.sort((a, b) => Number(a === "percent") - Number(b === "percent")) : all;
}

export function typicalGap(x: Float64Array): number {
  return x.length < 2 ? 0 : ((x[x.length - 1] as number) - (x[0] as number)) / (x.length - 1);
}
