// All about one object: verdict, what to do, its node x node matrix, first touch, the code that uses it.

import { notify } from "../dialogs";
import { h } from "../elements";
import { processesOf } from "./activity";
import { bytes, estimate, nodesText, percent, place, squareOf, withoutNodes, worthText, type ExplainedObject, type Result } from "./result";
import { squareView } from "./square";

/** What is shown, with the reason for what is not. */
export function detail(result: Result, object: ExplainedObject): HTMLElement {
  const square = squareOf(object.nodes);
  const what = result.regime === "precise" ? "the time at it outside of the caches" : "its pages in use";
  return h("div", { class: "detail" },
    h("h2", {}, object.name),
    verdict(object),
    facts(result, object),
    h("h3", {}, "Nodes"),
    square ? squareView(square, what) : h("p", { class: "why" }, onOneNode(object) ?? withoutNodes(result)),
    ...membersOf(object),
    ...firstTouch(object),
    ...usedBy(object));
}

/** If all of it stays on one node, that is all there is to say. */
function onOneNode({ nodes }: ExplainedObject): string | null {
  const [only] = nodes ?? [];
  return nodes?.length === 1 && only ? `All of it is between CPUs and memory of node ${only.cpu_node}.` : null;
}

function verdict(object: ExplainedObject): HTMLElement {
  if (!object.verdict) return h("p", { class: "why" }, "No verdict: nothing to change was found.");
  const words = worthText(object);
  const worth = `${words.charAt(0).toUpperCase()}${words.slice(1)}${object.worth ? `: ${object.worth.why}` : ""}.`;
  return h("div", { class: "advice" },
    h("p", { class: "says" }, object.verdict.says, h("small", { class: "quiet" }, ` rule: ${object.verdict.rule}`)),
    object.do ? h("p", {}, h("b", {}, "Do: "), object.do) : null,
    object.try ? h("div", { class: "try" }, h("b", {}, "Try now"), command(object.try), object.expect ? h("p", { class: "quiet" }, `It ${object.expect}.`) : null) : null,
    h("p", { class: typeof object.worth?.at_most === "number" ? "" : "why" }, worth));
}

/** A command line that can be copied. */
export function command(text: string): HTMLElement {
  const line = h("code", { tabindex: 0 }, text);
  return h("div", { class: "command" }, line, h("button", { type: "button", class: "button", click: () => void copy(text, line) }, "Copy"));
}

async function copy(text: string, line: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notify("Copied");
  } catch {
    // Pages without TLS on another host have no clipboard.
    getSelection()?.selectAllChildren(line);
    notify("Selected: copy it with Ctrl-C");
  }
}

/** The members that samples accessed; nothing for objects whose type is not known or has none. */
function membersOf({ members }: ExplainedObject): HTMLElement[] {
  if (!members || members.used.length === 0) return [];
  const rows = members.used.map(({ name, offset, size, share }) => h("tr", {},
    h("td", { class: "number" }, percent(share)), h("td", {}, h("span", { class: "code" }, name), h("small", {}, `offset ${offset}, ${size} B`))));
  return [h("h3", {}, "Members of ", h("span", { class: "code" }, members.type)), h("p", { class: "quiet" }, `Parts of the time at it; an element has ${members.element} B.`), h("table", { class: "users members" }, h("tbody", {}, ...rows))];
}

function facts(result: Result, object: ExplainedObject): HTMLElement {
  const pids = object.processes ?? [object.pid];
  const processes = processesOf(result, pids);
  const entries: [string, string | null, string][] = [
    ...(processes ? [["Processes", pids.length > 1 ? `${processes}: ${listed(pids)}` : processes, ""] as [string, string, string]] : []),
    ["Size", bytes(object.size), "not known"],
    ["Time at memory", percent(object.time_share), "not known"],
    ["Home of its pages", nodesText(object.home), "no sample says it"],
    ["Used from", nodesText(object.used_from), "no sample says it"],
    ["Remote", object.remote ? estimate(object.remote) : null, withoutNodes(result)],
    ["In caches", percent(object.in_cache), "not known"],
    ["At contended lines", percent(object.contended), "not known"],
  ];
  return h("dl", { class: "facts" }, ...entries.flatMap(([name, value, why]) => [h("dt", {}, name), h("dd", { class: value === null ? "why" : "" }, value ?? why)]));
}

/** Maximum number of processes that are listed. */
const PROCESSES = 12;

function listed(pids: number[]): string {
  const more = pids.length - PROCESSES;
  return `${pids.slice(0, PROCESSES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function firstTouch({ first_touch: touches }: ExplainedObject): HTMLElement[] {
  const heading = h("h3", {}, "First touch");
  if (!touches || touches.length === 0) return [heading, h("p", { class: "why" }, "Not known: this result has no page fault of it.")];
  return [heading, ...touches.map((touch) => h("div", { class: "touch" },
    h("p", {}, `${percent(touch.share)} by thread ${touch.thread}${touch.node === null ? "" : ` on node ${touch.node}`}`),
    touch.chain.length > 0 ? h("ol", { class: "chain" }, ...touch.chain.map((call) => h("li", {}, call))) : h("p", { class: "why" }, "without a call chain")))];
}

function usedBy({ used_by: users }: ExplainedObject): HTMLElement[] {
  const heading = h("h3", {}, "Used by");
  if (!users || users.length === 0) return [heading, h("p", { class: "why" }, "Not known: no sample at it has code.")];
  const rows = users.map((user) => {
    const { what, where } = place(user);
    return h("tr", {}, h("td", { class: "number" }, percent(user.share)), h("td", {}, h("span", { class: "code" }, what), h("small", {}, where)));
  });
  return [heading, h("table", { class: "users" }, h("tbody", {}, ...rows))];
}
