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
  private labels: readonly WireLabel[] | null = null;
  private events: RecorderEvent[] = [];
  private range: [number, number] = [0, 1];
  /** The mark of each cluster by its first event, so that a mark keeps its events, and the focus, while time passes. */
  private readonly marks = new Map<string, HTMLButtonElement>();
  private spans: HTMLElement[] = [];
  private clusters: Cluster[] = [];
  /** The cluster whose events are in words. */
  private pointed = "";

  constructor(private readonly zoom: (from: number, to: number) => void) {
    this.track.append(this.none);
  }

  /** Takes all labels. A sampler that is behind writes hundreds a second: they are read with the next drawing. */
  take(labels: readonly WireLabel[]): void {
    this.labels = labels;
  }

  show(from: number, to: number): void {
    this.range = [from, to];
    const width = this.track.clientWidth;
    if (width <= 0 || to <= from) return;
    if (this.labels) this.events = eventsOf(this.labels);
    this.labels = null;
    this.clusters = clusters(this.events, from, to, Math.max(1, width - MARK_PIXELS), MARK_PIXELS);
    this.none.hidden = this.clusters.length > 0;
    this.showSpans(width);
    const keys = this.clusters.map(keyOf);
    for (const [key, mark] of this.marks) {
      if (keys.includes(key)) continue;
      mark.remove();
      this.marks.delete(key);
    }
    let place: Element | null = this.none;
    for (const cluster of this.clusters) {
      const mark = this.markOf(keyOf(cluster));
      // Only what is at another place is moved, as that takes its focus.
      if (place.nextElementSibling !== mark) place.after(mark);
      place = mark;
      this.fill(mark, cluster);
    }
    this.point(this.pointed);
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

  private markOf(key: string): HTMLButtonElement {
    const known = this.marks.get(key);
    if (known) return known;
    const leave = () => this.pointed === key && this.point("");
    const mark = h("button", { type: "button", class: "lane-mark", click: () => this.open(key), pointerenter: () => this.point(key), focus: () => this.point(key), pointerleave: leave, blur: leave });
    this.marks.set(key, mark);
    return mark;
  }

  private fill(mark: HTMLButtonElement, cluster: Cluster): void {
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

  private cluster(key: string): Cluster | undefined {
    return this.clusters.find((cluster) => keyOf(cluster) === key);
  }

  /** Tells what a mark means; empty: none. */
  private point(key: string): void {
    const cluster = this.cluster(key);
    this.pointed = cluster ? key : "";
    this.tip.hidden = cluster === undefined;
    if (!cluster) return;
    const text = linesOf(cluster.events, clock).join("\n");
    if (this.tip.textContent !== text) this.tip.textContent = text;
    const room = this.element.clientWidth - this.tip.offsetWidth - 4;
    this.tip.style.left = `${Math.max(4, Math.min(room, this.track.offsetLeft + cluster.at - 8))}px`;
  }

  /** Shows the time of its events. */
  private open(key: string): void {
    const events = this.cluster(key)?.events ?? [];
    if (events.length === 0) return;
    const [low, high] = this.range;
    const from = Math.min(...events.map((event) => event.from));
    const to = Math.max(...events.map((event) => event.to ?? high));
    const around = Math.max((to - from) * SHOWN_AROUND, Math.min(LEAST_MS, (high - low) / 4) / 2);
    this.zoom(from - around, to + around);
  }
}

/** The first event of a cluster; its text changes when it ends. */
function keyOf({ events: [first] }: Cluster): string {
  return first ? `${first.from} ${first.kind}` : "";
}
