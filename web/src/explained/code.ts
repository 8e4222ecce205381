// Functions and source lines, by the time that they waited for memory.

import { h, svg } from "../elements";
import { outside, percent, place, cpuTime, total, type PlaceTimes, type Result, type TimedCode } from "./result";

type Part = [string, string, (time: PlaceTimes) => number];

const PARTS: Part[] = [
  ["local", "Local", (time) => time.local],
  ["remote", "Remote", (time) => time.remote],
  ["unknown", "Unknown", (time) => time.unknown],
  ["contended", "Contended", (time) => time.contended],
  ["cached", "Caches", (time) => time.private_cache + time.shared_cache],
  ["computing", "Computing", (time) => time.computing],
];
/** On one node, local and remote are not distinguished. */
const PARTS_ON_ONE_NODE: Part[] = [["local", "Outside caches", (time) => time.local + time.remote], ...PARTS.slice(2)];
const WIDTH = 100;
const ROWS = 15;

export function codeView(result: Result): HTMLElement {
  const all = cpuTime(result);
  const parts = result.remote_share === null ? PARTS_ON_ONE_NODE : PARTS;
  return h("section", { class: "card", "aria-label": "Code" },
    h("h2", {}, "Code that waits for memory"),
    table("Functions", result.functions, all, parts, "No function was sampled."),
    table("Source lines", result.source_lines, all, parts, "No source lines: the program has no debug information; compile it with -g."));
}

function table(title: string, code: TimedCode[], all: number, parts: Part[], why: string): HTMLElement {
  if (code.length === 0 || all <= 0) return h("div", {}, h("h3", {}, title), h("p", { class: "why" }, why));
  const rows = code.map((one, at) => row(one, all, parts, at));
  const more = h("button", { type: "button", class: "link", click: () => {
    rows.forEach((shown) => (shown.hidden = false));
    more.remove();
  } }, `${rows.length - ROWS} more`);
  const headings = parts.map(([kind, name]) => h("th", { scope: "col", class: `number ${kind}` }, `${name} %`));
  return h("div", {}, h("h3", {}, title), h("div", { class: "scroll" }, h("table", { class: "code-table" },
    h("caption", { class: "unseen" }, `${title}: % of the CPU time of all samples`),
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Code"), h("th", { scope: "col" }, "% of CPU time"), ...headings)),
    h("tbody", {}, ...rows))), rows.length > ROWS ? more : null);
}

function row(code: TimedCode, all: number, parts: Part[], at: number): HTMLElement {
  const { what, where } = place(code);
  let from = 0;
  const drawn = parts.map(([kind, , of]) => {
    const width = (of(code.time) / all) * WIDTH;
    const rect = svg("rect", { class: `part ${kind}`, x: from, y: 0, width, height: 8 });
    from += width;
    return rect;
  });
  const numbers = parts.map(([, , of]) => h("td", { class: "number" }, of(code.time) > 0 ? ((of(code.time) / all) * 100).toFixed(1) : h("span", { class: "quiet" }, "0")));
  return h("tr", { hidden: at >= ROWS },
    h("th", { scope: "row" }, h("span", { class: "code", title: what }, what), h("small", {}, where)),
    h("td", {}, svg("svg", { viewBox: `0 0 ${WIDTH} 8`, preserveAspectRatio: "none", class: "mini", role: "img", "aria-label": `${percent(total(code.time) / all)} of the CPU time, ${percent(outside(code.time) / all)} at memory outside of the caches` }, ...drawn)),
    ...numbers);
}
