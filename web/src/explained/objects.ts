// The objects, worst first; one of them is selected.

import { h } from "../elements";
import { processesOf } from "./activity";
import { bytes, estimate, nodesText, percent, type ExplainedObject, type Result } from "./result";

export interface ObjectTable {
  element: HTMLElement;
  /** Sets the focus to the filter. */
  search(): void;
  /** Selects an object, and sets the focus to it. */
  show(object: ExplainedObject): void;
}

/** A cell; without text a dash, and why there is none. */
function cell(text: string | null, why: string, kind = ""): HTMLElement {
  return text === null ? h("td", { class: `absent ${kind}`, title: why }, "–", h("span", { class: "unseen" }, ` ${why}`)) : h("td", { class: kind }, text);
}

const NO_TIME = "not told: time at memory is not known";
const NO_HOME = "no sample says on which node its pages are";
const NO_REMOTE = "no sample at it waited outside of the caches for memory of a known node, or the machine has one node";
const NO_VERDICT = "nothing to change was found";

/** `selected` is called when another object is selected. */
export function objectTable(result: Result, selected: (object: ExplainedObject) => void): ObjectTable {
  const search = h("input", { type: "search", placeholder: "Filter objects", "aria-label": "Filter objects", input: () => filter() });
  const count = h("span", { class: "quiet", role: "status" });
  const rows = result.objects.map((object, at) => {
    const row = h("tr", {
      "aria-selected": "false", tabindex: at === 0 ? 0 : -1, class: object.verdict ? "found" : "",
      click: () => choose(at),
      focus: () => choose(at),
    }, ...cells(object, processesOf(result, object.processes ?? [object.pid])));
    return row;
  });
  const body = h("tbody", { keydown: (event: KeyboardEvent) => move(event) }, ...rows);
  let chosen = -1;

  function choose(at: number): void {
    const object = result.objects[at];
    if (at === chosen || !object) return;
    rows.forEach((row, other) => {
      row.setAttribute("aria-selected", String(other === at));
      row.tabIndex = other === at ? 0 : -1;
    });
    chosen = at;
    selected(object);
  }

  function move(event: KeyboardEvent): void {
    const shown = rows.filter((row) => !row.hidden);
    const now = shown.indexOf(rows[chosen] as HTMLTableRowElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: shown.length - 1, PageDown: now + 10, PageUp: now - 10 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    shown[Math.max(0, Math.min(shown.length - 1, to))]?.focus();
  }

  function filter(): void {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => (row.hidden = !words.every((word) => row.textContent?.toLowerCase().includes(word))));
    const shown = rows.filter((row) => !row.hidden);
    count.textContent = shown.length === rows.length ? `${rows.length}` : `${shown.length} of ${rows.length}`;
    // One of the shown rows can always be reached by the Tab key.
    if (!shown.some((row) => row.tabIndex === 0) && shown[0]) shown[0].tabIndex = 0;
  }

  filter();
  const heading = (text: string, title: string, kind = "") => h("th", { scope: "col", title, class: kind }, text);
  const table = h("table", { class: "objects", role: "grid", "aria-label": "Objects" },
    h("thead", {}, h("tr", {},
      heading("Object", "A variable, the place where a block was allocated, a stack, a file"),
      heading("Size", "Its maximum at one time", "number"),
      heading("Time", "Its part of the time at memory", "number"),
      heading("Home", "Nodes of its pages"),
      heading("Used from", "Nodes of the CPUs, by time at it"),
      heading("Remote", "Its part of time at memory of other nodes, with the 95 % interval", "number"),
      heading("Verdict", "What is wrong, if anything"))),
    body);
  const element = h("section", { class: "card", "aria-label": "Objects" },
    h("header", {}, h("h2", {}, "Objects ", count), search),
    rows.length > 0 ? h("div", { class: "scroll tall" }, table) : h("p", { class: "why" }, "No sample at memory has an object."));
  choose(0);
  const show = (object: ExplainedObject) => {
    search.value = "";
    filter();
    rows[result.objects.indexOf(object)]?.focus();
  };
  return { element, search: () => search.focus(), show };
}

function cells(object: ExplainedObject, processes: string | null): HTMLElement[] {
  const about = [object.kind, object.pieces > 1 ? `${object.pieces} pieces` : null, processes];
  return [
    h("th", { scope: "row" }, h("span", { class: "name", title: object.name }, object.name), h("small", {}, about.filter(Boolean).join(", "))),
    cell(bytes(object.size), "its size is not known", "number"),
    cell(percent(object.time_share), NO_TIME, "number"),
    cell(nodesText(object.home), NO_HOME, "home"),
    cell(nodesText(object.used_from), NO_HOME),
    cell(object.remote ? estimate(object.remote) : null, NO_REMOTE, "number"),
    cell(object.verdict?.says ?? null, NO_VERDICT, "verdict"),
  ];
}
