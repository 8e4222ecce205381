// The distances between nodes that the firmware reports, and at the cursor's time the allocations on
// each node by its own CPUs and by those of other nodes. No counter of the kernel says which other
// nodes, so the cells are coloured by distance only.

import { h, svg } from "../elements";
import { currentTheme, lightText, loadColour } from "../panels/palette";
import type { Catalog } from "../series";
import { lastMeasured, rowAt } from "../store";
import type { Machine } from "../topology";
import { format } from "../units";
import type { SideContext, SideView, Visible } from "./side-view";

const WIDTH = 308;
const MARGIN = { left: 26, top: 16, right: 74 };
const BAR_GAP = 10;
const MAX_CELLS = 40;

interface Row {
  node: number;
  near: SVGRectElement;
  far: SVGRectElement;
  title: SVGTitleElement;
}

/** Null if there is only one node. */
export const matrixView = ({ machine, catalog }: SideContext): SideView | null =>
  machine && machine.nodes.length > 1 ? new Matrix(machine, catalog) : null;

class Matrix implements SideView {
  readonly element: HTMLElement;
  private readonly rows: Row[] = [];
  private readonly stage = h("div", { class: "stage" });
  private readonly moving: boolean;
  private barWidth = 0;

  constructor(
    private readonly machine: Machine,
    private readonly catalog: Catalog,
  ) {
    this.moving = this.series().length > 0;
    const bars = this.moving ? [key("near", "by own CPUs"), key("far", "by CPUs of other nodes")] : [];
    this.element = h("section", { class: "side matrix", "aria-label": "Nodes" },
      h("header", {}, h("h2", {}, "Nodes"), h("span", { class: "quiet" }, this.moving ? "distances; allocations" : "distances")), this.stage, h("footer", { class: "quiet" }, ...bars), this.table());
    this.draw();
  }

  series(): number[] {
    return ["local_allocations", "remote_allocations"].flatMap((name) => this.catalog.entry(name)?.series ?? []).filter((s) => s.instance.startsWith("node")).map((s) => s.number);
  }

