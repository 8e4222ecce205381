// The source lines of the functions with most time, each with its part of that.

import { h } from "../elements";
import { percent, cpuTime, type AnnotatedSource, type Result } from "./result";

export function annotatedView(result: Result): HTMLElement | null {
  const sources = result.sources ?? [];
  if (sources.length === 0) return null;
  const all = cpuTime(result);
  return h("section", { class: "card", "aria-label": "Source" },
    h("h2", {}, "Source of the functions with most time"),
    ...sources.map((source, at) => sourceView(source, all, at === 0)));
}

function sourceView(source: AnnotatedSource, all: number, open: boolean): HTMLElement {
  const share = all > 0 ? `${percent(source.time / all)} of the CPU time` : "";
  return h("details", { class: "source", open },
    h("summary", {}, h("span", { class: "code" }, source.function ?? "code without names"), " ", h("small", {}, `${source.file}, ${share}`)),
    source.why_not ? h("p", { class: "why" }, `Not shown: ${source.why_not}.`) : lines(source));
}

function lines(source: AnnotatedSource): HTMLElement {
  const most = Math.max(1, ...source.lines.map(({ time }) => time));
  const rows = source.lines.flatMap(({ line, text, time }, at) => {
    const before = source.lines[at - 1];
    const gap = before && before.line + 1 < line ? [h("tr", { class: "gap" }, h("td", { colspan: 3 }, "..."))] : [];
    const share = time > 0 ? percent(time / source.time) : "";
    const row = h("tr", { class: time > 0 ? "timed" : "" }, h("td", { class: "number" }, share), h("td", { class: "number quiet" }, `${line}`), h("td", { class: "text" }, text));
    row.style.setProperty("--heat", `${Math.round((100 * time) / most)}%`);
    return [...gap, row];
  });
  return h("div", { class: "scroll tall" }, h("table", { class: "annotated" },
    h("caption", { class: "unseen" }, "Lines with their part of the function's CPU time in this file"),
    h("thead", { class: "unseen" }, h("tr", {}, ...["Part", "Line", "Text"].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, ...rows)));
}
