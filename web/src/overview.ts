// The whole history in few buckets, for the slider.

import type { Connection } from "./connection";
import type { Frame } from "./frame";
import { stepFor } from "./steps";
import { EMPTY, Grid, NS_PER_MS, sliceOf, type Slice } from "./store";
import type { Ids } from "./timeline";
import type { SourceInfo } from "./wire";

const WATCH = 2;
const BUCKETS = 600;
const MIN_MS = 60_000;

export class Overview {
  slice: Slice = EMPTY;
  series: number[] = [];
  private grid: Grid | null = null;
  private key = "";
  private askedKey = "";
  private asked = 0;

  constructor(
    private readonly source: SourceInfo,
    private readonly connection: Connection,
    private readonly ids: Ids,
    private readonly changed: () => void,
  ) {}

  choose(series: number[]): void {
    this.series = series;
  }

  reconnected(): void {
    this.key = "";
    this.askedKey = "";
  }

  /** Requests wider buckets when the history is too long for them. */
  refresh([from, to]: [number, number]): void {
    if (this.series.length === 0) return;
    if (this.source.ended_ns !== null) return this.ask(from, to);
    const stepMs = stepFor(Math.max(to - from, MIN_MS), BUCKETS, 1);
    const key = `${stepMs} ${this.series.join()}`;
    if (key === this.key) return;
    const grid = new Grid(stepMs, BUCKETS * 6);
    const sent = this.connection.send({ type: "watch", id: WATCH, source: this.source.id, series: this.series, step_ns: stepMs * NS_PER_MS, from_ns: Math.round(from * NS_PER_MS) });
    if (sent) [this.grid, this.key] = [grid, key];
  }

  take(frame: Frame): boolean {
    const { header } = frame;
    if (header.id === this.asked) {
      this.slice = sliceOf(frame);
    } else if (header.id === WATCH && this.grid && Math.abs((header.step_ns ?? 0) / NS_PER_MS - this.grid.stepMs) < 1e-9) {
      this.grid.apply(frame);
      this.slice = this.grid.slice();
    } else return false;
    this.changed();
    return true;
  }

  private ask(from: number, to: number): void {
    const key = `${from} ${to} ${this.series.join()}`;
    if (key === this.askedKey) return;
    const id = this.ids.next();
    const sent = this.connection.send({ type: "fetch", id, source: this.source.id, series: this.series, from_ns: Math.round(from * NS_PER_MS), to_ns: Math.round(to * NS_PER_MS), buckets: BUCKETS });
    if (sent) [this.asked, this.askedKey] = [id, key];
  }
}
