// From the raw unit of a series to the shown unit, and numbers as text.

import type { MetricInfo } from "./wire";

/** What an axis shows. Series of one quantity share an axis. */
export type Quantity = "percent" | "bytes" | "bytes/s" | "count" | "count/s" | "seconds" | "ratio" | "cycles/s" | "cycles";

export interface Shown {
  quantity: Quantity;
  /** Shown value = raw value * factor. */
  factor: number;
}

const BYTES: Record<string, number> = { bytes: 1, KiB: 1024, kibibytes: 1024 };
const SECONDS: Record<string, number> = {
  ticks: 1e-2,
  ns: 1e-9,
  nanoseconds: 1e-9,
  us: 1e-6,
  microseconds: 1e-6,
  ms: 1e-3,
  milliseconds: 1e-3,
};

/**
 * How values of a metric are shown: memory in bytes, time counters as a percentage of time, metrics
 * with a maximum as a percentage of it.
 */
export function shownMetric(metric: Pick<MetricInfo, "unit" | "kind" | "maximum">, pageSize: number): Shown {
  const rate = metric.kind !== "gauge";
  if (rate && metric.maximum) return { quantity: "percent", factor: 100 / metric.maximum };
  const bytes = metric.unit === "pages" ? pageSize : BYTES[metric.unit];
  if (bytes !== undefined) return { quantity: rate ? "bytes/s" : "bytes", factor: bytes };
  const seconds = SECONDS[metric.unit];
  if (seconds !== undefined) {
    return rate ? { quantity: "percent", factor: 100 * seconds } : { quantity: "seconds", factor: seconds };
  }
  if (metric.unit === "cycles") return { quantity: rate ? "cycles/s" : "cycles", factor: 1 };
  return { quantity: rate ? "count/s" : "count", factor: 1 };
}

/** How values of a formula are shown. */
export function shownFormula(unit: string): Shown {
  if (unit === "ns") return { quantity: "seconds", factor: 1e-9 };
  const known: Quantity[] = ["percent", "bytes", "bytes/s", "count", "count/s", "seconds", "ratio"];
  return { quantity: known.find((q) => q === unit) ?? "ratio", factor: 1 };
}

const UNITS: Record<Quantity, string> = { percent: "%", bytes: "B", "bytes/s": "B/s", count: "", "count/s": "/s", seconds: "s", ratio: "", "cycles/s": "Hz", cycles: "" };

/** The unit of a quantity without prefix. */
export function unitOf(quantity: Quantity): string {
  return UNITS[quantity];
}

const TOTALS: Partial<Record<Quantity, Quantity>> = { "count/s": "count", "bytes/s": "bytes", "cycles/s": "cycles" };

/** The total of a rate over time: faults per second become faults, CPU time becomes seconds; null for levels. */
export function totalOf(shown: Shown & { counted: boolean }): Shown | null {
  if (shown.quantity === "percent") return shown.counted ? { quantity: "seconds", factor: shown.factor / 100 } : null;
  const quantity = TOTALS[shown.quantity];
  return quantity ? { quantity, factor: shown.factor } : null;
}

