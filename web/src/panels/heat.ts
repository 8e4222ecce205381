// A heat map: a row of cells for each line, coloured by its value. For many lines, which would hide each other.

import uPlot from "uplot";
import { roundUp } from "../steps";
import type { Slice } from "../store";
import { format, type Quantity } from "../units";
import { timeAxis, VALUE_SIZE } from "./axes";
import { byWorst, cellsOf, type Cells, type Worst } from "./cells";
import { typicalGap, type Picture, type PointedEvents } from "./chart";
import type { Line } from "./lines";
import { around } from "./near";
import { paintMarks, type Mark } from "./marks";
import { currentTheme, loadParts, type Theme } from "./palette";
import { PlotView } from "./plot";

/** Minimum height of the name of a line, in pixels. */
const NAME_SPACE = 14;
const LONGEST_NAME = 8;
const SHADES = 256;
/** How much of the other rows the background covers. */
const FADE = 0.5;

export class HeatChart extends PlotView {
  readonly plot: uPlot;
  hidden = new Set<number>();
  marks: Mark[] = [];
  /** A cell has the values of its own time only. */
  readonly gapMs = 0;
  /** Whether lines are in the order of their worst values, instead of that of the machine. */
  sorted = false;
  /** The line that the others are faded for. */
  private focused: number | null = null;
  private readonly theme: Theme;
  private readonly quantity: Quantity;
  private readonly canvas = document.createElement("canvas");
  private cells: Cells = { values: new Float32Array(0), columns: 0, highest: 0 };
  private order: number[];
  private span: [number, number] = [0, 1];
  private top = 0;
  /** Colours as the canvas stores them. */
  private readonly shades: Uint32Array;

  constructor(
    host: HTMLElement,
    readonly lines: Line[],
    private readonly worst: Worst,
    private readonly events: PointedEvents,
    private readonly origin: number | null = null,
  ) {
    super(host);
    this.theme = currentTheme();
    this.shades = shadesOf(this.theme.dark);
    this.quantity = lines[0]?.quantity ?? "count";
    this.order = lines.map((_, at) => at);
    this.plot = new uPlot(this.options(), [[0], [null]] as unknown as uPlot.AlignedData, host);
    for (const name of ["pointermove", "pointerdown"] as const) this.plot.over.addEventListener(name, (event) => this.pointedAt(event), { capture: true });
    this.plot.over.addEventListener("mouseleave", () => {
      this.fade(null);
      events.near(null);
      events.cursor(null);
    });
  }

  prepare(slice: Slice, from: number, to: number): void {
    this.span = [from, to];
    const columns = Math.max(1, Math.round(this.plot.bbox.width / devicePixelRatio));
    const gapMs = Math.max(slice.stepMs * 2.6, slice.raw ? typicalGap(slice.x) * 3 : 0);
    this.cells = cellsOf(this.lines, slice, from, to, columns, this.worst, gapMs);
    this.top = this.cells.highest;
    const order = this.sorted ? byWorst(this.cells, this.lines.length, this.worst) : this.lines.map((_, at) => at);
    this.order = order.filter((line) => !this.hidden.has(line));
    this.fill();
  }

  draw(): void {
    const [min, max] = this.span;
    this.plot.batch(() => {
      this.plot.setScale("x", { min, max });
      this.plot.setScale("y", { min: 0, max: Math.max(1, this.order.length) });
    });
  }

  get highest(): number {
    return this.top;
  }

  /** The scale of colours in words. */
  get scale(): string {
    return `0 – ${format(this.full, this.quantity)}`;
  }

  /** The value of the strongest colour. */
  private get full(): number {
    if (this.quantity === "percent" && this.top <= 110 && this.top > 40) return Math.max(100, this.top);
    return roundUp(this.top, this.quantity === "bytes" ? 2 : 10);
  }

  shareTop(value: number): void {
    if (value === this.top) return;
    this.top = value;
    this.fill();
  }

  picture(): Picture {
    const [from, to] = this.span;
    return { shown: [], total: undefined, axes: [], x: new Float64Array(0), from, to, gapMs: 0, dense: true, marks: this.marks,
      heat: { image: this.canvas.toDataURL(), scale: this.scale, names: this.order.map((line) => this.lines[line]?.label ?? "") } };
  }

