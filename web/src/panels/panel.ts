// A panel: title, legend, one chart or several small ones, and the same as a table.

import { h, ICONS, icon, iconButton } from "../elements";
import { rowAt, statistics, type Slice } from "../store";
import { clock, format } from "../units";
import type { Mode } from "../view";
import { Chart, type ChartEvents, type Mark, type Other } from "./chart";
import type { Line, PanelSpec } from "./lines";
import { currentTheme, lineColour } from "./palette";

const MODES: [Mode, string][] = [
  ["lines", "Lines over each other"],
  ["stack", "Stacked"],
  ["multiples", "One chart each"],
];

/** A table that changed with every frame could not be read, by people or their programs. */
const TABLE_PAUSE_MS = 500;

export interface PanelEvents extends ChartEvents {
  close(id: string): void;
  mode(id: string, mode: Mode): void;
  save(panel: Panel, as: "csv" | "png" | "svg"): void;
}

interface Chip {
  button: HTMLButtonElement;
  value: HTMLElement;
}

export class Panel {
  readonly element: HTMLElement;
  readonly hidden = new Set<number>();
  private readonly body = h("div", { class: "charts" });
  private readonly legend = h("div", { class: "legend", role: "group", "aria-label": "Lines" });
  private readonly table = h("table", { class: "values" });
  private readonly tableBox = h("div", { class: "table-box", hidden: true }, this.table);
  private readonly buttons = new Map<Mode, HTMLButtonElement>();
  private chips: Chip[] = [];
  private charts: Chart[] = [];
  private slice: Slice | null = null;
  private range: [number, number] = [0, 1];
  private cursor: number | null = null;
  visible = true;
  private filled = 0;
  private other: Other | undefined;

  constructor(
    readonly spec: PanelSpec,
    private mode: Mode,
    private readonly events: PanelEvents,
  ) {
    const modes = h("div", { class: "modes", role: "group", "aria-label": "How lines are drawn" });
    for (const [name, title] of MODES) {
      if (name === "stack" && !spec.adds) continue;
      const button = iconButton(name as keyof typeof ICONS, title, () => this.setMode(name));
      this.buttons.set(name, button);
      if (spec.lines.length > 1) modes.append(button);
    }
    const tableButton = iconButton("table", "As a table", () => this.toggleTable());
    tableButton.setAttribute("aria-expanded", "false");
    this.element = h("section", { class: "panel", "aria-label": spec.title, "data-panel": spec.id },
      h("header", {},
        h("h2", { title: spec.help }, spec.title),
        h("div", { class: "tools" }, modes, tableButton, this.saveMenu(), iconButton("close", "Take this panel away", () => events.close(spec.id))),
      ),
      this.legend, this.body, this.tableBox,
    );
    this.makeLegend();
    new ResizeObserver(() => this.resize()).observe(this.body);
  }

