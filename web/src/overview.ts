// All of the history in few buckets, for the slider.

import type { Connection } from "./connection";
import type { Frame } from "./frame";
import { stepFor } from "./steps";
import { EMPTY, Grid, sliceOf, type Slice } from "./store";
import type { Ids } from "./timeline";
import type { SourceInfo } from "./wire";

const WATCH = 2;
const BUCKETS = 600;
const LEAST_MS = 60_000;
const NS = 1e6;
const UNTOLD_STEP_MS = 1000;
const UNTOLD_MOST = 200_000;

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
    /** Whether the server's state tells where the source begins and ends. */
    private readonly told: boolean,
    private readonly changed: () => void,
  ) {}

  /** Where a source ends of which nobody told; only its samples show it. */
  get span(): [number, number] | null {
    return !this.told && this.grid && this.grid.length > 0 ? [this.grid.start, this.grid.end] : null;
  }

  choose(series: number[]): void {
    this.series = series;
  }

  reconnected(): void {
    this.key = "";
    this.askedKey = "";
  }

  /** Asks again when the history has outgrown its buckets. */
  refresh([from, to]: [number, number]): void {
    if (this.series.length === 0) return;
    if (this.source.kind === "recording" && this.told) return this.ask(from, to);
    // Its seconds showed how long it is; now in as many buckets as fit.
    if (this.span) this.ask(...this.span);
    const stepMs = this.told ? stepFor(Math.max(to - from, LEAST_MS), BUCKETS, 1) : UNTOLD_STEP_MS;
    const key = `${stepMs} ${this.series.join()}`;
    if (key === this.key) return;
    const grid = new Grid(stepMs, this.told ? BUCKETS * 6 : UNTOLD_MOST);
    const sent = this.connection.send({ type: "watch", id: WATCH, source: this.source.id, series: this.series, step_ns: stepMs * NS, from_ns: Math.round((this.told ? from : this.source.started_ns / NS - 60_000) * NS) });
    if (sent) [this.grid, this.key] = [grid, key];
  }

  take(frame: Frame): boolean {
    const { header } = frame;
    if (header.id === this.asked) {
      this.slice = sliceOf(frame);
    } else if (header.id === WATCH && this.grid && Math.abs((header.step_ns ?? 0) / NS - this.grid.stepMs) < 1e-9) {
      this.grid.apply(frame);
      if (this.told || this.askedKey === "") this.slice = this.grid.slice();
    } else return false;
    this.changed();
    return true;
  }

  private ask(from: number, to: number): void {
    const key = `${from} ${to} ${this.series.join()}`;
    if (key === this.askedKey) return;
    const id = this.ids.next();
    const sent = this.connection.send({ type: "fetch", id, source: this.source.id, series: this.series, from_ns: Math.round(from * NS), to_ns: Math.round(to * NS), buckets: BUCKETS });
    if (sent) [this.asked, this.askedKey] = [id, key];
  }
}
