// All panels: creates them and passes on changes. Only visible panels are drawn.

import { h } from "../elements";
import { catalogOf, NodeChip } from "../node-filter";
import type { Catalog } from "../series";
import type { Presence } from "../presence";
import type { Slice } from "../store";
import { readMachine, type Machine } from "../topology";
import type { Mode, View } from "../view";
import type { Other } from "./columns";
import type { Mark } from "./marks";
import { defaultPanels, missingPanel, panelOf, type PanelSpec } from "./lines";
import { makeMovable, type MovingEvents } from "./moving";
import { Panel, usualMode, type PanelEvents } from "./panel";
import { columnsFor, firstSpan } from "./fit";
import { listenToGestures, type Gestures } from "./gestures";

/** In a view: no panel at all. An empty list means the default panels. */
const NONE = "none";
/** How often to check which lines have values. */
const LOOK_PAUSE_MS = 400;

export class Board {
  readonly element = h("div", { class: "board" });
  readonly chip = new NodeChip(() => this.showNode(null));
  private readonly machine: Machine | null;
  private panels: Panel[] = [];
  private readonly seen: IntersectionObserver;
  private slice: Slice | null = null;
  private range: [number, number] = [0, 1];
  private marks: Mark[] = [];
  private compared: readonly [Other | undefined, number | null, boolean] = [undefined, null, false];
  private looked = 0;
  private lookedAt: { slice: Slice; loading: boolean } | null = null;
  private looking = 0;

