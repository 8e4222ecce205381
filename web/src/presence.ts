// Which series have current values, and why others have none: the sensor may be off, or its file or
// CPU may have disappeared.

import type { Catalog, Series } from "./series";
import { FORMULAS } from "./series";
import type { Slice } from "./store";
import { moment } from "./units";
import type { ObservationState } from "./wire";

/** A series counts as missing when its last value is this much older than that of the others. */
const PATIENCE_MS = 2000;
const PATIENCE_STEPS = 6;

/** A series without current values. */
export interface Absent {
  why: string;
  /** Whether other series have values, so that only this one is missing. */
  onlyThis: boolean;
  /** Whether its values are still awaited: nothing is said about them. */
  loading: boolean;
}

const LOADING: Absent = { why: "Loading …", onlyThis: false, loading: true };

export class Presence {
  private readonly resolutions: Map<string, number>;
  private reasons = new Map<number, Absent>();

  constructor(
    private readonly catalog: Catalog,
    private readonly state: () => ObservationState | null,
    /** Whether values of the visible range are still awaited. */
    readonly loading: () => boolean,
  ) {
    this.resolutions = new Map(catalog.source.metrics.map((metric) => [metric.name, metric.resolution_ns / 1e6]));
  }

  /** Checks which of `series` have values in the visible range. */
  look(slice: Slice, from: number, to: number, series: number[]): void {
    const loading = this.loading();
    this.reasons = new Map();
    const ends = new Map(series.map((number) => [number, lastTime(slice, number, from, to)]));
    const newest = [...ends.values()].reduce((most, time) => (time > most ? time : most), -Infinity);
    for (const [number, end] of ends) {
      const one = this.catalog.series[number];
      if (!one) continue;
      if (loading) {
        if (Number.isNaN(end)) this.reasons.set(number, LOADING);
        continue;
      }
      const patience = Math.max(PATIENCE_MS, slice.stepMs * PATIENCE_STEPS, 3 * (this.resolutions.get(one.name) ?? 0));
      if (Number.isNaN(end)) this.reasons.set(number, { why: this.never(one, newest), onlyThis: newest > -Infinity && this.group(one) !== FORMULAS, loading: false });
      else if (newest - end > patience && this.group(one) !== FORMULAS) this.reasons.set(number, { why: `No data since ${moment(end)}${this.off(one)}.`, onlyThis: true, loading: false });
    }
  }

  /** Why a series has no current values; null if it has. */
  why(series: Series): Absent | null {
    return this.reasons.get(series.number) ?? null;
  }

  private never(series: Series, newest: number): string {
    if (newest === -Infinity) return this.catalog.source.kind === "live" && this.state()?.paused ? "No samples in this range: sampling is paused." : "No samples in this range.";
    const off = this.off(series);
    if (off) return `No data in this range${off}.`;
    return this.group(series) === FORMULAS ? "Its inputs have no data in this range." : "No data in this range.";
  }

  private off(series: Series): string {
    if (this.catalog.source.kind !== "live") return "";
    const sensors = this.state()?.sensors.filter((sensor) => !sensor.on).map((sensor) => sensor.name) ?? [];
    const group = this.group(series);
    if (sensors.includes(group)) return `: the sensor ‘${group}’ is off`;
    return group === FORMULAS && sensors.length > 0 ? `; sensors off: ${sensors.join(", ")}` : "";
  }

  private group(series: Series): string {
    return this.catalog.entry(series.name)?.group ?? "";
  }
}

/** When a series was last measured within a range; NaN if it was not. */
function lastTime(slice: Slice, number: number, from: number, to: number): number {
  const mean = slice.track(number)?.mean;
  if (!mean) return NaN;
  for (let row = slice.x.length - 1; row >= 0; row--) {
    const time = slice.x[row] as number;
    if (time > to + slice.stepMs) continue;
    if (time < from) break;
    if (!Number.isNaN(mean[row])) return time;
  }
  return NaN;
}
