// The visible time range and its data: a growing grid while the page follows live data, otherwise the
// answers to fetches of the past.

import { coarseSeries, known } from "./coarse";
import type { Connection } from "./connection";
import type { Frame } from "./frame";
import { keepInside, stepFor, zoomed } from "./steps";
import { EMPTY, Grid, NS_PER_MS, sliceOf, type Slice } from "./store";
import type { ClientLimits, SourceInfo, ObservationState } from "./wire";
import type { View } from "./view";

const MIN_MS = 10;
/** A range that grows with the history begins with this length. */
const FIRST_MS = 5000;
/** Ranges exclude their end, but the last sample of a recording must be inside. */
const AFTER_MS = 0.001;
const ASK_PAUSE_MS = 70;
const LIVE_PAUSE_MS = 66;
/** Minimum pause between two drawings, as a multiple of the time that one takes. */
const COSTS = 3;
const HOLES_PAUSE_MS = 1000;

/** Numbers of fetches and commands; watches have fixed numbers. */
export class Ids {
  private last = 100;
  next(): number {
    return ++this.last;
  }
}

export class Timeline {
  slice: Slice = EMPTY;
  private grid: Grid | null = null;
  private watched = "";
  private asked = 0;
  private asking = 0;
  private series: number[] = [];
  private newest = 0;
  private drawing = 0;
  private drawnAt = 0;
  private shownEnd = 0;
  private dropped = 0;
  private filling = 0;
  private watchedSeries = "";
  private watchedSpan = 0;
  /** When the first history began; that of a restarted server begins later. */
  private begun = Infinity;
  private readonly coarse: Map<number, number>;
  private back: [number, number, boolean][] = [];
  /** Whether values were requested and did not arrive yet. */
  private waits = false;

  constructor(
    readonly source: SourceInfo,
    readonly view: View,
    private readonly connection: Connection,
    private readonly ids: Ids,
    private readonly watchId: number,
    private readonly changed: () => void,
  ) {
    if (source.kind === "recording") view.follow = false;
    this.coarse = coarseSeries(source);
  }

  buckets = 600;
  state: ObservationState | null = null;
  /** How long the last drawing took, in ms. A page that only draws cannot be used. */
  cost = 0;
  /** The server's limits for one answer. */
  most: Pick<ClientLimits, "series" | "values"> = { series: 4096, values: 2_000_000 };

  get live(): boolean {
    return this.source.kind === "live";
  }

  /** The time range of all data. */
  limits(): [number, number] {
    const { started_ns, ended_ns } = this.source;
    if (ended_ns !== null) return [started_ns / NS_PER_MS, Math.max(ended_ns / NS_PER_MS + AFTER_MS, started_ns / NS_PER_MS + MIN_MS)];
    const history = this.state?.history;
    const from = (history && history.from_ns > 0 ? history.from_ns : started_ns) / NS_PER_MS;
    const to = Math.max((history?.to_ns ?? 0) / NS_PER_MS, this.newest, from + 1000);
    return [from, to];
  }

  range(): [number, number] {
    const { view } = this;
    if (!view.follow) return [view.from, view.to];
    const to = this.shownEnd || this.limits()[1];
    return [to - this.following(to), to];
  }

  /** The length of the range while following: it grows with the history up to the chosen one. */
  private following(to: number): number {
    this.begun = Math.min(this.begun, this.limits()[0]);
    return Math.min(this.view.spanMs, Math.max(to - this.begun, FIRST_MS));
  }

  /** Whether values of the range on screen are still awaited. Where there is no sample at all, nothing is. */
  get loading(): boolean {
    return this.waits && !(this.live && this.state?.history.to_ns === 0);
  }

  /** The request with this number was refused. */
  refused(id: number): void {
    if (id === this.asked || id === this.watchId) this.answered();
  }

  /** The numbers of the requested series. */
  get shown(): readonly number[] {
    return this.series;
  }

  show(series: number[]): void {
    const wanted = [...new Set(series)].slice(0, this.most.series).sort((a, b) => a - b);
    if (wanted.join() === this.series.join()) return;
    this.series = wanted;
    this.refresh();
  }

  /** Requests what the view needs and does not have yet. */
  refresh(): void {
    if (this.series.length === 0 || (!this.view.follow && this.view.to <= this.view.from)) return;
    if (this.view.follow) this.watch();
    else this.ask();
    this.changed();
  }

  /** After the connection was lost: received data is kept, the rest is requested again. */
  reconnected(): void {
    this.watched = "";
    this.dropped = 0;
    this.refresh();
  }

  /** Stops receiving data. */
  stop(): void {
    for (const timer of [this.asking, this.drawing, this.filling]) window.clearTimeout(timer);
    this.connection.send({ type: "unwatch", id: this.watchId });
  }

  private watch(): void {
    const interval = (this.state?.interval_ns ?? this.source.interval_ns) / NS_PER_MS;
    const to = this.limits()[1];
    const length = this.following(to);
    // A grid of another step would lose what was received before the server was restarted.
    const kept = this.grid && this.limits()[0] > this.begun && this.watchedSpan === this.view.spanMs;
    const stepMs = kept && this.grid ? this.grid.stepMs : stepFor(length, this.buckets, Math.max(1, interval));
    const key = `${stepMs} ${this.series.join()}`;
    if (key === this.watched) return;
    const maxBuckets = Math.ceil((this.view.spanMs * 1.5) / stepMs) + 64;
    // Of a history that seems shorter than it is, as before the first state, a fine grid of all of it would be much.
    const from = Math.max(0, to - length * 1.15);
    if (!this.grid || this.grid.stepMs !== stepMs || this.watchedSeries !== this.series.join()) {
      this.grid = new Grid(stepMs, maxBuckets);
      this.waits = true;
    }
    [this.watchedSeries, this.watchedSpan] = [this.series.join(), this.view.spanMs];
    const message = { type: "watch", id: this.watchId, source: this.source.id, series: this.series, step_ns: Math.round(stepMs * NS_PER_MS), from_ns: Math.round(from * NS_PER_MS), partial: true } as const;
    if (this.connection.send(message)) this.watched = key;
  }

