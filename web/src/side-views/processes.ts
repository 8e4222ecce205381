// The processes of the machine, as numatop and htop list them, while the view is open: nothing is measured before.

import { h } from "../elements";
import type { Column, Row, Waits } from "../processes/columns";
import { matching, sorted, USUAL_SORT } from "../processes/columns";
import { ProcessTable } from "../processes/table";
import { statistics, type Slice } from "../store";
import type { ProcessList } from "../wire-processes";
import type { SideContext, SideView, Visible } from "./side-view";

/** What says how long the observed program waits for memory, in percent of its time. */
const SHARES = ["memory_share", "remote_time_share", "contended_share"];
const RECORDING = "A recording has no processes but the observed ones, in the metrics of ‘task’. ‘numa live’ shows all processes.";

export const processesView = (context: SideContext): SideView => new Processes(context);

class Processes implements SideView {
  readonly element: HTMLElement;
  private readonly live: boolean;
  private readonly table: ProcessTable;
  private readonly toggle = h("button", { type: "button", class: "button", click: () => this.turn() });
  private readonly filter = h("input", { type: "search", placeholder: "Filter: name, user, PID", "aria-label": "Filter processes", input: () => this.filtered() });
  private readonly note = h("p", { class: "quiet", role: "status" });
  private readonly parts: HTMLElement[];
  private list: ProcessList | null = null;
  private waits: Waits | null = null;

  constructor(private readonly context: SideContext) {
    const { source } = context.catalog;
    this.live = source.kind === "live" && context.processes !== null;
    this.table = new ProcessTable({ sort: (column) => this.sort(column), panel: (column) => this.panelOf(column) });
    this.parts = [this.filter, this.table.element];
    this.filter.value = context.view.processes.filter;
    this.element = h("section", { class: "side processes", "aria-label": "Processes" },
      h("header", {}, h("h2", {}, "Processes"), this.live ? this.toggle : null), this.filter, this.note, this.table.element);
    this.mark();
  }

  private get open(): boolean {
    return this.live && this.context.view.processes.open;
  }

  /** Numbers of the shares of the observed program. */
  series(): number[] {
    return this.open ? SHARES.flatMap((name) => this.context.catalog.at(name, "")?.number ?? []) : [];
  }

  show({ slice, from, to }: Visible): void {
    if (!this.open) return;
    const mean = (name: string) => this.mean(slice, name, from, to);
    const [memory, far, contended] = SHARES.map(mean) as [number, number, number];
    const atFar = (memory * (Number.isFinite(far) ? far : 0)) / 100;
    this.waits = Number.isFinite(memory) ? { near: memory - atFar, far: atFar, contended: Number.isFinite(contended) ? contended : 0 } : null;
  }

  private mean(slice: Slice, name: string, from: number, to: number): number {
    const series = this.context.catalog.at(name, "");
    const track = series && slice.track(series.number);
    return track ? statistics(slice, track, from, to).mean : NaN;
  }

  private turn(): void {
    this.context.view.processes.open = !this.open;
    this.mark();
    this.context.changed();
  }

  /** Shows or hides the table; tells the server whether somebody looks. */
  private mark(): void {
    const { open, live } = this;
    this.toggle.textContent = open ? "Hide" : "Show";
    this.toggle.setAttribute("aria-expanded", String(open));
    this.element.classList.toggle("open", open);
    for (const part of this.parts) part.hidden = !open;
    this.note.textContent = !live ? (this.context.catalog.source.kind === "live" ? "This file has no processes: ‘numa live’ shows them." : RECORDING) : open ? "Measuring …" : "Measured while this list is open.";
    this.context.processes?.look(open ? (list) => this.take(list) : null);
  }

  private take(list: ProcessList): void {
    this.list = list;
    this.draw();
  }

  private sort(column: string): void {
    const { processes } = this.context.view;
    processes.sort = processes.sort === column ? `-${column}` : column;
    this.draw();
    this.context.changed();
  }

  private filtered(): void {
    this.context.view.processes.filter = this.filter.value;
    this.draw();
    this.context.changed();
  }

  private draw(): void {
    const { list } = this;
    const { sort, filter } = this.context.view.processes;
    if (!list || !this.open) return;
    if (list.why) {
      for (const part of this.parts) part.hidden = true;
      this.note.textContent = list.why;
      return;
    }
    const rows = this.rows(list);
    const shown = sorted(matching(rows, filter), sort || USUAL_SORT);
    this.table.show(shown, list, sort || USUAL_SORT);
    this.note.textContent = [
      shown.length < rows.length ? `${shown.length} of ${rows.length} processes` : `${rows.length} processes`,
      list.left_out > 0 ? `${list.left_out} more run and have least` : "",
      ...unread(list),
    ].filter(Boolean).join("; ");
  }

  /** The time of all observed processes is in the row of their root. */
  private rows(list: ProcessList): Row[] {
    const observed = new Set(list.processes.filter((one) => one.observed).map((one) => one.pid));
    return list.processes.map((process) => ({ process, waits: process.observed && !observed.has(process.parent) ? this.waits : null }));
  }

  private panelOf(column: Column): (() => void) | null {
    const names = column.metrics.filter((name) => this.context.catalog.entry(name) !== undefined);
    return names.length > 0 ? () => this.context.openPanel(`m:${names.join("+")}`) : null;
  }
}

/** Whose memory is unknown. */
function unread(list: ProcessList): string[] {
  const count = (why: string) => list.processes.filter((one) => one.why === why).length;
  const [denied, late, refused] = [count("denied"), count("late"), count("refused")];
  return [
    denied > 0 ? `memory of ${denied} may not be read: ${list.fix}` : "",
    late > 0 ? `no time for the memory of ${late}` : "",
    refused > 0 ? `the memory of ${refused} would stop them` : "",
  ].filter(Boolean);
}
