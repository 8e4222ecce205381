// One node alone: which series belong to it, a catalog with these only, and the chip that names the node.

import { h, icon, ICONS } from "./elements";
import { Catalog, numberOf, type Entry, type Series } from "./series";
import type { Machine } from "./topology";

/** Whether a series is of this node, its CPUs or its package, of a pair with it, or of the whole machine. */
export function ofNode(machine: Machine | null, node: number): (series: Series) => boolean {
  const own = new Set(machine?.nodes.find(({ id }) => id === node)?.cpus);
  const packages = new Set(machine?.packages.filter(({ nodes }) => nodes.some(({ id }) => id === node)).map(({ name }) => name.replace(" ", "")));
  return ({ instance }) => {
    const at = (kind: string) => numberOf(instance, kind);
    if (at("node") >= 0) return at("node") === node;
    if (at("cpu") >= 0) return own.has(at("cpu"));
    if (at("package") >= 0) return packages.size === 0 || packages.has(instance);
    const pair = /^pair(\d+)\.(\d+)$/.exec(instance);
    return !pair || Number(pair[1]) === node || Number(pair[2]) === node;
  };
}

/** The same catalog, but metrics have only the series that belong to the node. */
export function catalogOf(catalog: Catalog, machine: Machine | null, node: number): Catalog {
  const belongs = ofNode(machine, node);
  const known = new Map<Entry, Entry>();
  const filtered = (entry: Entry | undefined): Entry | undefined => {
    if (!entry) return undefined;
    let made = known.get(entry);
    if (!made) known.set(entry, (made = { ...entry, series: entry.series.filter(belongs) }));
    return made;
  };
  return Object.assign(Object.create(catalog) as Catalog, {
    entry: (name: string) => filtered(catalog.entry(name)),
    at: (name: string, instance: string) => {
      const series = catalog.at(name, instance);
      return series && belongs(series) ? series : undefined;
    },
  });
}

/** Names the node that is shown alone; a click shows all nodes again. */
export class NodeChip {
  readonly element: HTMLElement;
  private readonly name = h("span");

  constructor(all: () => void) {
    const button = h("button", { type: "button", class: "node-chip", title: "Show all nodes again", click: all }, this.name, icon(ICONS.close));
    this.element = h("div", { class: "node-filter", hidden: true }, h("span", { class: "quiet" }, "Panels show only"), button);
  }

  show(node: number | null): void {
    this.element.hidden = node === null;
    this.name.textContent = `node ${node ?? ""}`;
  }
}
