// The machine: packages, nodes and CPUs, coloured by their load at the cursor or now.

import { h, svg } from "../elements";
import { currentTheme, lightText, lineColour, loadColour } from "../panels/palette";
import { scaleBar } from "../panels/scale";
import type { Catalog } from "../series";
import { lastMeasured, rowAt, type Slice } from "../store";
import { squares, type Machine, type NodeView } from "../topology";
import { digits, format } from "../units";
import type { SideContext, SideView, Visible } from "./side-view";

type Colour = "cpu" | "memory" | "locality" | "traffic";

const COLOURS: [Colour, string, string][] = [
  ["cpu", "CPU", "CPU time that is busy"],
  ["memory", "Memory", "Memory in use"],
  ["locality", "Remote %", "Share of allocations by CPUs of other nodes"],
  ["traffic", "Remote/s", "Allocations per second by CPUs of other nodes, relative to the highest node"],
];

const MAX_CPUS = 256;
/** More series of CPUs would be much to fetch. */
const MAX_CPU_SERIES = 768;
/** Where the time of a CPU goes, the most telling first: time that is not busy, and other. */
const IDLE = ["cpu.idle", "cpu.iowait"];
const CPU_TIMES = ["cpu.idle", "cpu.user", "cpu.system", "cpu.nice", "cpu.steal", "cpu.iowait"];

interface Drawn {
  node: NodeView;
  box: SVGRectElement;
  text: SVGTextElement;
  bar: SVGRectElement;
  barLength: number;
  cells: { element: SVGRectElement; cpu: number }[];
  title: SVGTitleElement;
  group: SVGGElement;
}

/** Null if the topology is unknown. */
export const machineView = (context: SideContext): SideView | null => (context.machine ? new MachineDrawing(context.machine, context) : null);

class MachineDrawing implements SideView {
  readonly element: HTMLElement;
  private readonly stage = h("div", { class: "stage" });
  private readonly hint = h("span", { class: "quiet" });
  private readonly choice = h("select", { class: "node-choice", "aria-label": "Panels show", title: "Show a node alone in all panels" });
  private readonly buttons = new Map<Colour, HTMLButtonElement>();
  private readonly catalog: Catalog;
  private colour: string;
  private nodes: Drawn[] = [];
  private highest = 1;

  constructor(
    private readonly machine: Machine,
    private readonly context: SideContext,
  ) {
    this.catalog = context.catalog;
    this.colour = context.view.colour;
    const choice = h("div", { class: "choice", role: "group", "aria-label": "Coloured by" });
    for (const [name, text, help] of COLOURS) {
      if (this.needs(name).length === 0) continue;
      const button = h("button", { type: "button", title: help, click: () => this.choose(name) }, text);
      this.buttons.set(name, button);
      choice.append(button);
    }
    if (!this.buttons.has(this.colour as Colour)) this.colour = [...this.buttons.keys()][0] ?? "cpu";
    this.element = h("section", { class: "side machine", "aria-label": "Machine" },
      h("header", {}, h("h2", {}, "Machine"), this.isColoured ? choice : null), this.stage, h("footer", {}, this.isColoured ? scaleBar() : null, this.hint, this.nodeChoice()));
    this.draw();
  }

  /** Whether a load was sampled. */
  private get isColoured(): boolean {
    return this.buttons.size > 0;
  }

  /** The same as a click on a node, for keys, screen readers and fingers. */
  private nodeChoice(): HTMLElement | null {
    const { nodes } = this.machine;
    if (nodes.length < 2) return null;
    const { choice } = this;
    choice.append(h("option", { value: "" }, "all nodes"), ...nodes.map(({ id }) => h("option", { value: id }, `node ${id}`)));
    choice.addEventListener("change", () => {
      const node = choice.value === "" ? null : Number(choice.value);
      if (node !== this.context.view.node) this.context.showNode(node);
    });
    return choice;
  }

  /** The series that the current colouring needs. */
  series(): number[] {
    const numbers = this.needs(this.colour as Colour).concat(this.needs("memory"));
    return numbers.concat(this.cpuTimes().flatMap((name) => (this.catalog.entry(name)?.series ?? []).map((s) => s.number)));
  }

