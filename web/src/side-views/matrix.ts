// Node by node: which node's memory the threads of each node used over the visible range, where samples of
// instructions were taken; or the distances that the firmware reports, and at the cursor's time the allocations on
// each node by its own CPUs and by those of other nodes. No counter of the kernel says which other nodes.

import { h, svg } from "../elements";
import { currentTheme, lightGrey, lightText, loadColour, neutralColour } from "../panels/palette";
import type { Catalog } from "../series";
import { lastMeasured, rowAt } from "../store";
import type { Machine } from "../topology";
import { format } from "../units";
import { MemoryUse, wholePercent, type Totals } from "./memory-use";
import type { SideContext, SideView, Visible } from "./side-view";

const WIDTH = 308;
const MARGIN = { left: 26, top: 16, right: 74 };
const BAR_GAP = 10;
const MAX_CELLS = 40;
/** Of the colour scale, what the farthest distance and the highest use take: text stays readable. */
const FULL = 0.8;

const USES = {
  time: { name: "Memory time", help: "Time that threads waited for memory outside of the caches, in the visible range", whole: "at memory", some: "time at memory" },
  pages: { name: "Pages in use", help: "Pages that threads used, each once in two seconds, in the visible range: on emulated processors time cannot be told", whole: "pages", some: "pages in use" },
} as const;

interface Cell {
  rect: SVGRectElement;
  text: SVGTextElement | null;
  title: SVGTitleElement;
}

interface Row {
  node: number;
  near: SVGRectElement;
  far: SVGRectElement;
  title: SVGTitleElement;
}

/** Null if there is only one node. */
export const matrixView = (context: SideContext): SideView | null =>
  context.machine && context.machine.nodes.length > 1 ? new Matrix(context.machine, context) : null;

class Matrix implements SideView {
  readonly element: HTMLElement;
  private rows: Row[] = [];
  /** By position of the CPUs' node, then of the memory's. */
  private cells: Cell[][] = [];
  private readonly stage = h("div", { class: "stage" });
  private readonly footer = h("footer", { class: "quiet" });
  private readonly whole = h("span");
  /** For screen readers: the table and its cells. */
  private heard: HTMLElement = h("table");
  private heardCells: HTMLElement[][] = [];
  private readonly catalog: Catalog;
  private readonly use: MemoryUse | null;
  private readonly buttons: HTMLButtonElement[] = [];
  private shown: Totals | null = null;
  private barWidth = 0;

  constructor(
    private readonly machine: Machine,
    private readonly context: SideContext,
  ) {
    this.catalog = context.catalog;
    this.use = machine.nodes.length <= MAX_CELLS ? MemoryUse.of(machine, context.catalog) : null;
    this.element = h("section", { class: "side matrix", "aria-label": "Nodes" }, h("header", {}, h("h2", {}, "Nodes"), this.choice()), this.stage, this.footer, this.heard);
    this.draw();
  }

  /** The use that is shown; null while distances are. */
  private get chosen(): MemoryUse | null {
    return this.context.view.nodes === "distances" ? null : this.use;
  }

  /** The series of the allocations next to the distances. */
  private get allocations(): number[] {
    return ["local_allocations", "remote_allocations"].flatMap((name) => this.catalog.entry(name)?.series ?? []).filter((s) => s.instance.startsWith("node")).map((s) => s.number);
  }

  private get hasBars(): boolean {
    return this.chosen !== null || this.allocations.length > 0;
  }

  series(): number[] {
    return this.chosen?.series() ?? this.allocations;
  }

  /** Between use and distances; without use, what the distances come with, and why there is no use. */
  private choice(): HTMLElement {
    if (!this.use) {
      const absent = this.catalog.source.absent.find(({ name }) => name === "access" || name === "access.memory");
      return h("span", { class: "quiet", title: absent ? `No memory time: ${absent.missing}; ${absent.seen}; ${absent.fix}` : "" }, this.hasBars ? "distances; allocations" : "distances");
    }
    const { name, help } = USES[this.use.kind];
    const button = (shows: "use" | "distances", text: string, title: string) => {
      const made = h("button", { type: "button", title, click: () => this.choose(shows) }, text);
      made.dataset.shows = shows;
      this.buttons.push(made);
      return made;
    };
    return h("div", { class: "choice", role: "group", "aria-label": "Nodes show" }, button("use", name, help), button("distances", "Distances", "Distances from the firmware; allocations at the cursor"));
  }

  private choose(shows: "use" | "distances"): void {
    this.context.view.nodes = shows;
    this.draw();
    this.context.changed();
  }

