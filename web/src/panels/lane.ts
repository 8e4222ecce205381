// The lane above the charts: what the recorder noted in the visible range. A click on a mark zooms to it.

import { h, icon, ICONS } from "../elements";
import { clock } from "../units";
import type { WireLabel } from "../wire";
import { clusters, eventsOf, linesOf, type Cluster, type EventKind, type RecorderEvent } from "./events";

/** A mark is as wide as a finger needs. */
const MARK_PIXELS = 24;
/** What is shown around an event, at least. */
const LEAST_MS = 2000;
const SHOWN_AROUND = 0.25;

const SIGNS: Record<EventKind, keyof typeof ICONS> = { loss: "warning", pause: "pause", program: "play", change: "event" };

export class Lane {
  private readonly track = h("div", { class: "lane-track" });
  private readonly none = h("span", { class: "quiet lane-none" }, "no events in this range");
  private readonly tip = h("div", { class: "lane-tip", hidden: true, role: "tooltip" });
  readonly element = h("section", { class: "lane", "aria-label": "Events" }, h("h2", {}, "Events"), this.track, this.tip);
  private events: RecorderEvent[] = [];
  private range: [number, number] = [0, 1];
  private marks: HTMLButtonElement[] = [];
  private spans: HTMLElement[] = [];
  private clusters: Cluster[] = [];
  private pointed = -1;

  constructor(private readonly zoom: (from: number, to: number) => void) {
    this.track.append(this.none);
  }

  take(labels: readonly WireLabel[]): void {
    this.events = eventsOf(labels);
    this.show(...this.range);
  }

  show(from: number, to: number): void {
    this.range = [from, to];
    const width = this.track.clientWidth;
    if (width <= 0 || to <= from) return;
    this.clusters = clusters(this.events, from, to, Math.max(1, width - MARK_PIXELS), MARK_PIXELS);
    this.none.hidden = this.clusters.length > 0;
    this.showSpans(width);
    while (this.marks.length < this.clusters.length) this.marks.push(this.mark(this.marks.length));
    this.marks.forEach((mark, at) => this.fill(mark, this.clusters[at]));
    if (this.pointed >= 0) this.point(this.pointed < this.clusters.length ? this.pointed : -1);
  }

  /** What lasts is a bar: a pause, or a sensor without values. */
  private showSpans(width: number): void {
    const [from, to] = this.range;
    const lasting = this.events.filter((event) => event.to !== event.from && event.from <= to && (event.to ?? to) >= from);
    while (this.spans.length < lasting.length) {
      const bar = h("i", { class: "lane-span" });
      this.spans.push(bar);
      this.track.prepend(bar);
    }
    this.spans.forEach((bar, at) => {
      const event = lasting[at];
      bar.hidden = event === undefined;
      if (!event) return;
      const x = (ms: number) => ((Math.min(to, Math.max(from, ms)) - from) / (to - from)) * (width - MARK_PIXELS) + MARK_PIXELS / 2;
      bar.className = `lane-span ${event.kind}`;
      bar.style.left = `${x(event.from)}px`;
      bar.style.width = `${Math.max(2, x(event.to ?? to) - x(event.from))}px`;
    });
  }

  private mark(at: number): HTMLButtonElement {
    const leave = () => this.pointed === at && this.point(-1);
    const mark = h("button", { type: "button", class: "lane-mark", click: () => this.open(at), pointerenter: () => this.point(at), focus: () => this.point(at), pointerleave: leave, blur: leave });
    this.track.append(mark);
    return mark;
  }

  private fill(mark: HTMLButtonElement, cluster: Cluster | undefined): void {
    mark.hidden = cluster === undefined;
    if (!cluster) return;
    const { kind, at, events } = cluster;
    mark.style.left = `${at}px`;
    const count = events.length > 1 ? String(events.length) : "";
    const key = `${kind} ${count}`;
    if (mark.dataset.key !== key) {
      mark.dataset.key = key;
      mark.className = `lane-mark ${kind}`;
      mark.replaceChildren(icon(ICONS[SIGNS[kind]]), h("span", { class: "lane-count" }, count));
    }
    const name = linesOf(events, clock).join("; ");
    if (mark.getAttribute("aria-label") !== name) mark.setAttribute("aria-label", name);
  }

  /** Tells what a mark stands for; -1: none. */
  private point(at: number): void {
    this.pointed = at;
    const cluster = this.clusters[at];
    this.tip.hidden = cluster === undefined;
    if (!cluster) return;
    const text = linesOf(cluster.events, clock).join("\n");
    if (this.tip.textContent !== text) this.tip.textContent = text;
    const room = this.element.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(4, Math.min(room, this.track.offsetLeft + cluster.at - 8))}px`;
  }

  /** Shows the time of its events. */
  private open(at: number): void {
    const events = this.clusters[at]?.events ?? [];
    const [low, high] = this.range;
    const from = Math.min(...events.map((event) => event.from));
    const to = Math.max(...events.map((event) => event.to ?? high));
    const around = Math.max((to - from) * SHOWN_AROUND, Math.min(LEAST_MS, (high - low) / 4) / 2);
    this.zoom(from - around, to + around);
  }
}
