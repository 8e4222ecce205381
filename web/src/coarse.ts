// Counters that are coarser than the samples. A counter of 10 ms grows by one or two in a sample of 14 ms, which would be
// 71 % or 143 % of a CPU: neither is known. So their rates are shown as means over ten times their resolution, without extremes.

import type { Track } from "./frame";
import { NS_PER_MS, type Slice } from "./store";
import type { SourceInfo } from "./wire";

/** A difference is one step of the counter too large or too small: over this many steps, by a tenth at most. */
const STEPS = 10;
/** Units whose values are whole steps of their resolution. */
const STEPPED = "ticks";

/** For each series of a source that is counted in coarse steps, over which time its mean is known, in ms. */
export function coarseSeries(source: SourceInfo): Map<number, number> {
  const found = new Map<number, number>();
  let number = 0;
  for (const { unit, kind, resolution_ns, instances } of source.metrics) {
    for (let at = 0; at < instances.length; at++, number++) {
      if (kind === "counter" && unit === STEPPED && resolution_ns > 0) found.set(number, (STEPS * resolution_ns) / NS_PER_MS);
    }
  }
  return found;
}

/** A slice whose coarse series have no more detail than is known. */
export function known(slice: Slice, coarse: Map<number, number>): Slice {
  if (coarse.size === 0) return slice;
  const smooth = new Map<number, Track>();
  const track = (series: number): Track | undefined => {
    const window = coarse.get(series);
    const own = slice.track(series);
    if (window === undefined || !own) return own;
    let one = smooth.get(series);
    if (!one) {
      const mean = slice.stepMs >= window && !slice.raw ? own.mean : means(slice.x, own.mean, window);
      smooth.set(series, (one = { min: mean, max: mean, mean }));
    }
    return one;
  };
  return { ...slice, track };
}

/** The mean of the values around each row; NaN where there is none. */
function means(x: Float64Array, values: Float64Array, window: number): Float64Array {
  const out = new Float64Array(x.length);
  let [first, next, sum, count] = [0, 0, 0, 0];
  for (let row = 0; row < x.length; row++) {
    const [from, to] = [(x[row] as number) - window / 2, (x[row] as number) + window / 2];
    for (; next < x.length && (x[next] as number) <= to; next++) {
      const value = values[next] as number;
      if (value === value) [sum, count] = [sum + value, count + 1];
    }
    for (; first < next && (x[first] as number) < from; first++) {
      const value = values[first] as number;
      if (value === value) [sum, count] = [sum - value, count - 1];
    }
    out[row] = count > 0 ? Math.max(0, sum / count) : NaN;
  }
  return out;
}