  private ask(): void {
    window.clearTimeout(this.asking);
    this.waits = true;
    this.asking = window.setTimeout(() => {
      const { from, to } = this.view;
      const margin = (to - from) / 2;
      const [low, high] = this.limits();
      const start = Math.max(low, from - margin);
      const end = Math.min(high, to + margin);
      if (end <= start) return this.answered();
      this.asked = this.ids.next();
      this.connection.send({
        type: "fetch",
        id: this.asked,
        source: this.source.id,
        series: this.series,
        from_ns: Math.round(start * NS_PER_MS),
        to_ns: Math.round(end * NS_PER_MS),
        buckets: Math.max(1, Math.min(Math.round((this.buckets * (end - start)) / (to - from)), Math.floor(this.most.values / this.series.length))),
      });
    }, ASK_PAUSE_MS);
  }

  /** Accepts a frame if it belongs to this timeline. */
  take(frame: Frame): boolean {
    const { id, rows, dropped } = frame.header;
    if (dropped > this.dropped) this.fillHoles(dropped);
    if (id === this.watchId) {
      const step = (frame.header.step_ns ?? 0) / NS_PER_MS;
      if (!this.grid || Math.abs(step - this.grid.stepMs) > 1e-9) return true;
      this.grid.apply(frame);
      this.newest = Math.max(this.newest, this.grid.end);
      if (this.view.follow) this.arrived();
      return true;
    }
    if (id !== this.asked) return false;
    // A restarted server does not have the earlier samples; keep those that the page has.
    if (rows > 0) this.slice = known(sliceOf(frame), this.coarse);
    this.answered();
    return true;
  }

  private answered(): void {
    this.waits = false;
    this.changed();
  }

  /** Frames were dropped because this page was too slow; request them again from the server's history. */
  private fillHoles(dropped: number): void {
    this.dropped = dropped;
    if (this.filling !== 0) return;
    this.filling = window.setTimeout(() => {
      this.filling = 0;
      this.watched = "";
      this.refresh();
    }, HOLES_PAUSE_MS);
  }

  /** New samples are drawn at most about ten times a second, whatever the number of frames. */
  private arrived(): void {
    if (this.drawing !== 0) return;
    const pause = Math.max(0, this.drawnAt + Math.max(LIVE_PAUSE_MS, COSTS * this.cost) - performance.now());
    this.drawing = window.setTimeout(() => {
      this.drawing = 0;
      this.drawnAt = performance.now();
      if (!this.view.follow || !this.grid) return;
      this.showNewest();
      this.changed();
    }, pause);
  }

  /** The range ends at the last drawn sample, not at the last received one, so that range and chart match. */
  private showNewest(): void {
    if (!this.grid || this.grid.length === 0) return;
    this.slice = known(this.grid.slice(), this.coarse);
    this.shownEnd = this.grid.end;
    this.waits = false;
  }

  // ---- moving ----

  follow(spanMs?: number): void {
    if (!this.live) return this.showRange(...this.limits());
    if (spanMs) this.view.spanMs = spanMs;
    this.view.follow = true;
    this.showNewest();
    this.watched = "";
    this.refresh();
  }

  /** Stops following live data at the current range. */
  freeze(): void {
    if (!this.view.follow) return;
    [this.view.from, this.view.to] = this.range();
    this.view.follow = false;
    this.refresh();
  }

  showRange(from: number, to: number, remember = true): void {
    const [low, high] = this.limits();
    const [start, end] = this.range();
    if (remember) this.back.push([start, end, this.view.follow]);
    if (this.back.length > 50) this.back.shift();
    const length = Math.max(to - from, MIN_MS);
    [this.view.from, this.view.to] = keepInside(from, from + length, low, high);
    this.view.spanMs = this.view.to - this.view.from;
    this.view.follow = false;
    this.refresh();
  }

  zoom(factor: number, around?: number): void {
    const [from, to] = this.range();
    if (this.view.follow && (around === undefined || factor > 1)) {
      const [low, high] = this.limits();
      this.view.spanMs = Math.min(Math.max((to - from) * factor, 1000), Math.max(high - low, 60_000));
      return this.refresh();
    }
    this.showRange(...zoomed(from, to, around ?? (from + to) / 2, factor, MIN_MS), false);
  }

  /** Moves the range by a fraction of its length; moving it past the newest sample follows live data again. */
  pan(share: number): void {
    const [from, to] = this.range();
    const by = (to - from) * share;
    if (this.live && share > 0 && to + by > this.limits()[1] + (to - from) * 0.02) return this.follow(to - from);
    this.showRange(from + by, to + by, false);
  }

  /** Back to the range before the last zoom. */
  undo(): void {
    const last = this.back.pop();
    if (!last) return this.live ? this.follow(60_000) : this.showRange(...this.limits(), false);
    if (last[2]) return this.follow(last[1] - last[0]);
    this.showRange(last[0], last[1], false);
  }
}
