// The bucket length for a time range, and the ticks of axes.

import { sinceMidnight } from "./units";

const MULTIPLES = [1, 2, 5];

/** The shortest round step (1, 2 or 5 times a power of ten ms) with at most `buckets` in the range. */
export function stepFor(spanMs: number, buckets: number, atLeastMs: number): number {
  const wanted = Math.max(spanMs / Math.max(1, buckets), atLeastMs, 1);
  for (let power = 1; ; power *= 10) {
    for (const multiple of MULTIPLES) {
      if (multiple * power >= wanted * 0.999) return multiple * power;
    }
  }
}

/** Moves a range inside the limits and keeps its length if possible. */
export function keepInside(from: number, to: number, low: number, high: number): [number, number] {
  const length = Math.min(to - from, high - low);
  if (from < low) return [low, low + length];
  if (to > high) return [high - length, high];
  return [from, from + length];
}

/** A range zoomed by `factor` around a point in it. */
export function zoomed(from: number, to: number, around: number, factor: number, leastMs: number): [number, number] {
  const share = to > from ? (around - from) / (to - from) : 0.5;
  const length = Math.max((to - from) * factor, leastMs);
  return [around - share * length, around + (1 - share) * length];
}

/** The upper end of an axis: the smallest of 1, 1.5, 2, 3, 4, 5, 6, 8 times a power that is not below `value`. */
export function roundUp(value: number, base: 10 | 2): number {
  if (!(value > 0)) return 1;
  if (base === 2) {
    const unit = 1024 ** Math.max(0, Math.floor(Math.log2(value) / 10));
    return roundUp(value / unit, 10) * unit;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
  return (steps.find((step) => step * power >= value * 0.9999) ?? 10) * power;
}

/** Round values between two, about `count` of them. */
export function ticks(low: number, high: number, count: number, base: 10 | 2): number[] {
  const wanted = (high - low) / Math.max(1, count);
  if (!(wanted > 0) || !Number.isFinite(wanted)) return [];
  const step = base === 2 ? 2 ** Math.ceil(Math.log2(wanted)) : roundStep(wanted);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, at) => (first + at) * step);
}

function roundStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted));
  return (MULTIPLES.find((multiple) => multiple * power >= wanted * 0.9999) ?? 10) * power;
}

const SECONDS = [1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200];
const DAYS = [1, 2, 7, 14, 28, 56, 112, 224, 448];

/** Steps of time axes, in ms. */
export const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...SECONDS.map((seconds) => seconds * 1000), ...DAYS.map((days) => days * 86_400_000)];

/** Round times between two, at most `count` of them. */
export function timeTicks(from: number, to: number, count: number): { times: number[]; step: number } {
  const step = TIME_STEPS.find((one) => (to - from) / one <= count) ?? (to - from) / Math.max(1, count);
  return { times: timesBetween(from, to, step), step };
}

/** The multiples of a step between two times, counted from midnight. They are exact, also if `from` has a fraction. */
export function timesBetween(from: number, to: number, step: number): number[] {
  const ahead = sinceMidnight(0);
  const first = Math.ceil((from + ahead) / step);
  return Array.from({ length: Math.max(0, Math.floor((to + ahead) / step) - first + 1) }, (_, at) => (first + at) * step - ahead);
}

/** The multiples of a step between two times, counted from an origin. */
export function multiplesBetween(from: number, to: number, step: number, origin: number): number[] {
  const first = Math.ceil((from - origin) / step - 1e-9);
  const count = Math.floor((to - origin) / step + 1e-9) - first + 1;
  return Array.from({ length: Math.max(0, count) }, (_, at) => origin + (first + at) * step);
}
