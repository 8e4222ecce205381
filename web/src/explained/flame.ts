// Flame graphs: time at memory by call chain, and resident memory by the chain that touched it first.

import { h } from "../elements";
import { flameTree, percent, type FlameFrame, type FlameGraph, type Result } from "./result";

/** Narrower frames are left out, as parts of the whole. */
const NARROWEST = 0.001;
/** Parts in the legend, those with most of all. */
const LEGEND = 12;

interface Kind {
  key: "time" | "resident";
  name: string;
  why: string;
}

const KINDS: readonly Kind[] = [
  { key: "time", name: "Time at memory", why: "Not told: samples of this machine do not say where time goes." },
  { key: "resident", name: "Resident memory by first touch", why: "Not known: no page faults were seen. That needs performance events from the start of the program on." },
];

/** Both graphs, one at a time. */
export function flameView(result: Result): HTMLElement {
  const place = h("div");
  const buttons = KINDS.map((kind) => h("button", { type: "button", class: "button", "aria-pressed": "false", click: () => show(kind) }, kind.name));
  const show = (kind: Kind) => {
    KINDS.forEach(({ key }, at) => buttons[at]?.setAttribute("aria-pressed", String(key === kind.key)));
    const graph = result.flame?.[kind.key];
    place.replaceChildren(graph && graph.stacks.length > 0 ? graphView(graph) : h("p", { class: "why" }, graph ? "There is nothing to show." : kind.why));
  };
  show(KINDS[0] as Kind);
  return h("section", { class: "card flame", "aria-label": "Flame graph" },
    h("header", {}, h("h2", {}, "Flame graph"), h("div", { class: "buttons", role: "group", "aria-label": "What it shows" }, ...buttons)), place);
}

function graphView(graph: FlameGraph): HTMLElement {
  const root = flameTree(graph);
  const parts = graph.parts.map((part, at) => ({ part, at, value: root.values[at] ?? 0 })).sort((one, other) => other.value - one.value);
  const legend = parts.slice(0, LEGEND).map(({ part, at, value }) => h("li", {}, styled(h("i"), `background: ${colour(at)}`), `${part} `, h("b", {}, percent(value / root.total))));
  if (parts.length > LEGEND) legend.push(h("li", { class: "quiet" }, `${parts.length - LEGEND} more`));
  const frames = h("div", { class: "frames" });
  const zoom = (to: FlameFrame) => draw(frames, graph, root, to, zoom);
  zoom(root);
  return h("div", {}, h("p", {}, `${graph.title}: ${amount(graph, root.total)}. A click on a function shows it larger.`), h("ul", { class: "flame-parts" }, ...legend), h("div", { class: "scroll" }, frames));
}

/** Draws a frame as wide as the view with all that it calls, below it its callers. */
function draw(into: HTMLElement, graph: FlameGraph, root: FlameFrame, to: FlameFrame, zoom: (to: FlameFrame) => void): void {
  const callers: FlameFrame[] = [];
  for (let at = to.caller; at; at = at.caller) callers.unshift(at);
  const boxes: HTMLElement[] = callers.map((frame, level) => box(graph, root, frame, level, 0, 1, zoom));
  let deepest = 0;
  const add = (frame: FlameFrame, level: number, left: number) => {
    const width = frame.total / to.total;
    if (width < NARROWEST) return;
    deepest = Math.max(deepest, level);
    boxes.push(box(graph, root, frame, level, left, width, zoom));
    let at = left;
    for (const inner of frame.inner.values()) {
      add(inner, level + 1, at);
      at += inner.total / to.total;
    }
  };
  add(to, callers.length, 0);
  into.style.setProperty("--levels", String(deepest + 1));
  into.replaceChildren(...boxes);
}

function box(graph: FlameGraph, root: FlameFrame, frame: FlameFrame, level: number, left: number, width: number, zoom: (to: FlameFrame) => void): HTMLElement {
  const parts = graph.parts.map((part, at) => ({ part, value: frame.values[at] ?? 0 })).filter(({ value }) => value > 0);
  const words = [`${frame.name}: ${amount(graph, frame.total)} (${percent(frame.total / root.total)})`, ...parts.map(({ part, value }) => `${part}: ${amount(graph, value)}`)];
  const style = `left: ${left * 100}%; width: ${width * 100}%; --level: ${level}; background: ${gradient(frame)}`;
  return styled(h("button", { type: "button", class: "frame", title: words.join("\n"), click: () => zoom(frame) }, frame.name), style);
}

/** With a style of its own, which the page's policy refuses as an attribute. */
function styled(element: HTMLElement, style: string): HTMLElement {
  element.style.cssText = style;
  return element;
}

/** The parts of a frame side by side. */
function gradient(frame: FlameFrame): string {
  let at = 0;
  const stops = frame.values.flatMap((value, part) => {
    const from = at;
    at += (value / frame.total) * 100;
    return value > 0 ? [`${colour(part)} ${from}% ${at}%`] : [];
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

/** Colours that are as far apart as they can be. */
function colour(part: number): string {
  return `hsl(${(205 + 137.5 * part) % 360} var(--flame))`;
}

function amount(graph: FlameGraph, value: number): string {
  if (graph.unit === "ns") return value >= 1e9 ? `${(value / 1e9).toFixed(1)} s` : `${(value / 1e6).toFixed(1)} ms`;
  return value >= 2 ** 30 ? `${(value / 2 ** 30).toFixed(1)} GiB` : `${(value / 2 ** 20).toFixed(1)} MiB`;
}
