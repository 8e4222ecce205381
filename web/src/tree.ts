// The list of all that is measured: sensors, their metrics, and what is absent with its reason.

import { h, ICONS, icon } from "./elements";
import { FORMULAS, type Catalog, type Entry } from "./series";

const MOST_FOUND = 200;

export interface TreeEvents {
  /** Opens or closes the panel of a metric; `join` puts it into the open one. */
  choose(entry: Entry, join: boolean): void;
  isOpen(entry: Entry): boolean;
}

export class Tree {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  private readonly list = h("div", { class: "tree-list" });
  private readonly open = new Set<string>([FORMULAS]);

  constructor(
    private readonly catalog: Catalog,
    private readonly events: TreeEvents,
  ) {
    this.search = h("input", {
      type: "search", placeholder: `Search ${catalog.entries.length} metrics, ${catalog.series.length} series`,
      "aria-label": "Search metrics", spellcheck: "false", input: () => this.draw(), keydown: (event: KeyboardEvent) => this.key(event),
    });
    this.element = h("nav", { class: "tree", "aria-label": "Metrics" },
      h("div", { class: "tree-search" }, icon(ICONS.out), this.search, h("kbd", {}, "/")), this.list);
    this.draw();
  }

  draw(): void {
    const query = this.search.value.trim();
    if (query === "") return this.list.replaceChildren(...this.groups());
    const found = this.catalog.search(query, MOST_FOUND);
    const more = found.more > 0 ? h("p", { class: "quiet" }, `and ${found.more} more`) : null;
    const none = found.entries.length === 0 ? h("p", { class: "quiet" }, "Nothing has these words in its name or description.") : null;
    this.list.replaceChildren(h("div", { class: "entries" }, ...found.entries.map((entry) => this.row(entry, true)), more, none));
  }

  private groups(): HTMLElement[] {
    const groups = [...this.catalog.groups()].sort(([a], [b]) => Number(b === FORMULAS) - Number(a === FORMULAS));
    const made = groups.map(([name, entries]) => {
      const count = entries.reduce((sum, entry) => sum + entry.series.length, 0);
      return this.group(name, String(count), () => entries.map((entry) => this.row(entry, false)));
    });
    const { absent } = this.catalog.source;
    if (absent.length > 0) {
      made.push(this.group("not here", String(absent.length), () => absent.map((one) =>
        h("div", { class: "absent" }, h("strong", {}, one.name), h("span", {}, `${one.missing}: ${one.seen}`), one.fix ? h("code", {}, one.fix) : null))));
    }
    return made;
  }

  private group(name: string, count: string, contents: () => HTMLElement[]): HTMLElement {
    const inside = h("div", { class: "entries" });
    const open = this.open.has(name);
    if (open) inside.append(...contents());
    const details = h("details", { open }, h("summary", {}, h("span", { class: "name" }, name), h("span", { class: "count" }, count)), inside);
    details.addEventListener("toggle", () => {
      if (details.open) {
        this.open.add(name);
        if (inside.childElementCount === 0) inside.append(...contents());
      } else this.open.delete(name);
    });
    return details;
  }

  private row(entry: Entry, whole: boolean): HTMLElement {
    const short = whole || entry.group === FORMULAS ? entry.name : entry.name.slice(entry.group.length + 1);
    const places = entry.series.length > 1 ? `×${entry.series.length}` : "";
    return h("button", {
      type: "button", class: "entry", "aria-pressed": String(this.events.isOpen(entry)),
      title: `${entry.name}\n${entry.help}\n${entry.detail}\nShift+click: into the same panel`,
      click: (event: MouseEvent) => {
        this.events.choose(entry, event.shiftKey);
        this.draw();
      },
    }, h("span", { class: "dot" }), h("span", { class: "name" }, short), h("span", { class: "count" }, places), h("span", { class: "help" }, entry.help));
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") {
      this.search.value = "";
      this.draw();
      this.search.blur();
    } else if (event.key === "Enter" || event.key === "ArrowDown") {
      this.list.querySelector<HTMLElement>(".entry, summary")?.focus();
      event.preventDefault();
    }
  }
}