  private draw(): void {
    const { nodes, distances } = this.machine;
    const right = this.moving ? MARGIN.right : 4;
    const size = Math.min(34, (WIDTH - MARGIN.left - right) / nodes.length);
    const dark = currentTheme().dark;
    const max = Math.max(11, ...distances.flat());
    const root = svg("g");
    const every = Math.ceil(12 / size);
    const barFrom = MARGIN.left + nodes.length * size + BAR_GAP;
    this.barWidth = WIDTH - barFrom - 2;
    nodes.forEach((from, row) => {
      const y = MARGIN.top + row * size;
      if (row % every === 0) {
        root.append(svg("text", { class: "axis", x: MARGIN.left - 6, y: y + size / 2 + 3.5, "text-anchor": "end" }, String(from.id)));
      }
      if (row % (every * 2) === 0 || every === 1) {
        root.append(svg("text", { class: "axis", x: MARGIN.left + (row + 0.5) * size, y: MARGIN.top - 5, "text-anchor": "middle" }, String(from.id)));
      }
      if (nodes.length <= MAX_CELLS) nodes.forEach((to, column) => this.cell(root, from.id, to.id, distances[row]?.[column], MARGIN.left + column * size, y, size, max, dark));
      if (this.moving) this.bars(root, from.id, barFrom, y, size);
    });
    if (nodes.length > MAX_CELLS) root.append(this.image(size * nodes.length, max, dark));
    const height = MARGIN.top + nodes.length * size + 4;
    this.stage.replaceChildren(svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "drawing", "aria-hidden": "true" }, root));
  }

  show({ slice, at }: Visible): void {
    if (!this.moving) return;
    const row = rowAt(slice.x, at);
    const value = (name: string, node: number) => {
      const series = this.catalog.at(name, `node${node}`);
      const values = series && slice.track(series.number)?.mean;
      return values ? lastMeasured(values, row) : NaN;
    };
    const values = this.rows.map(({ node }) => [value("local_allocations", node), value("remote_allocations", node)] as const);
    const max = Math.max(1, ...values.map(([near, far]) => (near || 0) + (far || 0)));
    const width = this.barWidth;
    this.rows.forEach((bars, index) => {
      const [near, far] = values[index] ?? [NaN, NaN];
      const first = ((near || 0) / max) * width;
      bars.near.setAttribute("width", String(first));
      bars.far.setAttribute("x", String(Number(bars.near.getAttribute("x")) + first));
      bars.far.setAttribute("width", String(((far || 0) / max) * width));
      bars.title.textContent = `memory of node ${bars.node}: ${format(near, "count/s")} allocations by its own CPUs, ${format(far, "count/s")} by CPUs of other nodes`;
    });
  }

  /** All cells as one image with one pixel each: thousands of elements would be slow. */
  private image(side: number, max: number, dark: boolean): SVGGElement {
    const { nodes, distances } = this.machine;
    const canvas = h("canvas", { width: nodes.length, height: nodes.length });
    const context = canvas.getContext("2d");
    const title = svg("title");
    const image = svg("image", {
      x: MARGIN.left, y: MARGIN.top, width: side, height: side, class: "cells",
      pointermove: (event: PointerEvent) => {
        const box = image.getBoundingClientRect();
        const at = (along: number, whole: number) => Math.min(nodes.length - 1, Math.max(0, Math.floor((along / whole) * nodes.length)));
        const [row, column] = [at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width)];
        title.textContent = describe(nodes[row]?.id, nodes[column]?.id, distances[row]?.[column]);
      },
    });
    if (context) {
      nodes.forEach((_, row) => nodes.forEach((__, column) => {
        context.fillStyle = loadColour(shareOf(distances[row]?.[column], max), dark);
        context.fillRect(column, row, 1, 1);
      }));
      image.setAttribute("href", canvas.toDataURL());
    }
    return svg("g", {}, image, title);
  }

  private cell(root: SVGGElement, from: number, to: number, distance: number | undefined, x: number, y: number, size: number, max: number, dark: boolean): void {
    const gap = size > 8 ? 1.5 : size > 5 ? 0.5 : -0.05;
    const share = shareOf(distance, max);
    const rect = svg("rect", { x, y, width: size - gap, height: size - gap, rx: size > 12 ? 2 : 0 }, svg("title", {}, describe(from, to, distance)));
    rect.style.fill = loadColour(share, dark);
    root.append(rect);
    if (size >= 17) {
      const text = svg("text", { x: x + (size - gap) / 2, y: y + size / 2 + 3, "text-anchor": "middle", class: lightText(share, dark) ? "cell on-dark" : "cell on-light" }, String(distance ?? "–"));
      root.append(text);
    }
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

  /** The distances as a table, for screen readers. */
  private table(): HTMLElement {
    const { nodes, distances } = this.machine;
    if (nodes.length > 32) return h("p", { class: "unseen" }, `Distances of ${nodes.length} nodes`);
    const head = h("tr", {}, h("th", {}, "from"), ...nodes.map((node) => h("th", { scope: "col" }, `node ${node.id}`)));
    const rows = nodes.map((node, row) => h("tr", {}, h("th", { scope: "row" }, `node ${node.id}`), ...nodes.map((_, column) => h("td", {}, String(distances[row]?.[column] ?? "–")))));
    return h("table", { class: "unseen" }, h("caption", {}, "Distances between nodes"), h("thead", {}, head), h("tbody", {}, ...rows));
  }
}

/** Position of a distance on the colour scale; 10 is the node itself. */
function shareOf(distance: number | undefined, max: number): number {
  return distance === undefined ? 0 : ((distance - 10) / (max - 10)) * 0.8;
}

function describe(from: number | undefined, to: number | undefined, distance: number | undefined): string {
  return `node ${from} to node ${to}: distance ${distance ?? "unknown"}`;
}

function key(kind: "near" | "far", text: string): HTMLElement {
  return h("span", { class: `key ${kind}` }, text);
}