  private draw(): void {
    for (const [name, button] of this.buttons) button.setAttribute("aria-pressed", String(name === this.colour));
    this.nodes = [];
    const width = 308;
    const { packages, nodes } = this.machine;
    const many = nodes.length > 16;
    const columns = many ? Math.ceil(Math.sqrt(nodes.length * 1.2)) : Math.max(1, ...packages.map((p) => Math.min(p.nodes.length, 2)));
    const root = svg("g");
    const height = many ? this.drawTiles(root, width, columns) : this.drawPackages(root, width, columns);
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "drawing", role: "img", "aria-label": "The machine, coloured by load" }, root);
    this.stage.replaceChildren(drawing);
  }

  show({ slice, at }: Visible): void {
    const row = rowAt(slice.x, at);
    const theme = currentTheme();
    const loads = this.nodes.map(({ node }) => this.nodeLoad(slice, row, node.id));
    if (this.colour === "traffic") this.highest = Math.max(1, ...loads.map((l) => l.value).filter(Number.isFinite));
    this.nodes.forEach((drawn, index) => {
      const load = loads[index] ?? { value: NaN, text: "–" };
      const share = this.colour === "traffic" ? load.value / this.highest : load.value / 100;
      const known = Number.isFinite(share);
      drawn.box.style.fill = known ? loadColour(share, theme.dark) : "var(--sunk)";
      drawn.text.textContent = load.text;
      drawn.box.parentElement?.classList.toggle("on-dark", known && lightText(share, theme.dark));
      drawn.box.parentElement?.classList.toggle("on-light", known && !lightText(share, theme.dark));
      const used = this.memoryUsed(slice, row, drawn.node);
      drawn.bar.setAttribute("width", String(drawn.barLength * (Number.isFinite(used) ? Math.min(1, used) : 0)));
      drawn.title.textContent = this.describe(drawn.node, load.text, used);
      for (const cell of drawn.cells) {
        const busy = this.cpuBusy(slice, row, cell.cpu);
        cell.element.style.fill = Number.isFinite(busy) ? loadColour(busy, theme.dark) : "var(--sunk)";
      }
    });
    this.markChosen();
    this.hint.textContent = !this.isColoured ? "no load was sampled" : this.colour === "traffic" ? `0 – ${format(this.highest, "count/s")}` : "0 – 100 %";
  }

  /** Fades the nodes that panels do not show. */
  private markChosen(): void {
    const { node } = this.context.view;
    const text = node === null ? "" : String(node);
    if (this.choice.value !== text) this.choice.value = text;
    for (const drawn of this.nodes) drawn.group.classList.toggle("faded", node !== null && drawn.node.id !== node);
  }

  private choose(name: Colour): void {
    this.colour = name;
    this.draw();
    this.context.view.colour = name;
    this.context.changed();
  }

  /** The metrics by which the cells of CPUs are coloured; none for many CPUs. */
  private cpuTimes(): string[] {
    const count = this.catalog.entry("cpu.idle")?.series.length ?? 0;
    if (count === 0 || count > MAX_CPUS) return [];
    return CPU_TIMES.filter((name) => this.catalog.entry(name)).slice(0, Math.floor(MAX_CPU_SERIES / count));
  }

  private needs(colour: Colour): number[] {
    const names = { cpu: ["idle"], memory: ["node.MemUsed", "node.MemTotal"], locality: ["locality"], traffic: ["remote_allocations"] }[colour] ?? [];
    return names.filter((name) => !this.catalog.untold(name)).flatMap((name) => this.catalog.entry(name)?.series ?? []).filter((s) => s.instance.startsWith("node")).map((s) => s.number);
  }

  private at(slice: Slice, row: number, name: string, instance: string): number {
    const series = this.catalog.at(name, instance);
    const values = series && slice.track(series.number)?.mean;
    return series && values ? lastMeasured(values, row) * series.factor : NaN;
  }

  private nodeLoad(slice: Slice, row: number, node: number): { value: number; text: string } {
    const where = `node${node}`;
    const percent = (value: number) => ({ value, text: Number.isFinite(value) ? `${digits(Math.round(value))} %` : "–" });
    if (this.colour === "memory") return percent(100 * this.at(slice, row, "node.MemUsed", where) / this.at(slice, row, "node.MemTotal", where));
    if (this.colour === "locality") return percent(100 - this.at(slice, row, "locality", where));
    if (this.colour === "cpu") return percent(100 - this.at(slice, row, "idle", where));
    const value = this.at(slice, row, "remote_allocations", where);
    return { value, text: format(value, "count/s") };
  }

  private memoryUsed(slice: Slice, row: number, node: NodeView): number {
    const used = this.at(slice, row, "node.MemUsed", `node${node.id}`);
    return node.memoryBytes ? used / node.memoryBytes : NaN;
  }

  private cpuBusy(slice: Slice, row: number, cpu: number): number {
    return busyShare(this.cpuTimes().map((name) => [name, this.at(slice, row, name, `cpu${cpu}`)]));
  }

  private describe(node: NodeView, text: string, used: number): string {
    const memory = node.memoryBytes === null ? "" : `, ${format(node.memoryBytes, "bytes")}`;
    const share = Number.isFinite(used) ? ` ${digits(Math.round(used * 100))} % in use` : "";
    return `node ${node.id}: ${node.cores.length} cores, ${node.cpus.length} CPUs${memory}${share}; ${text}`;
  }

  private drawPackages(root: SVGGElement, width: number, columns: number): number {
    const [pad, gap, top] = [8, 6, 18];
    const nodeWidth = (width - 2 * pad - gap * (columns - 1)) / columns;
    const nodeHeight = 78;
    let y = 0;
    for (const one of this.machine.packages) {
      const rows = Math.ceil(one.nodes.length / columns);
      const height = top + rows * (nodeHeight + gap) + pad - gap;
      root.append(svg("rect", { class: "package", x: 0.5, y: y + 0.5, width: width - 1, height: height - 1, rx: 5 }),
        svg("text", { class: "package-name", x: pad, y: y + 13 }, one.name));
      one.nodes.forEach((node, at) => {
        const x = pad + (at % columns) * (nodeWidth + gap);
        root.append(this.drawNode(node, x, y + top + Math.floor(at / columns) * (nodeHeight + gap), nodeWidth, nodeHeight));
      });
      y += height + 8;
    }
    return y - 8;
  }

  private drawNode(node: NodeView, x: number, y: number, width: number, height: number): SVGGElement {
    const title = svg("title");
    const box = svg("rect", { class: "node", x: 0, y: 0, width, height: 22, rx: 3 });
    const text = svg("text", { x: width - 6, y: 15, "text-anchor": "end", class: "node-value" });
    const head = svg("g", { class: "node-head" }, box, svg("text", { x: 6, y: 15, class: "node-name" }, `node ${node.id}`), text);
    const barLength = width;
    const back = svg("rect", { class: "used-back", x: 0, y: height - 6, width: barLength, height: 6, rx: 2 });
    const bar = svg("rect", { class: "used", x: 0, y: height - 6, width: 0, height: 6, rx: 2 });
    bar.style.fill = lineColour(node.id, Math.max(...this.machine.nodes.map((n) => n.id)) + 1, currentTheme().dark);
    const group = svg("g", { transform: `translate(${x} ${y})`, ...this.clickable(node) }, title, svg("rect", { class: "node-area", x: 0, y: 0, width, height }), head, back, bar);
    const cells: Drawn["cells"] = [];
    const cpus = node.cores.length > 0 ? node.cores.flatMap((core) => core.cpus) : node.cpus;
    squares(cpus.length, width, height - 22 - 6 - 10, 2, 15).forEach((cell, at) => {
      const element = svg("rect", { class: "cpu", x: cell.x, y: 27 + cell.y, width: cell.size, height: cell.size, rx: Math.min(2, cell.size / 4) }, svg("title", {}, `CPU ${cpus[at]}`));
      group.append(element);
      cells.push({ element, cpu: cpus[at] ?? -1 });
    });
    this.nodes.push({ node, box, text, bar, barLength, cells, title, group });
    return group;
  }

  private clickable(node: NodeView): { class: string; click?: () => void } {
    return this.machine.nodes.length > 1 ? { class: "choosable", click: () => this.context.showNode(node.id) } : { class: "" };
  }

  /** Many nodes: one tile for each, with its number and load only. */
  private drawTiles(root: SVGGElement, width: number, columns: number): number {
    const gap = 3;
    const size = (width - gap * (columns - 1)) / columns;
    const tall = Math.max(15, size * 0.8);
    this.machine.nodes.forEach((node, at) => {
      const title = svg("title");
      const box = svg("rect", { class: "node", x: 0, y: 0, width: size, height: tall, rx: 2 });
      const name = svg("text", { x: size / 2, y: tall / 2 + 3.5, "text-anchor": "middle", class: "tile-name" }, String(node.id));
      const group = svg("g", { transform: `translate(${(at % columns) * (size + gap)} ${Math.floor(at / columns) * (tall + gap)})`, ...this.clickable(node) }, title, svg("g", { class: "node-head" }, box, name));
      root.append(group);
      this.nodes.push({ node, box, text: svg("text"), bar: svg("rect"), barLength: 0, cells: [], title, group });
    });
    return Math.ceil(this.machine.nodes.length / columns) * (tall + gap);
  }
}

/** The busy share of a CPU from where its time goes, in percent; NaN if its clock stands still: then nothing is known of it. */
export function busyShare(times: [string, number][]): number {
  const known = times.filter(([, percent]) => Number.isFinite(percent));
  const sum = (of: [string, number][]) => of.reduce((all, [, percent]) => all + percent, 0);
  if (!known.some(([name]) => name === "cpu.idle") || sum(known) <= 0) return NaN;
  return 1 - sum(known.filter(([name]) => IDLE.includes(name))) / 100;
}
