// One chart: lines over time, drawn by uPlot.

import uPlot from "uplot";
import { roundUp } from "../steps";
import type { Track } from "../frame";
import type { Slice } from "../store";
import { clock, format, type Quantity } from "../units";
import type { Line } from "./lines";
import { currentTheme, lineColour, type Theme } from "./palette";
import { pathsOf, type Drawn } from "./paths";

export interface Mark {
  time: number;
  text: string;
}

/** What a chart tells the page. */
export interface ChartEvents {
  cursor(ms: number | null): void;
  select(from: number, to: number): void;
  back(): void;
}

/** What stands beside a series, at the same times. */
export type Other = (series: number) => Track | undefined;

export interface ChartLook {
  /** Whether a second source is drawn, dashed. */
  compared: boolean;
  stacked: boolean;
  small: boolean;
  /** Colours in all, of which each line takes its own. */
  colours: number;
}

const SCALES = ["y", "second"];
const INCREMENTS = [1, 2, 5];
const DECIMAL = Array.from({ length: 24 }, (_, p) => INCREMENTS.map((m) => m * 10 ** (p - 9))).flat();
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const TIMES = [...[1, 2, 5, 10, 20, 50, 100, 200, 500], ...SECONDS.map((s) => s * 1000)];
const BINARY = Array.from({ length: 60 }, (_, p) => 2 ** p);

/** The surface of what a line is between minimum and maximum has the colour of its line. */
function faint(colour: string, share: number): string {
  return `color-mix(in srgb, ${colour} ${share}%, transparent)`;
}

export class Chart {
  readonly plot: uPlot;
  private theme: Theme;
  private drawn: (Drawn | undefined)[] = [];
  private others: (Drawn | undefined)[] = [];
  private gapMs = 1;
  private quantities: Quantity[];
  private top: Record<string, number> = {};
  private bottom: Record<string, number> = {};
  hidden = new Set<number>();
  marks: Mark[] = [];

  constructor(
    private readonly host: HTMLElement,
    readonly lines: Line[],
    private readonly look: ChartLook,
    private readonly events: ChartEvents,
  ) {
    this.theme = currentTheme();
    this.quantities = quantitiesOf(lines);
    this.plot = new uPlot(this.options(), [[]] as unknown as uPlot.AlignedData, host);
    this.plot.over.addEventListener("mouseleave", () => events.cursor(null));
  }

  /** Shows a slice from `from` to `to`. */
  show(slice: Slice, from: number, to: number, other?: Other): void {
    this.convert(slice);
    this.others = this.look.compared ? this.lines.map((line) => besides(line, other)) : [];
    this.range(slice, from, to);
    const empty = new Float64Array(slice.x.length).fill(NaN);
    const all = this.look.compared ? this.lines.flatMap((_, at) => [this.drawn[at], this.others[at]]) : this.drawn;
    const data = [slice.x, ...all.map((d) => d?.mean ?? empty)];
    this.gapMs = Math.max(slice.stepMs * 2.6, slice.raw ? typicalGap(slice.x) * 3 : 0);
    this.plot.batch(() => {
      this.plot.setData(data as uPlot.AlignedData, false);
      this.plot.setScale("x", { min: from, max: to });
    });
  }

  /** The largest shown value of what is on screen, so that small charts can share a scale. */
  get highest(): number {
    return this.top.y ?? 0;
  }

  shareTop(value: number): void {
    this.top.y = value;
  }

  /** Puts the cursor to a time without telling anybody. */
  pointAt(ms: number | null): void {
    const left = ms === null ? -10 : this.plot.valToPos(ms, "x");
    this.plot.setCursor({ left, top: ms === null ? -10 : 10 }, false);
  }

  resize(width: number, height: number): void {
    if (width > 0 && (width !== this.plot.width || height !== this.plot.height)) this.plot.setSize({ width, height });
  }

