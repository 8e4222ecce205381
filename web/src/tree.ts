// The list of all metrics: sensors, their metrics with units and instances, and unavailable ones with
// the reason. A controller can switch a sensor off and on for everyone.

import { h, ICONS, icon } from "./elements";
import { FORMULAS, place, type Catalog, type Entry, type Series } from "./series";
import { unitOf } from "./units";
import type { AbsentInfo, SensorState } from "./wire";

/** Rows that are made at once; a button makes the next ones. */
const MAX_ROWS = 150;
const ON_SCREEN = "shown";

export interface TreeEvents {
  /** Opens or closes a panel; with `join`, adds to the open one. */
  choose(id: string, join: boolean): void;
  isOpen(id: string): boolean;
  mayOrder: boolean;
  /** Switches a sensor on or off for everyone. */
  turn(sensor: string, on: boolean): void;
}

export class Tree {
  readonly element: HTMLElement;
  readonly search: HTMLInputElement;
  private readonly filter: HTMLSelectElement;
  private readonly list = h("div", { class: "tree-list", keydown: (event: KeyboardEvent) => this.walk(event) });
  private readonly open = new Set<string>([FORMULAS]);
  private readonly places = new Set<string>();
  private readonly switches = new Map<string, HTMLButtonElement>();
  private states = new Map<string, boolean>();
  private kept = (): void => undefined;

  constructor(
    private readonly catalog: Catalog,
    private readonly events: TreeEvents,
  ) {
    this.search = h("input", {
      type: "search", placeholder: `${catalog.entries.length} metrics`, title: `${catalog.entries.length} metrics, ${catalog.series.length} series (/)`,
      "aria-label": "Search metrics", spellcheck: "false", input: () => this.draw(), keydown: (event: KeyboardEvent) => this.key(event),
    });
    const option = (value: string, text = value) => h("option", { value }, text);
    this.filter = h("select", { "aria-label": "Filter metrics", title: "Filter metrics", change: () => this.draw() },
      option("", "all"), option(ON_SCREEN),
      h("optgroup", { label: "Scope" }, ...catalog.kinds().map((kind) => option(`for ${kind}`, kind))),
      h("optgroup", { label: "Unit" }, ...catalog.quantities().map((quantity) => option(`as ${quantity}`, quantity))));
    this.element = h("nav", { class: "tree", "aria-label": "Metrics" },
      h("div", { class: "tree-search" }, icon(ICONS.out), this.search, this.filter), this.list);
    this.draw();
  }

  /** Begins with the search of the view, and keeps it there. */
  keep(view: { search: string }, changed: () => void): void {
    if (view.search) {
      this.search.value = view.search;
      this.draw();
    }
    this.kept = () => {
      if (view.search === this.search.value.trim()) return;
      view.search = this.search.value.trim();
      changed();
    };
  }

  /** Updates which sensors are on. */
  sensors(states: SensorState[]): void {
    const same = states.length === this.states.size && states.every((one) => this.states.get(one.name) === one.on);
    if (same) return;
    const known = [...this.states.keys()].join();
    this.states = new Map(states.map((one) => [one.name, one.on]));
    if ([...this.states.keys()].join() !== known) this.draw();
    else for (const [name, button] of this.switches) this.turned(name, button);
  }

  draw(): void {
    const at = this.list.scrollTop;
    const query = this.search.value.trim();
    this.switches.clear();
    this.list.replaceChildren(...(query === "" && this.filter.value === "" ? this.groups() : this.found(query)));
    this.list.scrollTop = at;
    this.kept();
  }

  private found(query: string): HTMLElement[] {
    const { entries, absent } = this.catalog.search(query);
    const chosen = entries.filter(({ entry }) => this.passes(entry));
    const here = this.filter.value === "" ? absent : [];
    if (chosen.length + here.length === 0) return [h("p", { class: "quiet" }, "No metric matches.")];
    return [this.rows(chosen.map(({ entry, series }) => () => [this.row(entry, true), ...(series ? this.seriesRows(entry, series) : [])])), ...here.map(absentRow)];
  }

  private passes(entry: Entry): boolean {
    const wanted = this.filter.value;
    if (wanted === "") return true;
    if (wanted === ON_SCREEN) return this.events.isOpen(`m:${entry.name}`) || entry.series.some((series) => this.events.isOpen(idOf(series)));
    if (wanted.startsWith("as ")) return entry.quantity === wanted.slice(3);
    return this.catalog.kindsOf(entry).has(wanted.slice(4));
  }

  private groups(): HTMLElement[] {
    const groups = this.catalog.groups();
    for (const name of this.states.keys()) if (!groups.has(name)) groups.set(name, []);
    const sorted = [...groups].sort(([a], [b]) => Number(b === FORMULAS) - Number(a === FORMULAS));
    const made = sorted.map(([name, entries]) => {
      const count = entries.reduce((sum, entry) => sum + entry.series.length, 0);
      return this.group(name, String(count), () => [this.rows(entries.map((entry) => () => [this.row(entry, false)]))]);
    });
    const { absent } = this.catalog.source;
    if (absent.length > 0) made.push(this.group("unavailable", String(absent.length), () => absent.map(absentRow)));
    return made;
  }

