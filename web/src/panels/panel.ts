// A panel: title, legend, one chart or several small ones, and a table.

import { h, ICONS, iconButton } from "../elements";
import type { Absent } from "../presence";
import { lastSince, rowAt, valueNear, type Slice } from "../store";
import { format, fullTime } from "../units";
import { MAX_NAMES, type HiddenLines, type Mode } from "../view";
import { Chart, type ChartEvents, type Picture } from "./chart";
import type { Other } from "./columns";
import { HeatChart } from "./heat";
import { Legend } from "./legend";
import type { Line, PanelSpec } from "./lines";
import type { Mark } from "./marks";
import { NearList, type Pointed } from "./near";
import { currentTheme, lineColour } from "./palette";
import { scaleBar } from "./scale";
import { signed, ValueTable } from "./table";

const MODES: [Mode, string][] = [
  ["lines", "Lines"],
  ["stack", "Stacked"],
  ["multiples", "One chart per line"],
  ["heat", "Heat map"],
];
/** With more lines, a heat map is the usual chart. */
const MAX_USUAL_LINES = 8;

/** A table that changed with every frame would be unreadable, also for screen readers. */
const TABLE_PAUSE_MS = 500;
/** More small charts are shown on demand only. */
const MAX_CHARTS = 36;

/** Whether its lines can have one scale of colours. */
function comparable(spec: PanelSpec): boolean {
  return new Set(spec.lines.map((line) => line.quantity)).size === 1;
}

/** The chart type of a panel for which the user chose none. */
export function usualMode(spec: PanelSpec): Mode {
  return spec.lines.length > MAX_USUAL_LINES && comparable(spec) ? "heat" : "lines";
}

export interface PanelEvents extends ChartEvents {
  close(id: string): void;
  /** Lines were switched on or off, or the table was opened or closed. */
  kept(panel: Panel): void;
  mode(id: string, mode: Mode): void;
  /** The menu of what can be saved of a panel. */
  menu(panel: Panel): HTMLElement;
  /** Why a line has no values in the visible range; null if it has. */
  absent(line: Line): Absent | null;
  /** The names of the two sources. */
  ownName(): string;
  otherName(): string;
}

export class Panel {
  readonly element: HTMLElement;
  readonly hidden = new Set<number>();
  private readonly body = h("div", { class: "charts" });
  private readonly note = h("p", { class: "note", hidden: true });
  private readonly legend: Legend;
  private readonly table = new ValueTable(() => this.fillTable());
  private readonly buttons = new Map<Mode, HTMLButtonElement>();
  private charts: (Chart | HeatChart)[] = [];
  private readonly near = new NearList();
  private pointed: Pointed | null = null;
  private sorted = false;
  private readonly sortButton = iconButton("sort", "Sort by worst", () => this.sort());
  /** Moves the panel. */
  readonly title: HTMLButtonElement;
  /** Resizes it. */
  readonly grip = h("i", { class: "corner", "aria-hidden": "true" });
  private readonly tableButton = iconButton("table", "Table", () => this.toggleTable());
  private readonly scale = h("span", { class: "heat-scale", hidden: true });
  private cells: HTMLElement[] = [];
  private slice: Slice | null = null;
  private range: [number, number] = [0, 1];
  private cursor: number | null = null;
  private marks: Mark[] = [];
  private absent: (Absent | null)[] = [];
  private filled = 0;
  private other: Other | undefined;
  /** The time that times are distances from while comparing. */
  private origin: number | null = null;
  private columns = false;
  /** The chart of the second source, in two columns. */
  private second: Chart | HeatChart | null = null;
  private allCharts = false;
  visible = true;