  destroy(): void {
    this.plot.destroy();
    this.host.replaceChildren();
  }

  /** The drawn columns in shown units, for tables and files. */
  column(line: number): Drawn | undefined {
    return this.drawn[line];
  }

  private convert(slice: Slice): void {
    const floor = this.look.stacked ? new Float64Array(slice.x.length) : null;
    this.drawn = this.lines.map((line, at) => {
      const track = slice.track(line.series.number);
      if (!track) return undefined;
      const of = (values: Float64Array) => values.map((v) => line.offset + line.factor * v);
      const mean = of(track.mean);
      if (floor) {
        if (this.hidden.has(at)) return undefined;
        const below = floor.slice();
        for (let row = 0; row < mean.length; row++) {
          mean[row] = (mean[row] as number) + (floor[row] as number);
          if (!Number.isNaN(mean[row])) floor[row] = mean[row] as number;
        }
        return { min: mean, max: mean, mean, floor: below };
      }
      if (track.min === track.max) return { min: mean, max: mean, mean, floor: null };
      const [low, high] = line.factor < 0 ? [track.max, track.min] : [track.min, track.max];
      return { min: of(low), max: of(high), mean, floor: null };
    });
  }

  private range(slice: Slice, from: number, to: number): void {
    this.top = {};
    this.bottom = {};
    this.lines.forEach((line, at) => {
      const drawn = this.drawn[at];
      if (!drawn || this.hidden.has(at)) return;
      const scale = this.scaleOf(line);
      let [low, high] = [this.bottom[scale] ?? 0, this.top[scale] ?? 0];
      for (let row = 0; row < slice.x.length; row++) {
        const time = slice.x[row] as number;
        if (time < from || time > to) continue;
        const beside = this.others[at]?.mean[row] as number;
        if (beside > high) high = beside;
        if ((drawn.max[row] as number) > high) high = drawn.max[row] as number;
        if ((drawn.min[row] as number) < low) low = drawn.min[row] as number;
      }
      this.top[scale] = high;
      this.bottom[scale] = low;
    });
  }

  private limits(scale: string): [number, number] {
    const quantity = this.quantities[SCALES.indexOf(scale)] ?? "count";
    const high = this.top[scale] ?? 0;
    const low = this.bottom[scale] ?? 0;
    if (quantity === "percent" && high <= 100.001 && high > 40) return [low < -1 ? low : 0, 100];
    return [low < 0 ? -roundUp(-low, 10) : 0, roundUp(high * 1.04, quantity === "bytes" ? 2 : 10)];
  }

  private scaleOf(line: Line): string {
    return SCALES[Math.min(1, Math.max(0, this.quantities.indexOf(line.quantity)))] ?? "y";
  }

  colour(line: Line): string {
    return lineColour(line.slot, this.look.colours, this.theme.dark);
  }

