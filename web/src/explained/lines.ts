// Contended lines: who uses which bytes of them.

import { h } from "../elements";
import { percent, cpuTime, SHARINGS, type ContendedLine, type LineUser, type Result } from "./result";

const USERS = 8;

export function linesView(result: Result): HTMLElement {
  const why = result.regime === "precise" ? "No line of memory was used by several threads at the same time for 1 % of the time at memory." : "Not told: samples of this machine do not say where time goes.";
  return h("section", { class: "card", "aria-label": "Contended lines" },
    h("h2", {}, "Contended lines"),
    ...(result.lines.length > 0 ? result.lines.map((line) => lineView(result, line)) : [h("p", { class: "why" }, why)]));
}

function lineView(result: Result, line: ContendedLine): HTMLElement {
  const all = cpuTime(result);
  const object = result.objects[line.object]?.name ?? "unknown mapping";
  const share = all > 0 ? `${percent(line.weight / all)} of the CPU time` : "its share of the time is not known";
  const home = line.home === null ? "node of its page unknown" : `memory of node ${line.home}`;
  const rows = line.users.slice(0, USERS).map((user) => userRow(result, user, (line.processes ?? []).length > 1));
  const more = line.users.length > USERS ? h("p", { class: "quiet" }, `${line.users.length - USERS} more threads`) : null;
  return h("article", { class: "contended-line" },
    h("h3", {}, object, h("code", {}, ` 0x${line.address.toString(16)}`)),
    h("p", {}, `${share}${line.across_nodes ? ", across nodes" : ""}; ${home}. ${SHARINGS[line.sharing]}`),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["Thread", "Nodes", "Loads", "Stores", "of them atomic", "Offsets (samples)"].map((name, at) => h("th", { scope: "col", class: at > 1 && at < 5 ? "number" : "" }, name)))),
      h("tbody", {}, ...rows))), more);
}

function userRow(result: Result, user: LineUser, hasProcesses: boolean): HTMLElement {
  const thread = result.threads_sampled[user.thread];
  const fields = [...new Set((user.fields ?? []).map(({ name }) => name))].join(", ");
  const offsets = Object.entries(user.offsets).map(([offset, count]) => `${offset} (${count})`).join(", ");
  const number = (value: number) => h("td", { class: "number" }, value.toLocaleString("en"));
  return h("tr", {},
    h("th", { scope: "row" }, thread ? `${thread.tid} (${thread.name})${hasProcesses ? ` of process ${thread.pid}` : ""}` : "unknown thread"),
    h("td", {}, user.nodes.length > 0 ? user.nodes.join(", ") : "unknown"),
    number(user.loads), number(user.stores), number(user.atomics), h("td", {}, offsets, fields ? h("small", {}, fields) : null));
}
