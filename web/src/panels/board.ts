// All panels: which there are, and passing on what changes. Only those in sight are drawn.

import { h } from "../elements";
import type { Catalog } from "../series";
import type { Slice } from "../store";
import type { Mode, View } from "../view";
import type { Mark, Other } from "./chart";
import { defaultPanels, panelOf, type PanelSpec } from "./lines";
import { Panel, type PanelEvents } from "./panel";
import { listenToGestures, type Gestures } from "./gestures";

export class Board {
  readonly element = h("div", { class: "board" });
  private panels: Panel[] = [];
  private readonly seen: IntersectionObserver;
  private slice: Slice | null = null;
  private range: [number, number] = [0, 1];
  private marks: Mark[] = [];
  private other: Other | undefined;

  constructor(
    private readonly catalog: Catalog,
    private readonly view: View,
    private readonly events: Omit<PanelEvents, "close" | "mode">,
    private readonly gestures: Gestures,
    private readonly changed: () => void,
  ) {
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const panel = this.panels.find((p) => p.element === entry.target);
        if (!panel || panel.visible === entry.isIntersecting) continue;
        panel.visible = entry.isIntersecting;
        if (panel.visible && this.slice) panel.show(this.slice, ...this.range);
      }
    }, { rootMargin: "100px" });
  }

  get list(): readonly Panel[] {
    return this.panels;
  }

  /** Makes the panels that the view names, keeping those that stay. */
  arrange(): void {
    const specs = this.specs();
    const old = new Map(this.panels.map((panel) => [panel.spec.id, panel]));
    this.panels = specs.map((spec) => old.get(spec.id) ?? this.make(spec));
    for (const panel of old.values()) {
      if (!this.panels.includes(panel)) this.seen.unobserve(panel.element);
    }
    const empty = h("p", { class: "empty" }, "No panel is open. Choose a metric in the list, or press ‘0’ for the default panels.");
    this.element.replaceChildren(...(this.panels.length > 0 ? this.panels.map((panel) => panel.element) : [empty]));
    for (const panel of this.panels) {
      if (old.has(panel.spec.id)) continue;
      panel.build();
      panel.compare(this.other);
      panel.setMarks(this.marks);
      this.seen.observe(panel.element);
    }
    if (this.slice) this.show(this.slice, ...this.range);
  }

  /** The numbers of all series that the panels show. */
  series(): number[] {
    return this.panels.flatMap((panel) => panel.spec.lines.map((line) => line.series.number));
  }

  has(id: string): boolean {
    return this.panels.some((panel) => panel.spec.id === id);
  }

  add(id: string): void {
    if (!this.has(id)) this.view.panels = [id, ...this.panels.map((panel) => panel.spec.id)];
    this.changed();
  }

  /** Puts a metric into the first panel that was opened from the list, or opens one. */
  join(name: string): void {
    const first = this.panels.find((panel) => panel.spec.id.startsWith("m:"));
    if (!first) return this.add(`m:${name}`);
    const joined = `${first.spec.id}+${name}`;
    this.view.panels = this.panels.map((panel) => (panel === first ? joined : panel.spec.id));
    this.changed();
  }

  remove(id: string): void {
    const left = this.panels.map((panel) => panel.spec.id).filter((other) => other !== id);
    this.view.panels = left.length > 0 ? left : ["none"];
    this.changed();
  }

  show(slice: Slice, from: number, to: number): void {
    this.slice = slice;
    this.range = [from, to];
    this.element.classList.toggle("waiting", slice.x.length === 0);
    for (const panel of this.panels) panel.show(slice, from, to);
  }

  compare(other: Other | undefined): void {
    this.other = other;
    for (const panel of this.panels) {
      panel.compare(other);
      panel.setMarks(this.marks);
    }
  }

  pointAt(ms: number | null): void {
    for (const panel of this.panels) panel.pointAt(ms);
  }

  setMarks(marks: Mark[]): void {
    this.marks = marks;
    for (const panel of this.panels) panel.setMarks(marks);
  }

  rebuild(): void {
    for (const panel of this.panels) {
      panel.build();
      panel.setMarks(this.marks);
    }
  }

  /** Width of a chart in pixels, which says how many buckets are worth having. */
  chartWidth(): number {
    return this.panels.reduce((most, panel) => Math.max(most, (panel.canvases()[0]?.clientWidth ?? 0) - 70), 300);
  }

  private specs(): PanelSpec[] {
    if (this.view.panels.length === 0) return defaultPanels(this.catalog);
    return this.view.panels.map((id) => panelOf(this.catalog, id)).filter((spec) => spec !== null);
  }

  private make(spec: PanelSpec): Panel {
    const mode: Mode = this.view.modes[spec.id] ?? "lines";
    const panel = new Panel(spec, mode, {
      ...this.events,
      close: (id) => this.remove(id),
      mode: (id, now) => {
        this.view.modes[id] = now;
        queueMicrotask(() => panel.setMarks(this.marks));
        this.changed();
      },
    });
    listenToGestures(panel.element, this.element, this.gestures);
    return panel;
  }
}