  /** One pixel for each cell. */
  private fill(): void {
    const { canvas, order, full, shades } = this;
    const { values, columns } = this.cells;
    const height = Math.max(1, order.length);
    if (canvas.width !== columns || canvas.height !== height) Object.assign(canvas, { width: columns, height });
    const context = canvas.getContext("2d");
    if (!context) return;
    const image = context.createImageData(columns, height);
    const pixels = new Uint32Array(image.data.buffer);
    const scale = (SHADES - 1) / full;
    order.forEach((line, row) => {
      for (let column = 0; column < columns; column++) {
        const value = values[line * columns + column] as number;
        if (value === value) pixels[row * columns + column] = shades[value > 0 ? (value < full ? (value * scale + 0.5) | 0 : SHADES - 1) : 0] as number;
      }
    });
    context.putImageData(image, 0, 0);
  }

  private options(): uPlot.Options {
    return {
      width: Math.max(this.host.clientWidth, 50),
      height: Math.max(this.host.clientHeight, 40),
      ms: 1,
      legend: { show: false },
      padding: [8, 20, 0, 0],
      scales: { x: { time: true, auto: false }, y: { auto: false, range: (_u, min, max) => [min, max] } },
      series: [{}, { scale: "y", show: true, paths: () => null, points: { show: false } }],
      axes: [timeAxis(this.theme, false, this.origin), this.names()],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { this.events.back(); return null; } } },
      hooks: {
        setCursor: [(u) => this.pointed(u)],
        setSelect: [(u) => this.selected(u)],
        draw: [(u) => this.paint(u)],
      },
    };
  }

  /** The names of as many lines as there is room for, the first at the top. */
  private names(): uPlot.Axis {
    return {
      scale: "y", side: 3, size: VALUE_SIZE, gap: 5, stroke: this.theme.quiet, font: "11px system-ui, sans-serif", grid: { show: false }, ticks: { show: false },
      incrs: [1], space: 0.01,
      splits: (u, _axis, _min, max) => {
        const every = Math.max(1, Math.ceil((NAME_SPACE * max) / Math.max(1, u.bbox.height / devicePixelRatio)));
        return Array.from({ length: Math.ceil(max / every) }, (_, at) => max - at * every - 0.5);
      },
      values: (u, splits) => splits.map((at) => short(this.lines[this.order[Math.round((u.scales.y?.max ?? 0) - at - 0.5)] ?? -1]?.label ?? "")),
    };
  }

  private paint(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    if (this.cells.columns > 0) {
      u.ctx.save();
      u.ctx.imageSmoothingEnabled = false;
      u.ctx.drawImage(this.canvas, left, top, width, height);
      this.paintFaded(u);
      u.ctx.restore();
    }
    paintMarks(u, this.marks, this.theme, true);
  }

  private paintFaded(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    const row = this.focused === null ? -1 : this.order.indexOf(this.focused);
    if (row < 0 || this.order.length < 2) return;
    const tall = height / this.order.length;
    u.ctx.globalAlpha = FADE;
    u.ctx.fillStyle = this.theme.panel;
    u.ctx.fillRect(left, top, width, row * tall);
    u.ctx.fillRect(left, top + (row + 1) * tall, width, height - (row + 1) * tall);
    u.ctx.globalAlpha = 1;
  }

  /** Which line the pointer is on; the chart's own cursor is also moved by other panels. */
  private pointedAt(event: PointerEvent): void {
    const box = this.plot.over.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / (box.height || 1)) * this.order.length);
    const line = this.order[row] ?? null;
    this.fade(line);
    this.events.near({ line, around: around(this.order, row), x: event.clientX, y: event.clientY });
  }

  /** Fades all rows but one. */
  private fade(line: number | null): void {
    if (line === this.focused) return;
    this.focused = line;
    this.plot.redraw(false);
  }

  private pointed(u: uPlot): void {
    const { left = -10 } = u.cursor;
    this.events.cursor(left < 0 ? null : u.posToVal(left, "x"));
  }

  private selected(u: uPlot): void {
    const { left, width } = u.select;
    if (width > 3) this.events.select(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }
}

/** A name that fits next to the chart: of a long one its last word. */
function short(name: string): string {
  return name.length > LONGEST_NAME ? (name.split(" ").pop() ?? name) : name;
}

function shadesOf(dark: boolean): Uint32Array {
  const bytes = new Uint8Array(4 * SHADES).fill(255);
  for (let at = 0; at < SHADES; at++) bytes.set(loadParts(at / (SHADES - 1), dark), 4 * at);
  return new Uint32Array(bytes.buffer);
}
