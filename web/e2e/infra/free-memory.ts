// An example of a side view: the free memory at the cursor.

import { h } from "../../src/elements";
import { SIDE_VIEWS } from "../../src/side-views/column";
import type { SideContext, SideView } from "../../src/side-views/side-view";
import { lastMeasured, rowAt } from "../../src/store";
import { format } from "../../src/units";

function freeMemoryView({ catalog }: SideContext): SideView | null {
  const free = catalog.at("vmstat.nr_free_pages", "");
  if (!free) return null;
  const value = h("strong", {});
  return {
    element: h("section", { class: "side", "aria-label": "Free memory" }, h("header", {}, h("h2", {}, "Free memory"), value)),
    series: () => [free.number],
    show({ slice, at }) {
      const values = slice.track(free.number)?.mean;
      value.textContent = format(values ? free.factor * lastMeasured(values, rowAt(slice.x, at)) : NaN, free.quantity);
    },
  };
}

SIDE_VIEWS.push(freeMemoryView);
