// Node by node: whose memory the threads of each node waited for.

import { h, svg } from "../elements";
import { currentTheme, lightText, loadColour } from "../panels/palette";
import { percent, type Square } from "./result";

const WIDTH = 320;
const MARGIN = 24;
const MAX_CELL = 46;
/** Width of a node's number; its height is half of it. */
const NAME = 26;
/** With more nodes, cells are one image: thousands of elements would be slow. */
const MAX_CELLS = 40;
/** Of the colour scale, what the highest share takes: text stays readable. */
const FULL = 0.8;

/** Draws it; `what` is what its shares are of. */
export function squareView(square: Square, what: string): HTMLElement {
  const { nodes } = square;
  const size = Math.min(MAX_CELL, (WIDTH - MARGIN) / nodes.length);
  const side = size * nodes.length;
  const root = svg("svg", { class: "drawing square", viewBox: `0 0 ${WIDTH} ${MARGIN + side + 6}`, role: "img", "aria-label": `Matrix of ${nodes.length} nodes: rows are CPUs, columns memory` });
  const axis = (every: number, text: (node: number, middle: number) => SVGElement) =>
    root.append(...nodes.flatMap((node, at) => (at % every === 0 ? [text(node, MARGIN + at * size + size / 2)] : [])));
  axis(Math.ceil(NAME / size), (node, middle) => svg("text", { class: "axis", x: middle, y: MARGIN - 7, "text-anchor": "middle" }, String(node)));
  axis(Math.ceil(NAME / 2 / size), (node, middle) => svg("text", { class: "axis", x: MARGIN - 6, y: middle + 4, "text-anchor": "end" }, String(node)));
  if (nodes.length > MAX_CELLS) root.append(image(square, side));
  else root.append(...cells(square, size));
  return h("figure", { class: "nodes" }, root, h("figcaption", { class: "quiet" }, `% of ${what}. Rows: node of the CPUs; columns: node of the memory.`), heard(square));
}

function describe({ nodes, cells: all }: Square, row: number, column: number): string {
  return `CPUs of node ${nodes[row]}, memory of node ${nodes[column]}: ${percent(all[row]?.[column])}`;
}

function cells(square: Square, size: number): SVGElement[] {
  const dark = currentTheme().dark;
  const gap = size > 8 ? 1.5 : 0.5;
  return square.cells.flatMap((row, at) => row.flatMap((share, column) => {
    const load = (share / square.highest) * FULL;
    const [x, y] = [MARGIN + column * size, MARGIN + at * size];
    const rect = svg("rect", { x, y, width: size - gap, height: size - gap, rx: size > 12 ? 2 : 0, class: at === column ? "own" : "other" }, svg("title", {}, describe(square, at, column)));
    rect.style.fill = loadColour(load, dark);
    if (size < 17 || share <= 0) return [rect];
    const text = svg("text", { class: `cell ${lightText(load, dark) ? "on-dark" : "on-light"}`, x: x + (size - gap) / 2, y: y + size / 2 + 3, "text-anchor": "middle" }, (share * 100).toFixed(share < 0.1 && size > 26 ? 1 : 0));
    return [rect, text];
  }));
}

function image(square: Square, side: number): SVGElement {
  const dark = currentTheme().dark;
  const count = square.nodes.length;
  const canvas = h("canvas", { width: count, height: count });
  const title = svg("title");
  const drawn = svg("image", {
    x: MARGIN, y: MARGIN, width: side, height: side, class: "cells",
    pointermove: (event: PointerEvent) => {
      const box = drawn.getBoundingClientRect();
      const at = (along: number, all: number) => Math.min(count - 1, Math.max(0, Math.floor((along / all) * count)));
      title.textContent = describe(square, at(event.clientY - box.top, box.height), at(event.clientX - box.left, box.width));
    },
  });
  const context = canvas.getContext("2d");
  if (context) {
    square.cells.forEach((row, at) => row.forEach((share, column) => {
      context.fillStyle = loadColour((share / square.highest) * FULL, dark);
      context.fillRect(column, at, 1, 1);
    }));
    drawn.setAttribute("href", canvas.toDataURL());
  }
  return svg("g", {}, drawn, title);
}

/** The same for screen readers. */
function heard(square: Square): HTMLElement {
  const { nodes } = square;
  if (nodes.length > 32) return h("p", { class: "unseen" }, `Shares of ${nodes.length} nodes`);
  const head = h("tr", {}, h("th", {}, "CPUs of"), ...nodes.map((node) => h("th", { scope: "col" }, `memory of node ${node}`)));
  const rows = square.cells.map((row, at) => h("tr", {}, h("th", { scope: "row" }, `node ${nodes[at]}`), ...row.map((share) => h("td", {}, percent(share)))));
  // A table is never narrower than its content; what is around it is.
  return h("div", { class: "unseen" }, h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)));
}
