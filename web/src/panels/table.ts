// A chart as a table: statistics of the visible range.

import { h } from "../elements";
import { statistics, type Slice } from "../store";
import { format, timesOf, timeText, totalOf } from "../units";
import type { Other } from "./columns";
import type { Line } from "./lines";

const MAX_ROWS = 64;

/** The content of a table. */
export interface TableContent {
  title: string;
  lines: Line[];
  slice: Slice;
  range: [number, number];
  /** Values at the cursor, or the newest ones. */
  values: number[];
  atCursor: boolean;
  other: Other | undefined;
  otherName: string;
  /** Times are distances from this one; null: times of the day. */
  origin: number | null;
}

export class ValueTable {
  readonly element: HTMLElement;
  private readonly table = h("table", { class: "values" });
  private readonly more = h("button", { type: "button", class: "link", hidden: true, click: () => { this.all = true; this.wanted(); } });
  private all = false;

  /** `wanted`: called when the table must be filled. */
  constructor(private readonly wanted: () => void) {
    this.element = h("div", { class: "table-box", hidden: true, tabindex: "0", role: "region", "aria-label": "Values" }, this.table, this.more);
  }

  fill(content: TableContent): void {
    const { title, lines, slice, range, other, otherName } = content;
    const shown = this.all ? lines : lines.slice(0, MAX_ROWS);
    const totals = shown.some((line) => totalOf(line.series) !== null);
    const now = content.atCursor ? "at cursor" : "last";
    const names = ["", ...(other ? ["mean", `of ${otherName}`, "difference", now, "min", "max"] : [now, "min", "mean", "max"]), ...(totals ? ["total"] : [])];
    const head = h("tr", {}, ...names.map((text) => (text === "" ? h("td", {}) : h("th", { scope: "col" }, text))));
    const rows = shown.map((line, at) => row(content, line, content.values[at], totals));
    const caption = h("caption", {}, `${title}, ${content.origin === null ? timesOf(...range) : `${timeText(range[0], slice.stepMs, content.origin)} to ${timeText(range[1], slice.stepMs, content.origin)}`}`);
    this.table.replaceChildren(caption, h("thead", {}, head), h("tbody", {}, ...rows));
    this.more.hidden = shown.length === lines.length;
    this.more.textContent = `${lines.length - shown.length} more`;
  }
}

function row(content: TableContent, line: Line, value: number | undefined, totals: boolean): HTMLElement {
  const { slice, range, other } = content;
  const track = slice.track(line.series.number);
  const own = track ? statistics(slice, track, ...range) : null;
  const text = (raw: number | undefined) => format(raw === undefined ? null : line.offset + line.factor * raw, line.quantity);
  const [low, high] = line.factor < 0 ? [own?.max, own?.min] : [own?.min, own?.max];
  const mean = text(own?.mean);
  const now = format(value, line.quantity);
  const cells = other ? [mean, ...beside(content, line, own?.mean ?? NaN, text), now, text(low), text(high)] : [now, text(low), mean, text(high)];
  const total = totalOf(line.series);
  if (totals) cells.push(total && own ? format(own.sum * total.factor, total.quantity) : "–");
  return h("tr", {}, h("th", { scope: "row" }, line.label), ...cells.map((cell) => h("td", {}, cell)));
}

/** The mean of the second source, and how much it exceeds that of the first. */
function beside({ slice, range, other }: TableContent, line: Line, mean: number, text: (raw: number) => string): string[] {
  const track = other?.(line.series.number);
  const its = track ? statistics(slice, track, ...range).mean : NaN;
  return [text(its), signed(line.factor * (its - mean), line)];
}

/** A difference with its sign; `–` if there is none. */
export function signed(difference: number, line: Line): string {
  return Number.isFinite(difference) ? `${difference < 0 ? "−" : "+"}${format(Math.abs(difference), line.quantity)}` : "–";
}
