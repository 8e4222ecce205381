// Where the time of all threads went, as one bar.

import { h, svg } from "../elements";
import { activityView } from "./activity";
import { command } from "./detail";
import { costText, estimate, percent, REGIMES, TIME_PARTS, withoutNodes, worthText, type ExplainedObject, type Finding, type Result, type TimePart } from "./result";

const NAMES: Record<TimePart, [string, string]> = {
  computing: ["Computing", "Threads' own arithmetic"],
  cached: ["Caches", "Memory that fits the caches"],
  local: ["Local", "Memory of the CPU's own node"],
  remote: ["Remote", "Memory of other nodes"],
  unknown: ["Unknown", "Memory whose node is not known"],
  contended: ["Contended", "Cache lines that several threads use at the same time"],
  kernel: ["Kernel", "In the kernel"],
  runnable: ["No CPU", "Ready to run, but without a CPU"],
  asleep: ["Asleep", "Asleep"],
};
const WIDTH = 1000;
const HEIGHT = 26;

const VERDICTS = 6;

/** `show` shows an object. */
export function timeBar(result: Result, show: (object: ExplainedObject) => void): HTMLElement {
  return h("section", { class: "card where", "aria-label": "Where the time went" },
    h("h2", {}, "Where the time of all threads went"),
    activityView(result),
    result.time ? bar(result, result.time) : h("p", { class: "why" }, REGIMES[result.regime]),
    farLine(result),
    ...verdicts(result, show));
}

/** What was found, worst first. */
function verdicts(result: Result, show: (object: ExplainedObject) => void): HTMLElement[] {
  const found = result.objects.filter(({ verdict }) => verdict);
  const ofProgram = (result.findings ?? []).filter(({ subject }) => subject.kind === "program").map(programFinding);
  if (found.length === 0 && ofProgram.length > 0) return [h("h3", {}, "Verdicts"), ...ofProgram];
  if (found.length === 0) return [h("p", { class: "why" }, "No object has a verdict: nothing to change was found.")];
  const entries = found.slice(0, VERDICTS).map((object) => h("li", {},
    h("button", { type: "button", click: () => show(object) }, h("span", { class: "name" }, object.name), h("span", {}, object.verdict?.says),
      h("span", { class: "quiet" }, worthText(object)))));
  const more = found.length > VERDICTS ? h("p", { class: "quiet" }, `${found.length - VERDICTS} more in the table`) : null;
  return [h("h3", {}, "Verdicts"), ...ofProgram, h("ul", { class: "verdicts" }, ...entries), ...(more ? [more] : [])];
}

/** A finding about the program as a whole. */
function programFinding(finding: Finding): HTMLElement {
  return h("div", { class: "advice of-program" },
    h("p", { class: "says" }, `${finding.says}.`, h("small", { class: "quiet" }, ` rule: ${finding.rule}`)),
    finding.remedy.words ? h("p", {}, h("b", {}, "Do: "), finding.remedy.words) : null,
    ...finding.remedy.commands.map(command),
    h("p", { class: "quiet" }, `Cost: ${costText(finding)}.`));
}

function bar(result: Result, told: Record<TimePart, number>): HTMLElement {
  const hasNodes = result.remote_share !== null;
  // On one node, whatever is outside of the caches is one part.
  const time = hasNodes ? told : { ...told, local: told.local + told.remote, remote: 0 };
  const name = (part: TimePart) => (part === "local" && !hasNodes ? "Outside caches" : NAMES[part][0]);
  const shown = TIME_PARTS.filter((part) => time[part] > 0);
  let from = 0;
  const drawn = shown.map((part) => {
    const width = time[part] * WIDTH;
    const rect = svg("rect", { class: `part ${part}`, x: from, y: 0, width: Math.max(0, width), height: HEIGHT }, svg("title", {}, `${name(part)}: ${percent(time[part])}`));
    from += width;
    return rect;
  });
  const faults = result.threads.faults > 0 ? `, ${result.threads.faults.toLocaleString("en")} page faults` : "";
  const parts = shown.map((part) => h("li", { title: part === "local" && !hasNodes ? "Memory outside of the caches" : NAMES[part][1] }, h("i", { class: `part ${part}` }), h("span", { class: "quiet" }, name(part)), h("b", {}, percent(time[part])), part === "kernel" && faults ? h("span", { class: "quiet" }, faults.slice(2)) : null));
  return h("div", {}, svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" }, ...drawn), h("ul", { class: "parts" }, ...parts));
}

function farLine(result: Result): HTMLElement {
  if (!result.remote_share) return h("p", { class: "why" }, withoutNodes(result));
  return h("p", {}, `Of the time at memory, ${estimate(result.remote_share)} was at memory of other nodes.`);
}
