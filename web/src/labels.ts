// Labels: a list beside the charts, where they can be changed and jumped to.

import { ask } from "./dialogs";
import { h, iconButton } from "./elements";
import type { Mark } from "./panels/marks";
import { clock } from "./units";
import type { Label } from "./wire";

const RESERVED = "numakit:";
const MOST_LISTED = 100;

export interface LabelEvents {
  jump(ms: number): void;
  edit(label: Label, text: string): void;
  remove(label: Label): void;
  add(): void;
}

export class Labels {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "labels" });
  private labels = new Map<number, Label>();

  constructor(
    private readonly mayEdit: boolean,
    private readonly events: LabelEvents,
  ) {
    const add = mayEdit ? iconButton("label", "Note a label (n)", () => events.add()) : null;
    this.element = h("section", { class: "side", "aria-label": "Labels" }, h("header", {}, h("h2", {}, "Labels"), add), this.list);
    this.draw();
  }

  take(labels: Label[], all: boolean): void {
    if (all) this.labels.clear();
    for (const label of labels) this.labels.set(label.id, label);
    this.draw();
  }

  /** Those that people made, in order of time, for the charts. */
  marks(): Mark[] {
    return this.sorted().map((label) => ({ time: label.time_ns / 1e6, text: label.text })).reverse();
  }

  private sorted(): Label[] {
    return [...this.labels.values()].filter((label) => !label.text.startsWith(RESERVED)).sort((a, b) => b.time_ns - a.time_ns);
  }

  private draw(): void {
    const rows = this.sorted().slice(0, MOST_LISTED).map((label) => this.row(label));
    const none = h("li", { class: "quiet" }, this.mayEdit ? "None yet. Press n, or write ‘numa ctl label TEXT’ in a shell." : "None yet.");
    this.list.replaceChildren(...(rows.length > 0 ? rows : [none]));
  }

  private row(label: Label): HTMLElement {
    const time = label.time_ns / 1e6;
    const tools = this.mayEdit
      ? h("span", { class: "tools" },
          h("button", { type: "button", class: "link", click: () => void this.change(label) }, "edit"),
          h("button", { type: "button", class: "link", click: () => this.events.remove(label) }, "remove"))
      : null;
    return h("li", {}, h("button", { type: "button", class: "jump", title: "Show this time", click: () => this.events.jump(time) }, h("time", {}, clock(time)), h("span", {}, label.text)), tools);
  }

  private async change(label: Label): Promise<void> {
    const text = await ask("Change the label", label.text, "", "Change");
    if (text !== null && text !== label.text) this.events.edit(label, text);
  }
}
