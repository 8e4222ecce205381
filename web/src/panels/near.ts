// The values near the pointer: the line that it is on, and the ones above and below it.

import { h } from "../elements";

export interface NearValue {
  name: string;
  value: string;
  /** None in a heat map, whose colours are values. */
  colour: string | null;
  /** Whether the pointer is on it. */
  chosen: boolean;
}

/** Where the pointer is, in pixels from the corner of the chart. */
export interface Pointed {
  /** The line that it is on; null: near none. */
  line: number | null;
  /** The lines around it, from the top. */
  around: number[];
  x: number;
  y: number;
}

/** Lines in a list. */
export const NEAR_LINES = 7;
const GAP = 14;

export class NearList {
  readonly element = h("div", { class: "near-list", hidden: true, "aria-hidden": "true" });
  private shown = "";

  show(time: string, values: NearValue[], at: Pointed): void {
    const text = time + values.map((one) => `${one.name}${one.value}${one.chosen}`).join();
    if (text !== this.shown) {
      this.shown = text;
      this.element.replaceChildren(h("p", { class: "quiet" }, time), ...values.map(({ name, value, colour, chosen }) => {
        const swatch = colour === null ? null : h("i");
        if (swatch) swatch.style.background = colour ?? "";
        return h("p", { class: chosen ? "chosen" : "" }, swatch, h("span", {}, name), h("b", {}, value));
      }));
    }
    this.element.hidden = values.length === 0;
    this.place(at);
  }

  hide(): void {
    this.element.hidden = true;
  }

  /** Next to the pointer, on the side with more room, and never under it. */
  private place({ x, y }: Pointed): void {
    const { element } = this;
    const box = element.parentElement;
    if (!box) return;
    const left = x + GAP + element.offsetWidth > box.clientWidth ? x - GAP - element.offsetWidth : x + GAP;
    const top = Math.min(Math.max(0, y - element.offsetHeight / 2), box.clientHeight - element.offsetHeight);
    element.style.transform = `translate(${Math.max(0, Math.round(left))}px, ${Math.round(Math.max(top, -20))}px)`;
  }
}

/** Up to `count` of sorted candidates around a position. */
export function around<T>(sorted: T[], at: number, count = NEAR_LINES): T[] {
  const begin = Math.max(0, Math.min(at - (count >> 1), sorted.length - count));
  return sorted.slice(begin, begin + count);
}