  /** Makes the charts; the element must be in the page, as they take its size. */
  build(): void {
    for (const chart of this.charts) chart.destroy();
    this.body.replaceChildren();
    this.body.className = `charts ${this.mode}`;
    const { lines } = this.spec;
    const colours = this.colours();
    const groups = this.mode === "multiples" ? lines.map((line) => [line]) : [lines];
    const hosts = groups.map((group) => {
      const host = h("div", { class: "chart", role: "img", "aria-label": `Chart: ${this.spec.title}` });
      const box = this.mode === "multiples" ? h("div", { class: "cell" }, h("span", { class: "cell-name" }, group[0]?.label ?? ""), host) : host;
      this.body.append(box);
      return host;
    });
    this.charts = groups.map((group, at) => {
      const look = { compared: this.other !== undefined && this.mode !== "stack", stacked: this.mode === "stack", small: this.mode === "multiples", colours };
      const chart = new Chart(hosts[at] as HTMLElement, group, look, this.events);
      if (this.mode !== "multiples") chart.hidden = this.hidden;
      return chart;
    });
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === this.mode));
    this.recolour();
    if (this.slice) this.show(this.slice, ...this.range);
  }

  show(slice: Slice, from: number, to: number): void {
    this.slice = slice;
    this.range = [from, to];
    if (!this.visible) return;
    for (const chart of this.charts) chart.show(slice, from, to, this.other);
    this.pointAt(this.cursor);
    if (!this.tableBox.hidden && performance.now() - this.filled > TABLE_PAUSE_MS) this.fillTable();
  }

  pointAt(ms: number | null): void {
    this.cursor = ms;
    if (!this.visible) return;
    for (const chart of this.charts) chart.pointAt(ms);
    const values = this.valuesAt(ms);
    this.chips.forEach((chip, at) => {
      const line = this.spec.lines[at];
      const difference = line && this.other ? this.differenceAt(line, values[at] ?? NaN, ms) : "";
      chip.value.textContent = format(values[at], line?.quantity ?? "count") + difference;
    });
  }

  /** Draws another source beside this one, or no longer. */
  compare(other: Other | undefined): void {
    if (this.other === other) return;
    this.other = other;
    this.build();
  }

  setMarks(marks: Mark[]): void {
    for (const chart of this.charts) chart.marks = marks;
  }

  resize(): void {
    for (const chart of this.charts) {
      const host = chart.plot.root.parentElement;
      if (host) chart.resize(host.clientWidth, host.clientHeight);
    }
  }

  canvases(): HTMLCanvasElement[] {
    return this.charts.map((chart) => chart.plot.ctx.canvas);
  }

  /** What is on screen, in shown units. */
  current(): { slice: Slice | null; range: [number, number] } {
    return { slice: this.slice, range: this.range };
  }

  colour(line: Line): string {
    return lineColour(line.slot, this.colours(), currentTheme().dark);
  }

  private colours(): number {
    return Math.max(0, ...this.spec.lines.map((line) => line.slot)) + 1;
  }

  private setMode(mode: Mode): void {
    this.mode = mode;
    this.events.mode(this.spec.id, mode);
    this.build();
  }

  private toggleTable(): void {
    this.tableBox.hidden = !this.tableBox.hidden;
    this.element.classList.toggle("with-table", !this.tableBox.hidden);
    this.element.querySelector(".tools > [aria-expanded]")?.setAttribute("aria-expanded", String(!this.tableBox.hidden));
    if (!this.tableBox.hidden) this.fillTable();
    this.resize();
    if (this.slice) this.show(this.slice, ...this.range);
  }

  private saveMenu(): HTMLElement {
    const item = (as: "csv" | "png" | "svg", text: string) =>
      h("button", { type: "button", click: () => { menu.open = false; this.events.save(this, as); } }, text);
    const menu = h("details", { class: "menu" },
      h("summary", { title: "Save this panel", "aria-label": "Save this panel" }, icon(ICONS.download)),
      h("div", { class: "menu-items" }, item("csv", "Values, CSV"), item("png", "Picture, PNG"), item("svg", "Drawing, SVG")));
    return menu;
  }

  private makeLegend(): void {
    const word = sharedWord(this.spec.lines);
    if (word) this.legend.append(h("span", { class: "quiet word" }, word));
    this.chips = this.spec.lines.map((line, at) => {
      const value = h("span", { class: "value" });
      const button = h("button", {
        type: "button", class: "chip", "aria-pressed": "true", "aria-label": line.label,
        title: `${line.series.name}${line.series.instance ? `@${line.series.instance}` : ""} – click: on or off, double-click: alone`,
        click: (event: MouseEvent) => (event.detail === 2 ? this.isolate(at) : this.toggle(at)),
      }, h("span", { class: "swatch" }), h("span", { class: "name" }, line.label.slice(word.length).trim()), value);
      this.legend.append(button);
      return { button, value };
    });
  }

  /** Swatches take their colours by script: the content policy allows no style in the page's text. */
  private recolour(): void {
    this.chips.forEach((chip, at) => {
      const line = this.spec.lines[at];
      const swatch = chip.button.querySelector<HTMLElement>(".swatch");
      if (line && swatch) swatch.style.background = this.colour(line);
    });
  }

  private toggle(at: number): void {
    if (this.hidden.has(at)) this.hidden.delete(at);
    else this.hidden.add(at);
    this.shownChanged();
  }

  /** Shows this line alone; again: all of them. */
  private isolate(at: number): void {
    const others = this.spec.lines.map((_, other) => other).filter((other) => other !== at);
    const alone = others.every((other) => this.hidden.has(other));
    this.hidden.clear();
    if (!alone) for (const other of others) this.hidden.add(other);
    this.shownChanged();
  }

  private shownChanged(): void {
    this.chips.forEach((chip, at) => chip.button.setAttribute("aria-pressed", String(!this.hidden.has(at))));
    if (this.slice) this.show(this.slice, ...this.range);
  }

  private valuesAt(ms: number | null): number[] {
    const { slice } = this;
    if (!slice || slice.x.length === 0) return [];
    return this.spec.lines.map((line) => {
      const mean = slice.track(line.series.number)?.mean;
      if (!mean) return NaN;
      return line.offset + line.factor * this.valueAt(slice, mean, ms);
    });
  }

  /** How much a value is above the one beside it. */
  private differenceAt(line: Line, value: number, ms: number | null): string {
    const mean = this.other?.(line.series.number)?.mean;
    const beside = mean && this.slice ? line.offset + line.factor * this.valueAt(this.slice, mean, ms) : NaN;
    return signed(value - beside, line);
  }

  /** The value at a time; without one, the last that was measured before the range ends. */
  private valueAt(slice: Slice, values: Float64Array, ms: number | null): number {
    return ms === null ? lastOf(values, rowAt(slice.x, this.range[1])) : (values[rowAt(slice.x, ms)] ?? NaN);
  }

  private fillTable(): void {
    const { slice, range } = this;
    if (!slice) return;
    this.filled = performance.now();
    const head = h("tr", {}, ...["", this.cursor === null ? "last" : "at cursor", "min", "mean", "max", ...(this.other ? ["mean more than the other"] : [])].map((text) => h("th", { scope: "col" }, text)));
    const values = this.valuesAt(this.cursor);
    const rows = this.spec.lines.map((line, at) => {
      const track = slice.track(line.series.number);
      const s = track ? statistics(slice.x, track, ...range) : null;
      const text = (raw: number | undefined) => format(raw === undefined ? null : line.offset + line.factor * raw, line.quantity);
      const turned = line.factor < 0;
      const beside = this.other?.(line.series.number);
      const otherMean = beside ? statistics(slice.x, beside, ...range).mean : NaN;
      return h("tr", {}, h("th", { scope: "row" }, line.label), h("td", {}, format(values[at], line.quantity)),
        h("td", {}, text(turned ? s?.max : s?.min)), h("td", {}, text(s?.mean)), h("td", {}, text(turned ? s?.min : s?.max)),
        this.other ? h("td", {}, signed(line.factor * ((s?.mean ?? NaN) - otherMean), line).replace(/[()]/g, "").trim() || "–") : null);
    });
    const caption = h("caption", {}, `${this.spec.title}, ${clock(range[0], slice.stepMs)} to ${clock(range[1], slice.stepMs)}`);
    this.table.replaceChildren(caption, h("thead", {}, head), h("tbody", {}, ...rows));
  }
}

/** The word with which all labels begin, as `node` of `node 0`; it need not be said for each. */
function sharedWord(lines: Line[]): string {
  const [first] = lines;
  const word = first && /^([A-Za-z]+) \d/.exec(first.label)?.[1];
  return word && lines.length > 2 && lines.every((line) => line.label.startsWith(`${word} `)) ? word : "";
}

function signed(difference: number, line: Line): string {
  if (!Number.isFinite(difference)) return "";
  return ` (${difference < 0 ? "−" : "+"}${format(Math.abs(difference), line.quantity)})`;
}

/** The last measured value up to a row; a bucket that is not full yet has none. */
function lastOf(values: Float64Array, row: number): number {
  for (let at = row; at >= Math.max(0, row - 50); at--) {
    const value = values[at] as number;
    if (!Number.isNaN(value)) return value;
  }
  return NaN;
}