  constructor(
    readonly spec: PanelSpec,
    private mode: Mode,
    private readonly events: PanelEvents,
  ) {
    const modes = h("div", { class: "modes", role: "group", "aria-label": "Chart type" });
    for (const [name, title] of MODES) {
      if ((name === "stack" && !spec.adds) || (name === "heat" && !comparable(spec))) continue;
      const button = iconButton(name as keyof typeof ICONS, title, () => this.setMode(name));
      this.buttons.set(name, button);
      if (spec.lines.length > 1) modes.append(button);
    }
    if (!this.buttons.has(this.mode)) this.mode = "lines";
    this.tableButton.setAttribute("aria-expanded", "false");
    this.legend = new Legend(spec.lines, (line) => this.colour(line), { toggle: (at) => this.toggle(at), isolate: (at) => this.isolate(at) });
    const tools = spec.lines.length > 0 ? [modes, this.sortButton, this.tableButton, events.menu(this)] : [];
    this.title = h("button", { type: "button", class: "title", "aria-description": "Arrow keys: move the panel; with Shift: its size" }, spec.title);
    this.element = h("section", { class: "panel", "aria-label": spec.title, "data-panel": spec.id },
      h("header", {},
        h("h2", { title: spec.help }, this.title),
        h("div", { class: "tools" }, ...tools, iconButton("close", "Close panel", () => events.close(spec.id))),
      ),
      this.legend.element, this.body, this.note, this.table.element, this.grip,
    );
    this.legend.element.append(this.scale);
    if (spec.lines.length === 0) this.say(spec.help);
    new ResizeObserver(() => this.resize()).observe(this.body);
  }

