// A second source that is compared with the first: its series of the same names, shifted in time so
// that both start, or have a label, at the same position.

import { coarseSeries, known } from "./coarse";
import type { Connection } from "./connection";
import type { Frame, Track } from "./frame";
import { Catalog } from "./series";
import { NS_PER_MS, sliceOf, type Slice } from "./store";
import type { Ids } from "./timeline";
import type { WireLabel, SourceInfo } from "./wire";

const ASK_PAUSE_MS = 90;

/** `track` resampled to the times `x`. Its own times are `shift` ms later. NaN if no sample is within `near` ms. */
export function resample(x: Float64Array, own: Float64Array, track: Track, shift: number, near: number, factor = 1): Track {
  const out = { min: new Float64Array(x.length).fill(NaN), max: new Float64Array(x.length).fill(NaN), mean: new Float64Array(x.length).fill(NaN) };
  let at = 0;
  for (let row = 0; row < x.length; row++) {
    const time = (x[row] as number) + shift;
    while (at + 1 < own.length && Math.abs((own[at + 1] as number) - time) <= Math.abs((own[at] as number) - time)) at++;
    if (own.length === 0 || Math.abs((own[at] as number) - time) > near) continue;
    out.min[row] = (track.min[at] as number) * factor;
    out.max[row] = (track.max[at] as number) * factor;
    out.mean[row] = (track.mean[at] as number) * factor;
  }
  return out;
}

/** Label texts that both lists have, without duplicates. */
export function sharedLabels(first: WireLabel[], second: WireLabel[]): string[] {
  const texts = new Set(second.map((label) => label.text));
  return [...new Set(first.map((label) => label.text))].filter((text) => texts.has(text) && !text.startsWith("numakit:"));
}

export class SecondSource {
  readonly catalog: Catalog;
  private slice: Slice | null = null;
  private asked = 0;
  private key = "";
  private timer = 0;
  private wanted = { numbers: [] as number[], from: 0, to: 0, buckets: 1 };
  private last: { slice: Slice; tracks: Map<number, Track | undefined> } | null = null;

  /** `shift`: how many ms its times are later. */
  constructor(
    readonly source: SourceInfo,
    private readonly first: Catalog,
    private readonly connection: Connection,
    private readonly ids: Ids,
    public shift: number,
    private readonly changed: () => void,
  ) {
    this.catalog = new Catalog(source);
  }

  /** Requests the samples that match a range of the first source. */
  want(series: number[], from: number, to: number, buckets: number): void {
    const numbers = series.map((number) => this.match(number)?.number).filter((number) => number !== undefined);
    const key = `${numbers.join()} ${from} ${to} ${buckets} ${this.shift}`;
    if (key === this.key || numbers.length === 0) return;
    this.key = key;
    this.wanted = { numbers, from, to, buckets };
    // The timer is not restarted by each change: while the range keeps moving, it would never expire.
    if (this.timer !== 0) return;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.ask();
    }, ASK_PAUSE_MS);
  }

  private ask(): void {
    const { numbers, from, to, buckets } = this.wanted;
    const [start, end] = [from + this.shift, to + this.shift];
    if (end <= 0) return;
    this.asked = this.ids.next();
    this.connection.send({ type: "fetch", id: this.asked, source: this.source.id, series: [...new Set(numbers)], from_ns: Math.max(0, Math.round(start * NS_PER_MS)), to_ns: Math.round(end * NS_PER_MS), buckets });
  }

  /** Sets the shift; returns whether it changed. */
  lay(shift: number): boolean {
    const moved = shift !== this.shift;
    this.shift = shift;
    if (moved) this.last = null;
    return moved;
  }

  /** Drops the pending request: the connection was lost, so no answer will come. */
  forget(): void {
    this.key = "";
  }

  take(frame: Frame): boolean {
    if (frame.header.id !== this.asked) return false;
    this.slice = known(sliceOf(frame), coarseSeries(this.source));
    this.last = null;
    this.changed();
    return true;
  }

  /** The matching track for a series of the first source, at the times of `slice` and in its raw unit. */
  track(slice: Slice, number: number): Track | undefined {
    const own = this.slice;
    if (!own) return undefined;
    if (this.last?.slice !== slice) this.last = { slice, tracks: new Map() };
    const { tracks } = this.last;
    if (!tracks.has(number)) {
      const series = this.match(number);
      const track = series && own.track(series.number);
      const factor = series ? series.factor / (this.first.series[number]?.factor ?? 1) : 1;
      const near = 1.6 * Math.max(slice.stepMs, own.stepMs, slice.raw || own.raw ? 1000 : 0);
      tracks.set(number, track && resample(slice.x, own.x, track, this.shift, near, factor));
    }
    return tracks.get(number);
  }

  private match(number: number) {
    const series = this.first.series[number];
    return series && this.catalog.at(series.name, series.instance);
  }
}
