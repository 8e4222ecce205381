// The legend of a panel: a chip with the value of each line, or the extremes of many lines.

import { h } from "../elements";
import type { Absent } from "../presence";
import { format } from "../units";
import type { Line } from "./lines";

/** With more lines, chips are shown on demand only. */
const MAX_CHIPS = 16;

export interface LegendEvents {
  toggle(line: number): void;
  isolate(line: number): void;
}

interface Chip {
  button: HTMLButtonElement;
  swatch: HTMLElement;
  value: HTMLElement;
}

export class Legend {
  readonly element = h("div", { class: "legend", role: "group", "aria-label": "Legend" });
  private readonly summary = h("span", { class: "word" });
  private readonly word: string;
  private chips: Chip[] = [];

  constructor(
    private readonly lines: Line[],
    private readonly colour: (line: Line) => string,
    private readonly events: LegendEvents,
  ) {
    this.word = sharedWord(lines);
    if (lines.length > MAX_CHIPS) {
      const all = h("button", { type: "button", class: "link", title: "Show each line with its value", "aria-expanded": "false", click: () => this.expand(all) }, `all ${lines.length}`);
      this.element.classList.add("many");
      this.element.append(this.summary, all);
    } else this.makeChips();
  }

  /** Colours are set by script, as the content security policy forbids inline styles. */
  recolour(): void {
    this.chips.forEach((chip, at) => {
      const line = this.lines[at];
      if (line) chip.swatch.style.background = this.colour(line);
    });
  }

  mark(hidden: Set<number>): void {
    this.chips.forEach((chip, at) => chip.button.setAttribute("aria-pressed", String(!hidden.has(at))));
  }

  /** `texts`: shown after each value; `absent`: why a line has no current value, if it has none. */
  show(values: number[], texts: string[], absent: (Absent | null)[]): void {
    if (this.chips.length === 0) this.summarise(values, absent.some((one) => one?.loading));
    this.chips.forEach((chip, at) => {
      const line = this.lines[at];
      if (!line) return;
      const missing = absent[at];
      put(chip.value, Number.isNaN(values[at]) && missing?.loading ? "…" : Number.isNaN(values[at]) && missing?.onlyThis ? "no data" : format(values[at], line.quantity) + (texts[at] ?? ""));
      chip.button.classList.toggle("gone", missing?.onlyThis === true);
      const title = missing ? `${titleOf(line)}\n${missing.why}` : titleOf(line);
      if (chip.button.title !== title) chip.button.title = title;
    });
  }

  private expand(button: HTMLButtonElement): void {
    const open = this.chips.length === 0;
    if (open) this.makeChips();
    else {
      this.chips.forEach((chip) => chip.button.remove());
      this.chips = [];
    }
    this.element.classList.toggle("all", open);
    button.setAttribute("aria-expanded", String(open));
    button.textContent = open ? "fewer" : `all ${this.lines.length}`;
    this.summary.hidden = open;
    this.recolour();
  }

  private makeChips(): void {
    if (this.word && this.lines.length <= MAX_CHIPS) this.element.append(h("span", { class: "quiet word" }, this.word));
    this.chips = this.lines.map((line, at) => {
      const [value, swatch] = [h("span", { class: "value" }), h("span", { class: "swatch" })];
      const button = h("button", {
        type: "button", class: "chip", "aria-pressed": "true", "data-line": line.label, title: titleOf(line),
        click: (event: MouseEvent) => (event.detail === 2 || event.shiftKey ? this.events.isolate(at) : this.events.toggle(at)),
      }, swatch, h("span", { class: "name" }, this.word ? h("span", { class: "unseen" }, `${this.word} `) : null, line.label.slice(this.word.length).trim()), value);
      this.element.append(button);
      return { button, swatch, value };
    });
  }

  private summarise(values: number[], loading: boolean): void {
    let [low, high] = [-1, -1];
    values.forEach((value, at) => {
      if (Number.isNaN(value)) return;
      if (low < 0 || value < (values[low] as number)) low = at;
      if (high < 0 || value > (values[high] as number)) high = at;
    });
    put(this.summary, high < 0 ? (loading ? "loading …" : "no data in this range") : extremes(this.lines, values, high, low, this.word));
  }
}

/** `max node 3 89 %, min 28 47 %`: a line may end between the two only. */
export function extremes(lines: Line[], values: number[], high: number, low: number, word: string): string {
  const of = (at: number, skip: number) => `${(lines[at]?.label ?? "").slice(skip).trim()} ${format(values[at], lines[at]?.quantity ?? "count")}`;
  return [`max ${of(high, 0)},`, `min ${of(low, word.length)}`].map((part) => part.replaceAll(" ", "\u00a0")).join(" ");
}

function titleOf(line: Line): string {
  const { name, instance } = line.series;
  return `${name}${instance ? `@${instance}` : ""}\nClick: show or hide; double-click or Shift+click: show only this line`;
}

function put(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** The word that all labels begin with, as `node` in `node 0`; the legend shows it once. */
function sharedWord(lines: Line[]): string {
  const [first] = lines;
  const word = first && /^([A-Za-z]+) \d/.exec(first.label)?.[1];
  return word && lines.length > 2 && lines.every((line) => line.label.startsWith(`${word} `)) ? word : "";
}
