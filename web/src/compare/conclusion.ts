// What a comparison says at a glance: which line is which source, and what changed most.

import { h } from "../elements";
import type { Other } from "../panels/columns";
import type { Line } from "../panels/lines";
import type { Slice } from "../store";
import { format } from "../units";
import type { View } from "../view";
import { changeOf, changeText, largest, type Change } from "./changes";

const LISTED = 5;
/** A list that changed with every frame would be unreadable. */
const PAUSE_MS = 1000;

export interface ComparedPanel {
  id: string;
  title: string;
  lines: Line[];
}

/** Two sources as they are on screen. */
export interface Compared {
  /** Their names. */
  first: string;
  second: string;
  panels: ComparedPanel[];
  slice: Slice;
  other: Other | undefined;
  range: [number, number];
}

export interface ConclusionEvents {
  /** Shows a panel. */
  reveal(panel: string): void;
  /** The view changed. */
  changed(): void;
}

export class Conclusion {
  readonly element: HTMLElement;
  private readonly list = h("ol");
  private readonly names = h("p", { class: "which" });
  private readonly says = h("p", { class: "quiet", role: "status" });
  private readonly columns = h("button", { type: "button", class: "button", click: () => this.turn() }, "Two columns");
  private filled = 0;
  private timer = 0;
  private last: Compared | null = null;

  constructor(
    private readonly view: View,
    private readonly events: ConclusionEvents,
  ) {
    this.element = h("section", { class: "conclusion", "aria-label": "Comparison", hidden: true }, h("header", {}, this.names, this.columns), this.says, this.list);
  }

  /** Shows what changed, at most once in a while; without a second source nothing. */
  show(compared: Compared): void {
    this.element.hidden = !compared.other;
    this.last = compared;
    const wait = this.filled + PAUSE_MS - performance.now();
    if (!compared.other || this.timer !== 0) return;
    if (wait <= 0) return this.fill(compared, compared.other);
    // The last state is always shown, also if nothing is drawn any more.
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      if (this.last?.other) this.fill(this.last, this.last.other);
    }, wait);
  }

  private fill({ first, second, panels, slice, range: [from, to] }: Compared, other: Other): void {
    this.filled = performance.now();
    this.columns.setAttribute("aria-pressed", String(this.view.columns));
    const key = (kind: string, name: string) => h("span", { class: `which-key ${kind}` }, name);
    this.names.replaceChildren(...(this.view.columns ? [h("span", {}, `Left: ${first}`), h("span", {}, `right: ${second}`)] : [key("solid", first), key("dashed", second)]));
    const compared = panels.map((panel) => ({ panel, changes: panel.lines.flatMap((line) => changeOf(line, slice, other, from, to) ?? []) }));
    const all = compared.flatMap(({ panel, changes }) => changes.map((change) => ({ ...change, panel })));
    const found = largest(all) as typeof all;
    this.says.textContent = summary(all.length, found.length, second);
    this.list.replaceChildren(...found.slice(0, LISTED).map((one) => h("li", {},
      h("button", { type: "button", title: "Show its panel", click: () => this.events.reveal(one.panel.id) }, words(one, one.panel)))));
  }

  private turn(): void {
    this.view.columns = !this.view.columns;
    this.filled = 0;
    this.events.changed();
  }
}

function summary(all: number, found: number, second: string): string {
  if (all === 0) return "Too few values of both in this range to tell what changed.";
  if (found === 0) return `None of ${all} lines differs from ${second} by more than its noise.`;
  return `${found} of ${all} lines differ from ${second} by more than their noise${found > 1 ? "; most" : ""}:`;
}

function words(change: Change, panel: ComparedPanel): HTMLElement {
  const { line, mean, other } = change;
  const name = panel.lines.length > 1 ? `${panel.title}, ${line.label}` : panel.title;
  return h("span", {}, h("b", {}, changeText(change)), ` ${name}: ${format(other, line.quantity)} → ${format(mean, line.quantity)}`);
}