  private options(): uPlot.Options {
    const { small } = this.look;
    const axis = (scale: string, side: number): uPlot.Axis => this.valueAxis(scale, side);
    const scales: uPlot.Scales = { x: { time: true, auto: false } };
    for (const scale of SCALES) scales[scale] = { auto: true, range: () => this.limits(scale) };
    return {
      width: Math.max(this.host.clientWidth, 50),
      height: Math.max(this.host.clientHeight, 40),
      ms: 1,
      legend: { show: false },
      padding: [small ? 5 : 8, this.quantities.length > 1 ? 0 : 20, small ? 6 : 0, 0],
      scales,
      series: [{}, ...this.lines.flatMap((line, at) => (this.look.compared ? [this.seriesOf(line, at), this.otherOf(line, at)] : [this.seriesOf(line, at)]))],
      axes: [this.timeAxis(), axis("y", 3), ...(this.quantities.length > 1 ? [axis("second", 1)] : [])],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => { this.events.back(); return null; } },
      },
      hooks: {
        setCursor: [(u) => this.pointed(u)],
        setSelect: [(u) => this.selected(u)],
        draw: [(u) => this.drawMarks(u)],
      },
    };
  }

  private seriesOf(line: Line, at: number): uPlot.Series {
    const colour = this.colour(line);
    return {
      scale: this.scaleOf(line),
      stroke: colour,
      width: this.lines.length > 24 ? 1 : 1.4,
      fill: faint(colour, this.look.stacked ? 42 : 34),
      points: { show: false },
      paths: pathsOf(() => (this.hidden.has(at) ? undefined : this.drawn[at]), () => this.gapMs),
    };
  }

  private otherOf(line: Line, at: number): uPlot.Series {
    return {
      scale: this.scaleOf(line),
      stroke: faint(this.colour(line), 75),
      width: 1.2,
      dash: [5, 4],
      points: { show: false },
      paths: pathsOf(() => (this.hidden.has(at) ? undefined : this.others[at]), () => this.gapMs),
    };
  }

  private timeAxis(): uPlot.Axis {
    const { theme } = this;
    return {
      stroke: theme.quiet,
      font: "11px system-ui, sans-serif",
      size: this.look.small ? 0 : 24,
      space: 68,
      incrs: TIMES,
      gap: 3,
      show: !this.look.small,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { show: false },
      values: (_u, splits, _axis, _space, step) => splits.map((at) => clock(at, step)),
    };
  }

  private valueAxis(scale: string, side: number): uPlot.Axis {
    const { theme } = this;
    const quantity = this.quantities[SCALES.indexOf(scale)] ?? "count";
    return {
      scale,
      side,
      stroke: theme.quiet,
      font: "11px system-ui, sans-serif",
      size: this.look.small ? 46 : 56,
      space: this.look.small ? 18 : 22,
      gap: 5,
      incrs: quantity === "bytes" ? BINARY : DECIMAL,
      grid: scale === "y" ? { stroke: theme.grid, width: 1 } : { show: false },
      ticks: { show: false },
      values: (_u, splits) => splits.map((value) => (value === 0 ? "0" : format(value, quantity))),
    };
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

  private drawMarks(u: uPlot): void {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { top, height, left, width } = u.bbox;
    ctx.save();
    ctx.strokeStyle = this.theme.accent;
    ctx.fillStyle = this.theme.accent;
    ctx.lineWidth = ratio;
    ctx.font = `${10 * ratio}px system-ui, sans-serif`;
    ctx.setLineDash([3 * ratio, 3 * ratio]);
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    let free = -Infinity;
    for (const mark of this.marks) {
      const x = Math.round(u.valToPos(mark.time, "x", true)) + 0.5;
      if (x < left || x > left + width) continue;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      const text = mark.text.length > 28 ? `${mark.text.slice(0, 27)}…` : mark.text;
      const wide = ctx.measureText(text).width;
      const leftwards = x + wide + 6 * ratio > left + width;
      const begin = leftwards ? x - wide - 4 * ratio : x + 4 * ratio;
      if (this.look.small || begin < free || begin < left) continue;
      ctx.fillText(text, begin, top + 9 * ratio);
      free = begin + wide + 6 * ratio;
    }
    ctx.restore();
  }
}

function besides(line: Line, other: Other | undefined): Drawn | undefined {
  const track = other?.(line.series.number);
  if (!track) return undefined;
  const mean = track.mean.map((value) => line.offset + line.factor * value);
  return { min: mean, max: mean, mean, floor: null };
}

/** The quantities of lines, percentages on the second axis where there is another. */
export function quantitiesOf(lines: Line[]): Quantity[] {
  const all = [...new Set(lines.map((line) => line.quantity))];
  return all.length > 1 ? all.sort((a, b) => Number(a === "percent") - Number(b === "percent")) : all;
}

function typicalGap(x: Float64Array): number {
  return x.length < 2 ? 0 : ((x[x.length - 1] as number) - (x[0] as number)) / (x.length - 1);
}