const SI: [number, string][] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const IEC: [number, string][] = [[2 ** 50, "Pi"], [2 ** 40, "Ti"], [2 ** 30, "Gi"], [2 ** 20, "Mi"], [2 ** 10, "Ki"]];
const SMALL: [number, string][] = [[1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"]];

/** Three significant digits; whole numbers without trailing zeros. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95 || Number.isInteger(value)) return value.toFixed(0);
  return size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

/** A value with prefix and unit: `12.3k/s`, `1.50 GiB`, `87.2 %`; `–` if nothing was measured. */
export function format(value: number | null | undefined, quantity: Quantity): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  switch (quantity) {
    case "percent":
      return `${digits(value)} %`;
    case "bytes":
      return scaled(value, IEC, "B");
    case "bytes/s":
      return scaled(value, SI, "B/s");
    case "seconds":
      return time(value);
    case "count/s":
    case "cycles/s":
      return scaled(value, SI, quantity === "count/s" ? "/s" : "Hz", quantity === "count/s");
    default:
      return scaled(value, SI, "", true);
  }
}

function scaled(value: number, steps: [number, string][], unit: string, tight = false): string {
  const step = steps.find(([size]) => Math.abs(value) >= size * 0.9995);
  const gap = tight || unit === "" ? "" : " ";
  return step ? `${digits(value / step[0])}${gap}${step[1]}${unit}` : `${digits(value)}${gap}${unit}`;
}

function time(seconds: number): string {
  if (seconds === 0) return "0 s";
  const step = SMALL.find(([size]) => Math.abs(seconds) >= size * 0.9995) ?? SMALL[3];
  return step ? `${digits(seconds / step[0])} ${step[1]}s` : "–";
}

/** A length of time as text: `30 s`, `5 min`, `1.5 h`. */
export function span(ms: number): string {
  if (ms < 1000) return `${digits(ms)} ms`;
  if (ms < 60_000) return `${digits(ms / 1000)} s`;
  if (ms < 3_600_000) return `${digits(ms / 60_000)} min`;
  return `${digits(ms / 3_600_000)} h`;
}

const DAY_MS = 86_400_000;

/** How many ms the times of the shown source are ahead of UTC. */
let zoneMs = 0;

/** From now on, times are in the zone of a source: that of its machine, or UTC where nobody knows it. Every reader sees the same ones. */
export function useZone(minutes: number | null): void {
  zoneMs = 60_000 * (minutes ?? 0);
}

/** The zone of all times: `UTC`, `UTC+01:00`. */
export function zoneName(): string {
  const minutes = Math.abs(zoneMs) / 60_000;
  const [hours, rest] = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0"));
  return `UTC${zoneMs === 0 ? "" : `${zoneMs < 0 ? "−" : "+"}${hours}:${rest}`}`;
}

/** How many ms after midnight of the zone a time is, beside whole days. */
export function sinceMidnight(ms: number): number {
  return ms + zoneMs;
}

/** A time whose UTC parts are those in the zone. Ticks of an axis are not exact; a Date would round them down. */
function inZone(ms: number): Date {
  return new Date(Math.round(ms) + zoneMs);
}

/** The date, as `2026-11-24`. */
export function day(ms: number): string {
  const date = inZone(ms);
  return [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()].map((part) => String(part).padStart(2, "0")).join("-");
}

/** The time of day, with as many digits of the second as `stepMs` needs; the date for steps of days. */
export function clock(ms: number, stepMs = 1000): string {
  if (stepMs >= DAY_MS) return day(ms);
  const date = inZone(ms);
  const two = (n: number) => String(n).padStart(2, "0");
  const text = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}`;
  if (stepMs >= 1000) return text;
  const millis = String(date.getUTCMilliseconds()).padStart(3, "0");
  return `${text}.${stepMs >= 100 ? millis[0] : stepMs >= 10 ? millis.slice(0, 2) : millis}`;
}

/** Date, time and zone: `2026-11-24 10:00:00 UTC+01:00`. */
export function moment(ms: number, stepMs = 1000): string {
  return stepMs >= DAY_MS ? `${day(ms)} ${zoneName()}` : `${day(ms)} ${clock(ms, stepMs)} ${zoneName()}`;
}

/** A time as the distance from another: `+12 s`, `−1:30`, with as many digits of the second as `stepMs` needs. */
export function offset(ms: number, stepMs = 1000): string {
  const places = stepMs >= 1000 ? 0 : stepMs >= 100 ? 1 : stepMs >= 10 ? 2 : 3;
  const size = Math.abs(ms) / 1000;
  const rounded = Number(size.toFixed(places));
  const sign = ms < 0 && rounded > 0 ? "−" : "+";
  if (rounded < 60) return `${sign}${rounded.toFixed(places)} s`;
  const [hours, minutes] = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60];
  const rest = (rounded % 60).toFixed(places).padStart(places > 0 ? places + 3 : 2, "0");
  return `${sign}${hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes}:${rest}`;
}

/** A time of the day; with an origin, the distance from it. */
export function timeText(ms: number, stepMs: number | undefined, origin: number | null): string {
  return origin === null ? clock(ms, stepMs) : offset(ms - origin, stepMs);
}

/** A time with its date and zone; with an origin, the distance from it. */
export function fullTime(ms: number, stepMs: number | undefined, origin: number | null): string {
  return origin === null ? moment(ms, stepMs) : offset(ms - origin, stepMs);
}

/** A time range with its date and zone: `2026-11-24 10:00:00 to 10:01:00 UTC+01:00`. */
export function timesOf(from: number, to: number): string {
  const step = to - from < 10_000 ? 1 : 1000;
  const end = day(from) === day(to) ? clock(to, step) : `${day(to)} ${clock(to, step)}`;
  return `${day(from)} ${clock(from, step)} to ${end} ${zoneName()}`;
}