  private group(name: string, count: string, contents: () => HTMLElement[]): HTMLElement {
    const inside = h("div", { class: "entries" });
    if (this.open.has(name)) inside.append(...contents());
    const details = h("details", { open: this.open.has(name) }, h("summary", {}, h("span", { class: "name" }, name), h("span", { class: "off" }, "off"), h("span", { class: "count" }, count)), inside);
    details.addEventListener("toggle", () => {
      if (details.open) {
        this.open.add(name);
        if (inside.childElementCount === 0) inside.append(...contents());
      } else this.open.delete(name);
    });
    const box = h("div", { class: "group", "data-sensor": name }, details);
    if (this.states.has(name)) box.append(this.switchOf(name, box));
    return box;
  }

  private switchOf(name: string, box: HTMLElement): HTMLButtonElement {
    const button: HTMLButtonElement = h("button", {
      type: "button", class: "switch", role: "switch", "aria-label": `Sample ${name} for everyone`, disabled: !this.events.mayOrder,
      click: () => this.events.turn(name, button.getAttribute("aria-checked") !== "true"),
    }, h("i", {}));
    box.append(button);
    this.switches.set(name, button);
    this.turned(name, button);
    return button;
  }

  private turned(name: string, button: HTMLButtonElement): void {
    const on = this.states.get(name) === true;
    button.setAttribute("aria-checked", String(on));
    button.title = on ? `Stop sampling ${name} for everyone; samples taken so far are kept` : `Resume sampling ${name} for everyone`;
    button.parentElement?.classList.toggle("is-off", !on);
  }

  /** Makes a long list in pieces. */
  private rows(make: (() => HTMLElement[])[]): HTMLElement {
    const box = h("div", { class: "entries" });
    const next = (from: number) => {
      box.append(...make.slice(from, from + MAX_ROWS).flatMap((one) => one()));
      const left = make.length - from - MAX_ROWS;
      if (left <= 0) return;
      const more: HTMLButtonElement = h("button", { type: "button", class: "link more", click: () => { more.remove(); next(from + MAX_ROWS); } }, `${left} more`);
      box.append(more);
    };
    next(0);
    return box;
  }

  private row(entry: Entry, whole: boolean): HTMLElement {
    const short = whole || entry.group === FORMULAS ? entry.name : entry.name.slice(entry.group.length + 1);
    const button = this.button("entry", `m:${entry.name}`, `${entry.name}\n${entry.help}\n${entry.detail}`, h("span", { class: "name" }, short),
      h("span", { class: "count" }, unitOf(entry.quantity)), h("span", { class: "help" }, entry.help));
    if (entry.series.length < 2) return button;
    const shown = this.places.has(entry.name);
    const inside = h("div", { class: "places" });
    if (shown) inside.append(this.rows([() => this.seriesRows(entry, entry.series)]));
    const spread = h("button", {
      type: "button", class: "spread", "aria-expanded": String(shown), title: `Show the ${entry.series.length} series of ${entry.name}`,
      click: () => {
        if (!this.places.delete(entry.name)) this.places.add(entry.name);
        const open = this.places.has(entry.name);
        spread.setAttribute("aria-expanded", String(open));
        inside.replaceChildren(...(open ? [this.rows(entry.series.map((series) => () => this.seriesRows(entry, [series])))] : []));
      },
    }, `×${entry.series.length}`, h("span", { class: "unseen" }, ` series of ${entry.name}`));
    return h("div", { class: "several" }, button, spread, inside);
  }

  private seriesRows(entry: Entry, series: Series[]): HTMLElement[] {
    return series.slice(0, MAX_ROWS).map((one) =>
      this.button("entry place", idOf(one), `${entry.name}${one.instance ? `@${one.instance}` : ""}\n${entry.help}`, h("span", { class: "name" }, place(one.instance))));
  }

  private button(kind: string, id: string, title: string, ...contents: HTMLElement[]): HTMLButtonElement {
    const button: HTMLButtonElement = h("button", {
      type: "button", class: kind, "aria-pressed": String(this.events.isOpen(id)), "data-id": id, title: `${title}\nShift+click: add to the open panel`,
      click: (event: MouseEvent) => {
        this.events.choose(id, event.shiftKey);
        this.mark();
      },
    }, h("span", { class: "dot" }), ...contents);
    return button;
  }

  /** Marks the entries that have an open panel. */
  mark(): void {
    for (const button of this.list.querySelectorAll<HTMLElement>("[data-id]")) button.setAttribute("aria-pressed", String(this.events.isOpen(button.dataset.id ?? "")));
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

  /** The arrow keys move from row to row. */
  private walk(event: KeyboardEvent): void {
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (by === 0) return;
    const all = [...this.list.querySelectorAll<HTMLElement>(".entry, summary")].filter((one) => one.offsetParent !== null);
    const at = all.indexOf(document.activeElement as HTMLElement);
    if (at < 0) return;
    event.preventDefault();
    (all[at + by] ?? (by < 0 ? this.search : all[at]))?.focus();
  }
}

function idOf(series: Series): string {
  return series.instance ? `m:${series.name}@${series.instance}` : `m:${series.name}`;
}

function absentRow(one: AbsentInfo): HTMLElement {
  return h("div", { class: "absent" }, h("strong", {}, one.name), h("span", {}, `${one.missing}: ${one.seen}`), one.fix ? h("code", {}, one.fix) : null);
}