  /** Makes the charts. The element must be in the document, as they take its size. */
  build(): void {
    for (const chart of this.charts) chart.destroy();
    this.body.replaceChildren();
    const { lines } = this.spec;
    const mode = this.drawnMode;
    const beside = this.beside(mode);
    this.body.className = `charts ${mode}${beside ? " columns" : ""}`;
    const small = mode === "multiples";
    this.scale.hidden = this.sortButton.hidden = mode !== "heat";
    this.scale.replaceChildren(scaleBar(), h("span"));
    this.sortButton.setAttribute("aria-pressed", String(this.sorted));
    this.pointNear(null);
    this.body.append(this.near.element);
    const groups = small ? lines.slice(0, this.allCharts ? lines.length : MAX_CHARTS).map((line) => [line]) : lines.length > 0 ? (beside ? [lines, lines] : [lines]) : [];
    this.cells = [];
    this.charts = groups.map((group, at) => {
      const host = h("div", { class: "chart", role: "img", "aria-label": `Chart: ${this.spec.title}${small ? `, ${group[0]?.label}` : ""}` });
      const name = small ? (group[0]?.label ?? "") : at === 0 ? this.events.ownName() : this.events.otherName();
      const box = small || beside ? h("div", { class: "cell" }, h("span", { class: "cell-name" }, name), host) : host;
      this.body.append(box);
      this.cells.push(box);
      const chart = this.chart(host, group, mode);
      chart.marks = this.marks;
      return chart;
    });
    this.second = beside ? (this.charts[1] ?? null) : null;
    // The marks are times of the first source.
    if (this.second) this.second.marks = [];
    if (small && groups.length < lines.length) {
      this.body.append(h("button", { type: "button", class: "link", click: () => { this.allCharts = true; this.build(); } }, `${lines.length - groups.length} more`));
    }
    this.resize();
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === this.mode));
    this.legend.recolour();
    this.shownChanged();
  }

  /** A second source cannot be drawn into a heat map. */
  private get drawnMode(): Mode {
    return this.mode === "heat" && this.other !== undefined && !this.columns ? "lines" : this.mode;
  }

  /** Whether the second source has a chart of its own. */
  private beside(mode: Mode): boolean {
    return this.columns && this.other !== undefined && mode !== "multiples";
  }

  private chart(host: HTMLElement, lines: Line[], mode: Mode): Chart | HeatChart {
    const events = { ...this.events, near: (at: Pointed | null) => this.pointNear(mode === "multiples" ? null : at) };
    if (mode !== "heat") {
      const chart = new Chart(host, lines, { compared: this.other !== undefined && !this.beside(mode), origin: this.origin, stacked: mode === "stack", small: mode === "multiples", colours: this.colours() }, events);
      if (mode !== "multiples") chart.hidden = this.hidden;
      return chart;
    }
    const chart = new HeatChart(host, lines, this.spec.lowIsBad ? "low" : "high", events, this.origin);
    chart.hidden = this.hidden;
    chart.sorted = this.sorted;
    return chart;
  }

  /** The pointer is on the chart of this panel, or has left it. */
  private pointNear(at: Pointed | null): void {
    this.pointed = at;
    if (at && this.cursor !== null) this.pointAt(this.cursor);
    else this.near.hide();
  }

  /** Lists the values near the pointer. */
  private listNear(values: number[], ms: number): void {
    const { pointed, slice } = this;
    if (!pointed) return this.near.hide();
    const box = this.body.getBoundingClientRect();
    const shown = pointed.around.flatMap((at) => {
      const line = this.spec.lines[at];
      return line ? [{ name: line.label, value: format(values[at], line.quantity), colour: this.drawnMode === "heat" ? null : this.colour(line), chosen: at === pointed.line }] : [];
    });
    this.near.show(fullTime(ms, slice?.stepMs, this.origin), shown, { ...pointed, x: pointed.x - box.left, y: pointed.y - box.top });
  }

  private sort(): void {
    this.sorted = !this.sorted;
    this.build();
  }

  show(slice: Slice, from: number, to: number): void {
    this.slice = slice;
    this.range = [from, to];
    if (!this.visible) return;
    for (const chart of this.charts) {
      if (chart === this.second) chart.prepare({ ...slice, track: (number) => this.other?.(number) }, from, to);
      else chart.prepare(slice, from, to, this.other);
    }
    if (this.mode === "multiples" || this.second) this.shareScale();
    for (const chart of this.charts) chart.draw();
    this.showScale();
    this.pointAt(this.cursor);
    if (!this.table.element.hidden && performance.now() - this.filled > TABLE_PAUSE_MS) this.fillTable();
  }

  pointAt(ms: number | null): void {
    this.cursor = ms;
    if (!this.visible) return;
    for (const chart of this.charts) chart.pointAt(ms);
    const values = this.valuesAt(ms);
    const { other } = this;
    const texts = other ? this.spec.lines.map((line, at) => this.differenceAt(other, line, at, values[at] ?? NaN, ms)) : [];
    this.legend.show(values, texts, this.absent);
    if (ms === null) this.near.hide();
    else this.listNear(values, ms);
  }

  private showScale(): void {
    const [chart] = this.charts;
    if (chart instanceof HeatChart) this.scale.lastElementChild?.replaceChildren(chart.scale);
  }

  /** Checks again which lines have values. */
  look(): void {
    if (!this.visible || this.spec.lines.length === 0) return;
    this.absent = this.spec.lines.map((line) => this.events.absent(line));
    const reasons = new Set(this.absent.map((one) => one?.why ?? null));
    const [only] = reasons;
    this.note.classList.toggle("over", this.valuesIn());
    this.say(reasons.has(null) ? null : reasons.size === 1 && only ? only : "No current data.");
    this.pointAt(this.cursor);
  }

  /** Compares with another source, or with none. */
  compare(other: Other | undefined, origin: number | null = null, columns = false): void {
    if (this.other === other && this.origin === origin && this.columns === columns) return;
    Object.assign(this, { other, origin, columns });
    this.element.classList.toggle("in-columns", other !== undefined && columns);
    this.element.classList.toggle("compared", other !== undefined);
    this.build();
  }

  setMarks(marks: Mark[]): void {
    this.marks = marks;
    for (const chart of this.charts) chart.marks = chart === this.second ? [] : marks;
  }

  /** Width of its charts in pixels; 0 if there is none. */
  get width(): number {
    return this.body.clientWidth;
  }

  /** The lines that are switched off; null if none is. */
  get hiddenLines(): HiddenLines | null {
    const { lines } = this.spec;
    const { size } = this.hidden;
    if (size === 0) return null;
    const only = size > lines.length / 2;
    return { only, lines: lines.filter((_, at) => this.hidden.has(at) !== only).map(keyOf).slice(0, MAX_NAMES) };
  }

  get hasTable(): boolean {
    return !this.table.element.hidden;
  }

  /** Switches lines off and opens the table, as they were. Before it is built. */
  restore(hidden: HiddenLines | undefined, table: boolean): void {
    const named = new Set(hidden?.lines);
    if (hidden) this.spec.lines.forEach((line, at) => named.has(keyOf(line)) !== hidden.only && this.hidden.add(at));
    // Names that no line has any more must not hide all.
    if (this.hidden.size === this.spec.lines.length && named.size > 0 && hidden?.only) this.hidden.clear();
    if (table && this.spec.lines.length > 0) this.toggleTable(false);
  }

  /** What is on screen, for exports. */
  pictures(): { name: string; picture: Picture }[] {
    const small = this.mode === "multiples";
    const charts = this.charts.filter((_, at) => !small || !this.hidden.has(at));
    return charts.map((chart) => ({ name: small ? (chart.lines[0]?.label ?? "") : "", picture: chart.picture() }));
  }

  /** Values at the cursor, or the newest ones. */
  values(): { line: Line; value: number }[] {
    const values = this.valuesAt(this.cursor);
    return this.spec.lines.map((line, at) => ({ line, value: values[at] ?? NaN })).filter((_, at) => !this.hidden.has(at));
  }

  colour(line: Line): string {
    return lineColour(line.slot, this.colours(), currentTheme().dark);
  }

  /** Whether any line has values in the visible range, even if no current one. */
  private valuesIn(): boolean {
    return this.valuesAt(null).some((value) => !Number.isNaN(value)) || this.charts.some((chart) => chart.highest > 0);
  }

  private say(text: string | null): void {
    this.note.hidden = text === null;
    if (this.note.textContent !== (text ?? "")) this.note.textContent = text ?? "";
  }

  private shareScale(): void {
    const kinds = new Set(this.spec.lines.map((line) => line.quantity));
    if (kinds.size > 1) return;
    const highest = Math.max(...this.charts.filter((_, at) => this.second !== null || !this.hidden.has(at)).map((chart) => chart.highest));
    for (const chart of this.charts) chart.shareTop(highest);
  }

  private colours(): number {
    return Math.max(1, ...this.spec.lines.map((line) => line.slot + 1));
  }

  private resize(): void {
    for (const chart of this.charts) chart.fit();
  }

  private setMode(mode: Mode): void {
    if (mode === this.mode) return;
    this.mode = mode;
    this.build();
    this.events.mode(this.spec.id, mode);
  }

  private toggleTable(tell = true): void {
    const box = this.table.element;
    box.hidden = !box.hidden;
    this.element.classList.toggle("with-table", !box.hidden);
    this.tableButton.setAttribute("aria-expanded", String(!box.hidden));
    if (!box.hidden) this.fillTable();
    this.resize();
    if (this.slice) this.show(this.slice, ...this.range);
    if (tell) this.events.kept(this);
  }

  private toggle(at: number): void {
    if (this.hidden.has(at)) this.hidden.delete(at);
    else this.hidden.add(at);
    this.shownChanged();
    this.events.kept(this);
  }

  /** Shows only this line; called again, all lines. */
  private isolate(at: number): void {
    const others = this.spec.lines.map((_, other) => other).filter((other) => other !== at);
    const isSolo = others.every((other) => this.hidden.has(other));
    this.hidden.clear();
    if (!isSolo) for (const other of others) this.hidden.add(other);
    this.shownChanged();
    this.events.kept(this);
  }

  private shownChanged(): void {
    this.legend.mark(this.hidden);
    if (this.mode === "multiples") this.cells.forEach((cell, at) => (cell.hidden = this.hidden.has(at)));
    if (this.slice) this.show(this.slice, ...this.range);
  }

  private valuesAt(ms: number | null): number[] {
    const { slice } = this;
    if (!slice || slice.x.length === 0) return this.spec.lines.map(() => NaN);
    return this.spec.lines.map((line, at) => {
      const mean = slice.track(line.series.number)?.mean;
      return mean ? line.offset + line.factor * this.rawAt(slice, mean, ms, at) : NaN;
    });
  }

  /** The value of a line as it is drawn at a time; null: the last one of the range. */
  private rawAt({ x }: Slice, values: Float64Array, ms: number | null, line: number): number {
    const [from, to] = this.range;
    const chart = this.charts[this.drawnMode === "multiples" ? line : 0];
    return ms === null ? lastSince(x, values, rowAt(x, to), from) : valueNear(x, values, rowAt(x, ms), chart?.gapMs ?? 0);
  }

  /** How much the value of the second source, B, exceeds one. */
  private differenceAt(other: Other, line: Line, at: number, value: number, ms: number | null): string {
    const mean = other(line.series.number)?.mean;
    if (!mean || !this.slice) return "";
    const text = signed(line.offset + line.factor * this.rawAt(this.slice, mean, ms, at) - value, line);
    return text === "–" ? "" : ` (B ${text})`;
  }

  private fillTable(): void {
    const { slice, range, other } = this;
    if (!slice) return;
    this.filled = performance.now();
    const { title, lines } = this.spec;
    this.table.fill({ title, lines, slice, range, values: this.valuesAt(this.cursor), atCursor: this.cursor !== null, other, otherName: this.events.otherName(), origin: this.origin });
  }
}

function keyOf({ series }: Line): string {
  return series.instance ? `${series.name}@${series.instance}` : series.name;
}
