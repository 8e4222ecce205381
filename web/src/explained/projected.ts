// What the same run would be on another machine.

import { h } from "../elements";
import { bytes, estimate, nodesText, percent, projectedText, squareOf, worthText, type ExplainedObject, type Projection, type Result } from "./result";
import { squareView } from "./square";

/** Objects that are shown; they are in the order of their time. */
const OBJECTS = 10;

/** Draws it; nothing if that was not asked for. */
export function projectedView({ projected }: Result): HTMLElement | null {
  if (!projected) return null;
  const said = projectedText(projected);
  const heading = h("h2", {}, "On another machine");
  if (projected.why_not) return card(heading, h("h3", {}, projected.machine), ...said.map((text) => h("p", { class: "why" }, text)));
  const square = squareOf(projected.nodes);
  return card(heading, ...said.map((text) => h("p", {}, text)),
    h("div", { class: "row there" },
      objects(projected),
      square ? squareView(square, "the time at memory outside of the caches there") : h("p", { class: "why" }, oneNode(projected))));
}

function card(...children: HTMLElement[]): HTMLElement {
  return h("section", { class: "card projected", "aria-label": "On another machine" }, ...children);
}

function oneNode({ nodes }: Projection): string {
  const [only] = nodes;
  return only ? `All of the time would be between CPUs and memory of node ${only.cpu_node}.` : "No sample outside of the caches has a known node there.";
}

/** Those that cost most there. */
function objects({ objects: all }: Projection): HTMLElement {
  if (all.length === 0) return h("p", { class: "why" }, "No sample at memory has an object.");
  const heading = (text: string, kind = "") => h("th", { scope: "col", class: kind }, text);
  const head = h("tr", {}, heading("Object"), heading("Time", "number"), heading("Home there"), heading("Used from"), heading("Remote", "number"), heading("Verdict there"));
  const more = all.length > OBJECTS ? h("p", { class: "quiet" }, `${all.length - OBJECTS} more in the file`) : null;
  return h("div", {}, h("div", { class: "scroll" }, h("table", { "aria-label": "Objects there" }, h("thead", {}, head), h("tbody", {}, ...all.slice(0, OBJECTS).map(row)))), more);
}

function row(object: ExplainedObject): HTMLElement {
  const cell = (text: string | null, kind = "") => (text === null ? h("td", { class: `absent ${kind}`, title: "not known" }, "–") : h("td", { class: kind }, text));
  const verdict = object.verdict ? h("td", { class: "verdict" }, object.verdict.says, h("small", {}, worthText(object))) : h("td", { class: "absent", title: "nothing to change would be found" }, "–");
  return h("tr", { class: object.verdict ? "found" : "" },
    h("th", { scope: "row" }, h("span", { class: "code" }, object.name), h("small", {}, [object.kind, bytes(object.size)].filter(Boolean).join(", "))),
    cell(percent(object.time_share), "number"), cell(nodesText(object.home)), cell(nodesText(object.used_from)),
    cell(object.remote ? estimate(object.remote) : null, "number"), verdict);
}
