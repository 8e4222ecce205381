// The table of processes. A row is kept as long as its process is shown, and only what changed is written.

import { h } from "../elements";
import { currentTheme } from "../panels/palette";
import type { ProcessList } from "../wire-processes";
import { COLUMNS, memoryAbsent, type Column, type Row } from "./columns";
import { MemoryBar, memoryText } from "./memory-bar";

/** More rows are shown on demand only. */
const MAX_ROWS = 60;

export interface TableEvents {
  /** Sort by a column, or the other way round. */
  sort(column: string): void;
  /** Opens the panels of a column for the observed program; null if there are none. */
  panel(column: Column): (() => void) | null;
}

interface Drawn {
  element: HTMLTableRowElement;
  /** What has the text of each column, and its text. */
  cells: { holder: HTMLElement; cell: HTMLTableCellElement; text: string; title: string }[];
  bar: MemoryBar;
}

export class ProcessTable {
  readonly element: HTMLElement;
  private readonly heads: { column: Column; cell: HTMLTableCellElement }[] = [];
  private readonly body = h("tbody");
  private readonly more = h("button", { type: "button", class: "link", hidden: true, click: () => { this.all = true; this.again(); } });
  private readonly drawn = new Map<string, Drawn>();
  private all = false;
  private last: [Row[], ProcessList, string] | null = null;

  constructor(private readonly events: TableEvents) {
    const head = COLUMNS.map((column) => {
      const cell = h("th", { scope: "col", class: column.number ? "number" : "" },
        h("button", { type: "button", title: `${column.help}. Click to sort.`, click: () => events.sort(column.id) }, column.name));
      this.heads.push({ column, cell });
      return cell;
    });
    const table = h("table", {}, h("caption", { class: "unseen" }, "Processes"), h("thead", {}, h("tr", {}, ...head)), this.body);
    this.element = h("div", { class: "process-box", tabindex: "0", role: "region", "aria-label": "Table of processes" }, table, this.more);
  }

  show(rows: Row[], list: ProcessList, sort: string): void {
    this.last = [rows, list, sort];
    for (const { column, cell } of this.heads) {
      const now = column.id === sort.replace("-", "");
      const descending = column.number !== sort.startsWith("-");
      if (now) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    const shown = this.all ? rows : rows.slice(0, MAX_ROWS);
    const largest = shown.reduce((most, { process }) => Math.max(most, process.resident), 0);
    const dark = currentTheme().dark;
    const elements = shown.map((row) => {
      const one = this.rowOf(row);
      this.fill(one, row, list, largest, dark);
      return one.element;
    });
    // Unchanged rows in place keep focus and selection.
    elements.forEach((element, at) => {
      if (this.body.children[at] !== element) this.body.insertBefore(element, this.body.children[at] ?? null);
    });
    while (this.body.children.length > elements.length) this.body.lastChild?.remove();
    this.more.hidden = shown.length === rows.length;
    this.more.textContent = `${rows.length - shown.length} more`;
    const kept = new Set(list.processes.map((process) => key(process.pid, process.observed)));
    for (const one of this.drawn.keys()) if (!kept.has(one)) this.drawn.delete(one);
  }

  private again(): void {
    if (this.last) this.show(...this.last);
  }

  private rowOf({ process }: Row): Drawn {
    const name = key(process.pid, process.observed);
    const before = this.drawn.get(name);
    if (before) return before;
    const bar = new MemoryBar();
    const cells = COLUMNS.map((column) => {
      const open = process.observed ? this.events.panel(column) : null;
      const holder = open ? h("button", { type: "button", class: "to-panel", click: open }) : h("span");
      const cell = h("td", { class: column.number ? "number" : column.id }, holder);
      if (column.id === "memory") cell.prepend(bar.element);
      return { holder, cell, text: "", title: "" };
    });
    const element = h("tr", { class: process.observed ? "observed" : "" }, ...cells.map(({ cell }) => cell));
    const made = { element, cells, bar };
    this.drawn.set(name, made);
    return made;
  }

  private fill(drawn: Drawn, row: Row, list: ProcessList, largest: number, dark: boolean): void {
    const { memory } = row.process;
    COLUMNS.forEach((column, at) => {
      const cell = drawn.cells[at];
      if (!cell) return;
      const text = column.text(row);
      const title = text === "–" ? column.absent(row, list) : describe(column, row, list);
      if (text !== cell.text) cell.holder.textContent = cell.text = text;
      if (title !== cell.title) cell.cell.title = cell.title = title;
    });
    drawn.bar.show(memory ?? [], list.nodes, largest, dark);
  }
}

function key(pid: number, observed: boolean): string {
  return `${pid}${observed ? "!" : ""}`;
}

/** What a cell says when the pointer is on it. */
function describe(column: Column, row: Row, list: ProcessList): string {
  const { process, waits } = row;
  if (column.id === "waits" && waits) {
    const part = (name: string, value: number) => `${name} ${value.toFixed(1)} %`;
    return `${part("local memory", waits.near)}, ${part("remote memory", waits.far)}, ${part("contended lines", waits.contended)}`;
  }
  if (column.id === "memory") return process.memory ? memoryText(process.memory, list.nodes) : `Its nodes are unknown. ${memoryAbsent(row, list)}`;
  if (column.id === "faults" && process.major) return `${process.major.toFixed(1)} of them per second waited for a disk`;
  return column.id === "name" ? process.name : "";
}