  private draw(): void {
    const { nodes, distances } = this.machine;
    const right = this.hasBars ? MARGIN.right : 4;
    const size = Math.min(34, (WIDTH - MARGIN.left - right) / nodes.length);
    const dark = currentTheme().dark;
    const max = Math.max(11, ...distances.flat());
    const root = svg("g");
    const every = Math.ceil(12 / size);
    const barFrom = MARGIN.left + nodes.length * size + BAR_GAP;
    this.barWidth = WIDTH - barFrom - 2;
    [this.rows, this.cells, this.shown] = [[], [], null];
    nodes.forEach((from, row) => {
      const y = MARGIN.top + row * size;
      if (row % every === 0) {
        root.append(svg("text", { class: "axis choosable", x: MARGIN.left - 6, y: y + size / 2 + 3.5, "text-anchor": "end", click: () => this.context.showNode(from.id) }, String(from.id)));
      }
      if (row % (every * 2) === 0 || every === 1) {
        root.append(svg("text", { class: "axis choosable", x: MARGIN.left + (row + 0.5) * size, y: MARGIN.top - 5, "text-anchor": "middle", click: () => this.context.showNode(from.id) }, String(from.id)));
      }
      if (nodes.length <= MAX_CELLS) this.cells.push(nodes.map((_, column) => this.cell(root, from.id, MARGIN.left + column * size, y, size)));
      if (this.hasBars) this.bars(root, from.id, barFrom, y, size);
    });
    if (nodes.length > MAX_CELLS) root.append(this.image(size * nodes.length, max, dark));
    const height = MARGIN.top + nodes.length * size + 4;
    this.stage.replaceChildren(svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "drawing", "aria-hidden": "true" }, root));
    this.legend();
    if (this.chosen) return;
    this.paint((row, column) => {
      const distance = distances[row]?.[column];
      return { share: shareOf(distance, max), text: String(distance ?? "–"), title: describe(nodes[row]?.id, nodes[column]?.id, distance) };
    });
  }

  /** The buttons, the footer and the table for screen readers, for what is shown now. */
  private legend(): void {
    for (const button of this.buttons) button.setAttribute("aria-pressed", String((button.dataset.shows === "use") === (this.chosen !== null)));
    const keys = this.chosen
      ? [this.whole, key("near", "local"), key("far", "remote")]
      : this.hasBars ? [key("near", "by own CPUs"), key("far", "by CPUs of other nodes")] : [];
    this.footer.replaceChildren(...keys);
    const table = this.table();
    this.heard.replaceWith(table);
    this.heard = table;
  }

  show(visible: Visible): void {
    if (this.chosen) this.showUse(this.chosen, visible);
    else if (this.hasBars) this.showAllocations(visible);
  }

  private showUse(use: MemoryUse, visible: Visible): void {
    const totals = use.over(visible);
    if (totals === this.shown) return;
    this.shown = totals;
    this.paint((row, column) => {
      const value = totals.cells[row]?.[column] ?? NaN;
      const share = totals.highest > 0 ? (value / totals.highest) * FULL : NaN;
      return { share, text: wholePercent(value / totals.all), title: use.describe(totals, row, column) };
    });
    const { whole, some } = USES[use.kind];
    this.whole.textContent = totals.all > 0 ? `% of ${format(totals.all, totals.quantity)} ${whole}; rows: CPUs, columns: memory` : `no ${some} in this range`;
    this.showBars(totals.rows.map(({ near, far }) => [near, far]), (node, near, far) =>
      `threads on node ${node}: ${format(near, totals.quantity)} ${whole} of their own node, ${format(far, totals.quantity)} of other nodes`);
  }

  private showAllocations({ slice, at }: Visible): void {
    const row = rowAt(slice.x, at);
    const value = (name: string, node: number) => {
      const series = this.catalog.at(name, `node${node}`);
      const values = series && slice.track(series.number)?.mean;
      return values ? lastMeasured(values, row) : NaN;
    };
    this.showBars(this.rows.map(({ node }) => [value("local_allocations", node), value("remote_allocations", node)]), (node, near, far) =>
      `memory of node ${node}: ${format(near, "count/s")} allocations by its own CPUs, ${format(far, "count/s")} by CPUs of other nodes`);
  }

  /** Draws the bar of each node, the longest over the whole width. */
  private showBars(values: [number, number][], describe: (node: number, near: number, far: number) => string): void {
    const max = Math.max(...values.map(([near, far]) => (near || 0) + (far || 0))) || 1;
    const width = this.barWidth;
    this.rows.forEach((bars, index) => {
      const [near, far] = values[index] ?? [NaN, NaN];
      const first = ((near || 0) / max) * width;
      bars.near.setAttribute("width", String(first));
      bars.far.setAttribute("x", String(Number(bars.near.getAttribute("x")) + first));
      bars.far.setAttribute("width", String(((far || 0) / max) * width));
      bars.title.textContent = describe(bars.node, near, far);
    });
  }

  /** Colours all cells and writes into them; a share that is NaN has no colour. */
  private paint(content: (row: number, column: number) => { share: number; text: string; title: string }): void {
    const dark = currentTheme().dark;
    this.cells.forEach((cells, row) => cells.forEach((cell, column) => {
      const { share, text, title } = content(row, column);
      const known = Number.isFinite(share);
      // A distance is neither good nor bad.
      const [colour, light] = this.chosen ? [loadColour(share, dark), lightText(share, dark)] : [neutralColour(share, dark), lightGrey(share, dark)];
      cell.rect.style.fill = known ? colour : "var(--sunk)";
      cell.title.textContent = title;
      if (cell.text) {
        cell.text.textContent = text;
        cell.text.setAttribute("class", !known ? "cell" : light ? "cell on-dark" : "cell on-light");
      }
      const heard = this.heardCells[row]?.[column];
      if (heard) heard.textContent = text;
    }));
  }

  /** All cells as one image with one pixel each: thousands of elements would be slow. */
  private image(side: number, max: number, dark: boolean): SVGGElement {
    const { nodes, distances } = this.machine;
    const canvas = h("canvas", { width: nodes.length, height: nodes.length });
    const context = canvas.getContext("2d");
    const title = svg("title");
    /** The row and the column under the pointer. */
    const place = (event: MouseEvent): [number, number] => {
      const box = image.getBoundingClientRect();
      const at = (along: number, whole: number) => Math.min(nodes.length - 1, Math.max(0, Math.floor((along / whole) * nodes.length)));
      return [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
    };
    const image = svg("image", {
      x: MARGIN.left, y: MARGIN.top, width: side, height: side, class: "cells choosable",
      click: (event: MouseEvent) => this.context.showNode(nodes[place(event)[0]]?.id ?? null),
      pointermove: (event: PointerEvent) => {
        const [row, column] = place(event);
        title.textContent = describe(nodes[row]?.id, nodes[column]?.id, distances[row]?.[column]);
      },
    });
    if (context) {
      nodes.forEach((_, row) => nodes.forEach((__, column) => {
        context.fillStyle = neutralColour(shareOf(distances[row]?.[column], max), dark);
        context.fillRect(column, row, 1, 1);
      }));
      image.setAttribute("href", canvas.toDataURL());
    }
    return svg("g", {}, image, title);
  }

  private cell(root: SVGGElement, node: number, x: number, y: number, size: number): Cell {
    const gap = size > 8 ? 1.5 : size > 5 ? 0.5 : -0.05;
    const title = svg("title");
    const rect = svg("rect", { x, y, width: size - gap, height: size - gap, rx: size > 12 ? 2 : 0, class: "choosable", click: () => this.context.showNode(node) }, title);
    const text = size >= 17 ? svg("text", { x: x + (size - gap) / 2, y: y + size / 2 + 3, "text-anchor": "middle" }) : null;
    root.append(rect);
    if (text) root.append(text);
    return { rect, text, title };
  }

  private bars(root: SVGGElement, node: number, x: number, y: number, size: number): void {
    const tall = Math.max(1, Math.min(size - 3, 12));
    const top = y + (size - 1.5 - tall) / 2;
    const near = svg("rect", { class: "near", x, y: top, width: 0, height: tall });
    const far = svg("rect", { class: "far", x, y: top, width: 0, height: tall });
    const title = svg("title");
    root.append(svg("g", {}, title, svg("rect", { class: "bar-back", x, y: top, width: this.barWidth, height: tall }), near, far));
    this.rows.push({ node, near, far, title });
  }

  /** What the cells show as a table, for screen readers. */
  private table(): HTMLElement {
    const { nodes, distances } = this.machine;
    this.heardCells = [];
    if (nodes.length > 32) return h("p", { class: "unseen" }, `Distances of ${nodes.length} nodes`);
    const caption = this.chosen ? `${USES[this.chosen.kind].name} of the CPUs of a node at the memory of a node, % of all` : "Distances between nodes";
    this.heardCells = nodes.map((_, row) => nodes.map((__, column) => h("td", {}, this.chosen ? "–" : String(distances[row]?.[column] ?? "–"))));
    const head = h("tr", {}, h("th", {}, "from"), ...nodes.map((node) => h("th", { scope: "col" }, `node ${node.id}`)));
    const rows = nodes.map((node, row) => h("tr", {}, h("th", { scope: "row" }, `node ${node.id}`), ...(this.heardCells[row] ?? [])));
    // A table is never narrower than its content; what is around it is.
    return h("div", { class: "unseen" }, h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...rows)));
  }
}

/** Position of a distance on the colour scale; 10 is the node itself. */
function shareOf(distance: number | undefined, max: number): number {
  return distance === undefined ? 0 : ((distance - 10) / (max - 10)) * FULL;
}

function describe(from: number | undefined, to: number | undefined, distance: number | undefined): string {
  return `node ${from} to node ${to}: distance ${distance ?? "unknown"}`;
}

function key(kind: "near" | "far", text: string): HTMLElement {
  return h("span", { class: `key ${kind}` }, text);
}