  constructor(
    private readonly catalog: Catalog,
    private readonly view: View,
    private readonly events: Omit<PanelEvents, "close" | "mode" | "absent">,
    private readonly gestures: Gestures,
    private readonly presence: Presence,
    private readonly changed: () => void,
    private readonly defaults: () => void,
  ) {
    this.machine = readMachine(catalog.source.topology);
    new ResizeObserver(() => this.fitSizes()).observe(this.element);
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const panel = this.panels.find((p) => p.element === entry.target);
        if (!panel || panel.visible === entry.isIntersecting) continue;
        panel.visible = entry.isIntersecting;
        if (!panel.visible || !this.slice) continue;
        panel.show(this.slice, ...this.range);
        panel.look();
      }
    }, { rootMargin: "100px" });
  }

  get list(): readonly Panel[] {
    return this.panels;
  }

  /** Makes the panels of the view and keeps those that are open already. */
  arrange(): void {
    const specs = this.specs();
    this.chip.show(this.view.node);
    const old = new Map(this.panels.map((panel) => [panel.spec.id, panel]));
    this.panels = specs.map((spec) => kept(old.get(spec.id), spec) ?? this.make(spec));
    for (const panel of old.values()) {
      if (!this.panels.includes(panel)) this.seen.unobserve(panel.element);
    }
    this.element.replaceChildren(...(this.panels.length > 0 ? this.panels.map((panel) => panel.element) : [this.empty()]));
    this.fitSizes();
    for (const panel of this.panels) {
      if (old.get(panel.spec.id) === panel) continue;
      panel.setMarks(this.marks);
      panel.build();
      panel.compare(...this.compared);
      this.seen.observe(panel.element);
    }
    this.fit();
    if (this.slice) this.show(this.slice, ...this.range);
  }

  /** Chooses the number of columns with which the panels fit into the window. */
  fit(): void {
    const { clientWidth, clientHeight } = this.element.parentElement ?? this.element;
    const shown = this.panels.filter(({ element }) => !element.hidden).length;
    const columns = columnsFor(shown, clientWidth, clientHeight);
    this.element.style.gridTemplateColumns = columns > 0 ? `repeat(${columns}, minmax(0, 1fr))` : "";
    this.element.style.setProperty("--first", String(firstSpan(shown, columns)));
  }

  /** The numbers of all series that the panels show. */
  series(): number[] {
    return this.panels.flatMap((panel) => panel.spec.lines.map((line) => line.series.number));
  }

  has(id: string): boolean {
    return this.panels.some(({ spec }) => spec.id === id || (spec.id.startsWith("m:") && id.startsWith("m:") && spec.id.slice(2).split("+").includes(id.slice(2))));
  }

  add(id: string): void {
    if (!this.has(id)) this.view.panels = [id, ...this.panels.map((panel) => panel.spec.id)];
    this.changed();
  }

  /** Adds the metric of another panel to the first panel opened from the list, or opens a panel. */
  join(id: string): void {
    const first = this.panels.find((panel) => panel.spec.id.startsWith("m:"));
    if (!first) return this.add(id);
    const name = id.slice(2);
    if (first.spec.id.slice(2).split("+").includes(name)) return;
    const joined = `${first.spec.id}+${name}`;
    this.view.panels = this.panels.map((panel) => (panel === first ? joined : panel.spec.id));
    this.changed();
  }

  /** Closes a panel, or removes a metric from the panel that shows it. */
  remove(id: string): void {
    const without = (other: string) => other.slice(2).split("+").filter((name) => `m:${name}` !== id).join("+");
    const ids = this.panels.map((panel) => panel.spec.id);
    const left = ids.includes(id) ? ids.filter((other) => other !== id) : ids.map((other) => (other.startsWith("m:") ? `m:${without(other)}` : other));
    this.view.panels = left.length > 0 ? left : [NONE];
    this.changed();
  }

  /** Shows one node alone, again or with null all nodes. */
  showNode(node: number | null): void {
    this.view.node = node === this.view.node ? null : node;
    this.changed();
  }

  show(slice: Slice, from: number, to: number): void {
    this.slice = slice;
    this.range = [from, to];
    for (const panel of this.panels) panel.show(slice, from, to);
    const loading = this.presence.loading();
    if (performance.now() - this.looked >= LOOK_PAUSE_MS || this.lookedAt?.slice !== slice || this.lookedAt.loading !== loading) return this.look();
    // A range that nobody moves any more is not drawn again.
    if (this.looking === 0) this.looking = window.setTimeout(() => this.look(), LOOK_PAUSE_MS);
  }

  /** Checks which lines have values. */
  private look(): void {
    window.clearTimeout(this.looking);
    this.looking = 0;
    const { slice, range, presence } = this;
    if (!slice) return;
    this.looked = performance.now();
    this.lookedAt = { slice, loading: presence.loading() };
    presence.look(slice, ...range, this.series());
    for (const panel of this.panels) panel.look();
    if (this.find()) this.fit();
  }

  /** Shows panels of which a line has a value for the first time; whether there is one. */
  private find(): boolean {
    const found = this.panels.filter(({ element, spec }) => element.hidden && spec.lines.some(({ series }) => !this.presence.why(series)));
    for (const { element } of found) element.hidden = false;
    return found.length > 0;
  }

  /** `origin`: the time that both are aligned at. */
  compare(other: Other | undefined, origin: number | null): void {
    const compared = [other, other ? origin : null, this.view.columns] as const;
    if (compared.every((one, at) => one === this.compared[at])) return;
    this.compared = compared;
    for (const panel of this.panels) panel.compare(...compared);
  }

  /** Scrolls to a panel. */
  reveal(id: string): void {
    const found = this.panels.find((panel) => panel.spec.id === id);
    found?.element.scrollIntoView({ block: "center" });
    found?.element.animate([{ outline: "2px solid var(--blue)" }, { outline: "2px solid transparent" }], 1200);
  }

  pointAt(ms: number | null): void {
    for (const panel of this.panels) panel.pointAt(ms);
  }

  setMarks(marks: Mark[]): void {
    this.marks = marks;
    for (const panel of this.panels) panel.setMarks(marks);
  }

  rebuild(): void {
    for (const panel of this.panels) panel.build();
  }

  /** Width of a chart in pixels, which limits the number of useful buckets. */
  chartWidth(): number {
    return this.panels.reduce((most, panel) => Math.max(most, panel.width - 70), 300);
  }

  /** What stands in place of panels. A source may have no default panels. */
  private empty(): HTMLElement {
    const closed = this.view.panels.length > 0;
    return h("div", { class: "empty" }, h("p", {}, `No panel is open. Choose a metric in the list${closed ? ", or press ‘0’ for the default panels" : ""}.`),
      closed ? h("button", { type: "button", class: "button", click: () => this.defaults() }, "Open the default panels") : null);
  }

  private specs(): PanelSpec[] {
    const { node } = this.view;
    const catalog = node === null ? this.catalog : catalogOf(this.catalog, this.machine, node);
    if (this.view.panels.length === 0) return defaultPanels(catalog);
    return this.view.panels.filter((id) => id !== NONE).map((id) => {
      const spec = panelOf(catalog, id);
      if (spec && (spec.lines.length > 0 || spec.untold)) return spec;
      const whole = node === null ? null : panelOf(this.catalog, id);
      return whole && whole.lines.length > 0 ? { ...whole, lines: [], help: `None of its series is of node ${node}.` } : missingPanel(this.catalog, id);
    });
  }

  private moving(panel: Panel): MovingEvents {
    const { id } = panel.spec;
    return {
      moved: () => {
        this.view.panels = [...this.element.children].flatMap((element) => element.getAttribute("data-panel") ?? []);
        this.changed();
      },
      cancelled: () => this.changed(),
      step: (by) => this.step(panel, by),
      size: () => this.view.sizes[id] ?? [1, 1],
      resize: ([columns, rows]) => {
        if (columns === 1 && rows === 1) delete this.view.sizes[id];
        else this.view.sizes[id] = [columns, rows];
        this.fitSizes();
        this.events.kept(panel);
      },
    };
  }

  /** Moves a panel one place; its title keeps the focus. */
  private step(panel: Panel, by: number): void {
    const ids = this.panels.map(({ spec }) => spec.id);
    const at = ids.indexOf(panel.spec.id);
    const to = at + by;
    if (at < 0 || to < 0 || to >= ids.length) return;
    ids.splice(to, 0, ...ids.splice(at, 1));
    this.view.panels = ids;
    this.changed();
    panel.title.focus();
    panel.element.scrollIntoView({ block: "nearest" });
  }

  /** The number of columns of the board. */
  private columns(): number {
    return Math.max(1, getComputedStyle(this.element).gridTemplateColumns.split(" ").filter((width) => width !== "0px").length);
  }

  /** Panels are as large as the user chose, but not wider than the board. */
  private fitSizes(): void {
    const columns = this.columns();
    for (const { spec, element } of this.panels) {
      const size = this.view.sizes[spec.id];
      element.style.gridColumn = size && size[0] > 1 && columns > 1 ? `span ${Math.min(size[0], columns)}` : "";
      element.style.gridRow = size && size[1] > 1 ? `span ${size[1]}` : "";
    }
  }

  /** Keeps in the view what a panel hides, and whether it has a table. */
  private keep(panel: Panel): void {
    const { view } = this;
    const { id } = panel.spec;
    const hidden = panel.hiddenLines;
    if (hidden) view.hidden[id] = hidden;
    else delete view.hidden[id];
    view.tables = view.tables.filter((one) => one !== id).concat(panel.hasTable ? [id] : []);
  }

  private make(spec: PanelSpec): Panel {
    const usual = usualMode(spec);
    const mode: Mode = this.view.modes[spec.id] ?? usual;
    const panel = new Panel(spec, mode, {
      ...this.events,
      absent: (line) => this.presence.why(line.series),
      close: (id) => this.remove(id),
      kept: (changed) => {
        this.keep(changed);
        this.events.kept(changed);
      },
      mode: (id, now) => {
        if (now === usual) delete this.view.modes[id];
        else this.view.modes[id] = now;
        this.changed();
      },
    });
    panel.element.hidden = spec.whenFound === true;
    makeMovable(panel.element, panel.title, panel.grip, () => this.columns(), this.moving(panel));
    panel.restore(this.view.hidden[spec.id], this.view.tables.includes(spec.id));
    listenToGestures(panel.element, this.element, this.gestures);
    return panel;
  }
}

/** A panel that is open already, if it would have the same lines. */
function kept(panel: Panel | undefined, spec: PanelSpec): Panel | undefined {
  const series = ({ lines }: PanelSpec) => lines.map((line) => line.series.number).join();
  return panel && series(panel.spec) === series(spec) ? panel : undefined;
}
