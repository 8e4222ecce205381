// What changed between two sources: the means of a range, and whether they differ by more than each wavers.

import type { Track } from "../frame";
import type { Other } from "../panels/columns";
import type { Line } from "../panels/lines";
import type { Slice } from "../store";

/** A line of both sources in the visible range, in shown units. */
export interface Change {
  line: Line;
  /** The mean of the first source, and of the second one. */
  mean: number;
  other: number;
  /** How much more the first one has, in percent of the second; infinite if the second has nothing. */
  percent: number;
  /** What the difference would be by chance, at 95 %, in percent of the second. */
  noise: number;
}

/** A range is divided into this many parts; how much their means differ says how certain the mean of all is. */
const PARTS = 8;
/** Of Student's distribution with two times seven degrees of freedom, at 95 %. */
const STUDENT = 2.145;
const LEAST_PARTS = 3;

/** The mean of a track, and its standard error, from the means of parts: neighbouring values are not independent. */
export function meanAndError(slice: Slice, track: Track, from: number, to: number): { mean: number; error: number } {
  const sums = new Float64Array(PARTS);
  const counts = new Float64Array(PARTS);
  const { x } = slice;
  const scale = PARTS / (to - from || 1);
  for (let row = 0; row < x.length; row++) {
    const time = x[row] as number;
    const value = track.mean[row] as number;
    if (time < from || time > to || value !== value) continue;
    const part = Math.min(PARTS - 1, Math.floor((time - from) * scale));
    sums[part] = (sums[part] as number) + value;
    counts[part] = (counts[part] as number) + 1;
  }
  const means = [...sums].flatMap((sum, part) => ((counts[part] as number) > 0 ? [sum / (counts[part] as number)] : []));
  const total = counts.reduce((sum, count) => sum + count, 0);
  const mean = total > 0 ? sums.reduce((sum, one) => sum + one, 0) / total : NaN;
  if (means.length < LEAST_PARTS) return { mean, error: NaN };
  const middle = means.reduce((sum, one) => sum + one, 0) / means.length;
  const spread = means.reduce((sum, one) => sum + (one - middle) ** 2, 0) / (means.length - 1);
  return { mean, error: Math.sqrt(spread / means.length) };
}

/** The change of one line; null if a source has no values or too few to know its noise. */
export function changeOf(line: Line, slice: Slice, other: Other, from: number, to: number): Change | null {
  const [own, its] = [slice.track(line.series.number), other(line.series.number)];
  if (!own || !its) return null;
  const [a, b] = [meanAndError(slice, own, from, to), meanAndError(slice, its, from, to)];
  const error = STUDENT * Math.hypot(a.error, b.error) * Math.abs(line.factor);
  const [mean, second] = [line.offset + line.factor * a.mean, line.offset + line.factor * b.mean];
  if (!Number.isFinite(mean) || !Number.isFinite(second) || !Number.isFinite(error)) return null;
  const share = (value: number) => (second === 0 ? (value === 0 ? 0 : Math.sign(value) * Infinity) : (100 * value) / Math.abs(second));
  return { line, mean, other: second, percent: share(mean - second), noise: share(error) };
}

/** Whether a difference is more than chance. */
export function isChange({ percent, noise }: Change): boolean {
  return Math.abs(percent) > noise && Math.abs(percent) >= 1;
}

/** The lines that differ beyond noise, those that changed by the largest factor first. */
export function largest(changes: Change[]): Change[] {
  const factor = ({ mean, other }: Change) => Math.abs(Math.log(Math.abs(mean) / Math.abs(other)));
  return changes.filter(isChange).sort((a, b) => factor(b) - factor(a));
}

/** A change with its noise: `+12 % ± 3 %`. */
export function changeText({ percent, noise }: Change): string {
  return percentText(percent) + (Number.isFinite(noise) ? ` ± ${noise >= 10 ? noise.toFixed(0) : noise.toFixed(1)} %` : "");
}

/** A change in percent with its sign; a factor where percents are hard to read. */
export function percentText(percent: number): string {
  if (!Number.isFinite(percent)) return Number.isNaN(percent) ? "–" : percent > 0 ? "new" : "gone";
  const size = Math.abs(percent);
  const text = size >= 1000 ? `×${(size / 100 + Math.sign(percent)).toPrecision(3)}` : `${size >= 10 ? size.toFixed(0) : size.toFixed(1)} %`;
  return size >= 1000 && percent > 0 ? text : `${percent < 0 ? "−" : "+"}${text}`;
}
