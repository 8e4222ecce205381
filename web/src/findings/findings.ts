// The findings of the range on screen: requests them, shows them on the strip, and isolates the evidence of a chosen one.

import type { Connection } from "../connection";
import { notify } from "../dialogs";
import type { Panel } from "../panels/panel";
import type { Catalog } from "../series";
import { NS_PER_MS } from "../store";
import type { Ids, Timeline } from "../timeline";
import type { View } from "../view";
import type { FromServer } from "../wire";
import type { FindingInfo, RangeFindings } from "../wire-findings";
import { Asking } from "./asking";
import { panelIds } from "./evidence";
import { Strip } from "./strip";
import { rangeOf } from "./words";

/** What this needs of the screen. */
export interface FindingsStage {
  view: View;
  catalog: Catalog;
  timeline: Timeline;
  connection: Connection;
  ids: Ids;
  panels(): readonly Panel[];
  /** The panels of the view changed. */
  arrange(): void;
}

/** What was on screen before a finding was chosen. */
interface Before {
  follow: boolean;
  range: [number, number];
  spanMs: number;
  panels: string[];
}

export class Findings {
  readonly strip: Strip;
  private readonly asking: Asking;
  private found: RangeFindings | null = null;
  private chosen: FindingInfo | null = null;
  private before: Before | null = null;
  /** The panels with the evidence of the chosen finding. */
  private isolated: string[] = [];

  constructor(private readonly stage: FindingsStage) {
    this.strip = new Strip({ choose: (finding) => this.choose(finding), back: () => this.back() }, stage.connection.served ? "" : "all of the recording, whatever is on screen");
    this.asking = new Asking((from, to) => this.request(from, to));
    this.wait();
  }

  /** The range on screen may have changed. */
  changed(): void {
    const { timeline, view, connection } = this.stage;
    this.fade();
    // A file without a server has the findings of all its samples only.
    const [from, to] = connection.served ? timeline.range() : timeline.limits();
    this.asking.want(from, to, view.follow);
  }

  /** Also when more of a recording was read: there are no findings before that is all. */
  reconnected(): void {
    this.asking.restart();
    this.wait();
  }

  private wait(): void {
    const { name, read_percent } = this.stage.timeline.source;
    this.strip.wait(read_percent === null ? "Looking for problems" : `${read_percent} % of ${name} was read so far`);
  }

  /** Takes an answer, also that a request was refused. */
  take(message: Extract<FromServer, { type: "findings" | "reply" }>): boolean {
    if (!this.asking.ended(message.id)) return false;
    if (message.type === "findings") this.found = message.found;
    this.show();
    return true;
  }

  stop(): void {
    this.asking.stop();
    this.strip.destroy();
  }

  private request(from: number, to: number): number | null {
    const { connection, ids, timeline } = this.stage;
    const id = ids.next();
    const sent = connection.send({ type: "findings", id, source: timeline.source.id, from_ns: Math.max(0, Math.round(from * NS_PER_MS)), to_ns: Math.round(to * NS_PER_MS) });
    return sent ? id : null;
  }

  private show(): void {
    if (this.found) this.strip.show(this.found, this.chosen);
  }

  /** Zooms to a finding and shows its numbers; others fade. */
  private choose(finding: FindingInfo): void {
    const { view, timeline, catalog } = this.stage;
    const { found } = this;
    if (!found) return;
    this.before ??= { follow: view.follow, range: timeline.range(), spanMs: view.spanMs, panels: view.panels };
    const open = this.stage.panels().filter(({ spec }) => this.before?.panels.length === 0 || this.before?.panels.includes(spec.id)).map(({ spec }) => spec);
    this.isolated = panelIds(finding, catalog, open);
    this.chosen = finding;
    const added = this.isolated.filter((id) => !open.some((spec) => spec.id === id));
    if (added.length > 0) view.panels = [...added, ...open.map(({ id }) => id)];
    this.stage.arrange();
    // Without evidence on the page there is nothing to see in its time either.
    if (this.isolated.length > 0) timeline.showRange(...rangeOf(finding, found, timeline.source.interval_ns), false);
    else notify("This source has none of the numbers that support it.");
    this.fade();
    this.stage.panels().find(({ spec }) => spec.id === this.isolated[0])?.element.scrollIntoView({ block: "nearest" });
    this.show();
  }

  private back(): void {
    const { view, timeline } = this.stage;
    const { before } = this;
    [this.before, this.chosen, this.isolated] = [null, null, []];
    if (!before) return this.show();
    view.panels = before.panels;
    this.stage.arrange();
    if (before.follow) timeline.follow(before.spanMs);
    else timeline.showRange(...before.range, false);
    this.fade();
    this.show();
  }

  /** Fades panels without evidence, also those that were opened since. */
  private fade(): void {
    const { isolated } = this;
    for (const { spec, element } of this.stage.panels()) element.classList.toggle("faded", isolated.length > 0 && !isolated.includes(spec.id));
  }
}
