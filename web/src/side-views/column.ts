// The side column and the table of its views.

import { h } from "../elements";
import { labelsView } from "./labels";
import { machineView } from "./machine";
import { matrixView } from "./matrix";
import { processesView } from "./processes";
import type { SideContext, SideView, SideViewFactory, Visible } from "./side-view";

/** All side views, from top to bottom. */
export const SIDE_VIEWS: SideViewFactory[] = [machineView, matrixView, processesView, labelsView];

export class SideColumn {
  readonly element = h("aside", { class: "sides", "aria-label": "Side views" });
  private views: SideView[] = [];

  constructor(private readonly context: SideContext) {
    this.rebuild();
  }

  /** Makes all views again, for example in the colours of another theme. */
  rebuild(): void {
    this.views = SIDE_VIEWS.map((make) => make(this.context)).filter((view) => view !== null);
    this.element.replaceChildren(...this.views.map((view) => view.element));
  }

  series(): number[] {
    return this.views.flatMap((view) => view.series());
  }

  show(visible: Visible): void {
    for (const view of this.views) view.show(visible);
  }
}
