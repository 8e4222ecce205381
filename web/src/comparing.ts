// The selection of a second source and of the alignment: at the start of both or at a label that both
// have. The selection is part of the view, and so of the page address.

import { SecondSource, sharedLabels } from "./second-source";
import type { Connection } from "./connection";
import { h } from "./elements";
import type { Frame } from "./frame";
import type { Other } from "./panels/columns";
import type { Catalog } from "./series";
import type { Ids, Timeline } from "./timeline";
import type { View } from "./view";
import type { WireLabel, SourceInfo } from "./wire";

/** What the comparison needs from the page. */
export interface ComparisonContext {
  sources: SourceInfo[];
  view: View;
  connection: Connection;
  ids: Ids;
  labelsOf(source: number): WireLabel[];
}

export class Comparing {
  readonly element = h("span", { class: "compare" });
  private beside: SecondSource | null = null;
  private readonly which: HTMLSelectElement;
  private readonly where = h("select", { "aria-label": "Align at", title: "Where to align the two sources" });

  constructor(
    private readonly around: ComparisonContext,
    private readonly catalog: Catalog,
    private readonly timeline: Timeline,
    private readonly changed: () => void,
  ) {
    this.which = h("select", { "aria-label": "Compare with", title: "Draw a second source as dashed lines" });
    this.which.addEventListener("change", () => this.choose(this.which.value === "" ? null : Number(this.which.value), ""));
    this.where.addEventListener("change", () => this.choose(around.view.beside, this.where.value));
    this.sourcesChanged();
    this.apply();
  }

  /** A source was added, which can be compared with. */
  sourcesChanged(): void {
    const others = this.around.sources.filter((one) => one.id !== this.catalog.source.id);
    this.which.replaceChildren(h("option", { value: "" }, "Compare with …"),
      ...others.map((one) => h("option", { value: one.id }, one.kind === "live" ? `${one.host}, live` : one.name)));
    this.element.replaceChildren(...(others.length > 0 ? [this.which, this.where] : []));
    this.fill();
  }

  /** The second source's track for a series, at the visible times; undefined without a comparison. */
  other: Other | undefined;

  /** The name of the second source; empty without one. */
  get name(): string {
    return this.beside?.source.name ?? "";
  }

  /** The number of the second source and how many ms its times are later; null without one. */
  get second(): { id: number; shift: number } | null {
    return this.beside && { id: this.beside.source.id, shift: this.beside.shift };
  }

  /** The time of the first source at which both are aligned. */
  get origin(): number {
    const { view, labelsOf } = this.around;
    const { id, started_ns } = this.catalog.source;
    const label = labelsOf(id).find(({ text }) => text === view.at);
    return (view.at && label ? label.time_ns : started_ns) / 1e6;
  }

  choose(id: number | null, at: string): void {
    Object.assign(this.around.view, { beside: id, at });
    this.apply();
    this.changed();
  }

  /** Labels changed, so the choices of alignment and the shift may change. */
  labelsChanged(): void {
    this.fill();
    if (this.beside?.lay(this.shift(this.beside.source))) this.changed();
  }

  want(): void {
    this.beside?.want([...this.timeline.shown], ...this.timeline.range(), this.timeline.buckets);
  }

  /** Whether all of the other source was read. */
  get isWhole(): boolean {
    return (this.beside?.source.read_percent ?? null) === null;
  }

  reconnected(): void {
    this.beside?.forget();
  }

  take(frame: Frame): boolean {
    return this.beside?.take(frame) ?? false;
  }

  private apply(): void {
    const { sources, view, connection, ids } = this.around;
    const other = sources.find((one) => one.id === view.beside && one.id !== this.catalog.source.id);
    const beside = other ? new SecondSource(other, this.catalog, connection, ids, this.shift(other), this.changed) : null;
    this.beside = beside;
    this.other = beside ? (number) => beside.track(this.timeline.slice, number) : undefined;
    this.fill();
  }

  private fill(): void {
    const { view, labelsOf } = this.around;
    const other = this.beside?.source;
    this.which.value = other ? String(other.id) : "";
    this.where.hidden = !other;
    const shared = other ? sharedLabels(labelsOf(this.catalog.source.id), labelsOf(other.id)) : [];
    this.where.replaceChildren(h("option", { value: "" }, "at the start"), ...shared.map((text) => h("option", { value: text }, `at ‘${text}’`)));
    this.where.value = shared.includes(view.at) ? view.at : "";
  }

  /** How many ms the other source's times are later. */
  private shift(other: SourceInfo): number {
    const { view, labelsOf } = this.around;
    const first = this.catalog.source;
    const time = (source: number) => labelsOf(source).find((label) => label.text === view.at)?.time_ns;
    const [own, its] = [time(first.id), time(other.id)];
    if (view.at && own !== undefined && its !== undefined) return (its - own) / 1e6;
    return (other.started_ns - first.started_ns) / 1e6;
  }
}
