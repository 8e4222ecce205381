// The list of labels: a click jumps to a label's time.

import { ask } from "../dialogs";
import { h, iconButton } from "../elements";
import { clock, moment } from "../units";
import type { WireLabel } from "../wire";
import type { SideContext, SideView } from "./side-view";

const MAX_LISTED = 100;

export const labelsView = (context: SideContext): SideView => new Labels(context);

class Labels implements SideView {
  readonly element: HTMLElement;
  private readonly list = h("ol", { class: "labels" });
  private listed: readonly WireLabel[] | null = null;

  constructor(private readonly context: SideContext) {
    const add = context.mayEdit ? iconButton("label", "Add a label (n)", () => context.addLabel()) : null;
    this.element = h("section", { class: "side", "aria-label": "Labels" }, h("header", {}, h("h2", {}, "Labels"), add), this.list);
  }

  series(): number[] {
    return [];
  }

  show(): void {
    const labels = this.context.labels();
    if (labels === this.listed) return;
    this.listed = labels;
    const none = h("li", { class: "quiet" }, this.context.mayEdit ? "No labels yet. Press n, or run ‘numa ctl label TEXT’ in a shell." : "No labels yet.");
    this.list.replaceChildren(...(labels.length > 0 ? labels.slice(0, MAX_LISTED).map((label) => this.row(label)) : [none]));
  }

  private row(label: WireLabel): HTMLElement {
    const { context } = this;
    const time = label.time_ns / 1e6;
    const tools = context.mayEdit
      ? h("span", { class: "tools" },
          h("button", { type: "button", class: "link", click: () => void this.edit(label) }, "edit"),
          h("button", { type: "button", class: "link", click: () => context.removeLabel(label) }, "remove"))
      : null;
    return h("li", {}, h("button", { type: "button", class: "jump", title: `${moment(time)}\nClick: go to this time`, click: () => context.jump(time) }, h("time", {}, clock(time)), h("span", {}, label.text)), tools);
  }

  private async edit(label: WireLabel): Promise<void> {
    const text = await ask("Edit label", label.text, "", "Save");
    if (text !== null && text !== label.text) this.context.editLabel(label, text);
  }
}
