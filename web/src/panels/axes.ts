// The axes of a chart: how dense their labels are, and what they say.

import type uPlot from "uplot";
import { multiplesBetween, TIME_STEPS, timesBetween } from "../steps";
import { clock, format, timeText, type Quantity } from "../units";
import type { Theme } from "./palette";

const FONT = "11px system-ui, sans-serif";
/** Width of the labels of values with their gap. */
export const VALUE_SIZE = 56;
/** Minimum distance of labels of values, in pixels. Steps grow by 2 to 2.5, so they are 55 apart on average. */
const VALUE_SPACE = 38;
const SMALL_SPACE = 24;
/** A lower chart would have no label above 0. */
const LOW = 80;
/** Average width of a digit, and the room between labels of times. */
const DIGIT = 6;
const TIME_GAP = 12;
/** A label of a time nearer to the left edge would overlap the 0 of the value axis; one that the right edge would cut is left out too. */
const LEFT_FREE = 18;
/** A label is a little wider than the average says, of which half is on each side. */
const RIGHT_FREE = 2;
const INCREMENTS = [1, 2, 5];
const DECIMAL = Array.from({ length: 24 }, (_, p) => INCREMENTS.map((m) => m * 10 ** (p - 9))).flat();
const BINARY = Array.from({ length: 60 }, (_, p) => 2 ** p);

/** Width of the label of a time, in pixels. */
export function timeWidth(stepMs: number): number {
  return clock(0, stepMs).length * DIGIT;
}

/** Minimum distance of labels of times where `msPerPixel` is visible: that of the labels they would have. */
export function timeSpace(msPerPixel: number): number {
  const step = TIME_STEPS.find((one) => one / msPerPixel >= timeWidth(one) + TIME_GAP) ?? Infinity;
  return timeWidth(step) + TIME_GAP;
}

/** `origin`: times are distances from it; null: times of the day. */
export function timeAxis(theme: Theme, small: boolean, origin: number | null = null): uPlot.Axis {
  return {
    stroke: theme.quiet,
    font: FONT,
    size: small ? 0 : 24,
    space: (_u, _axis, min, max, width) => timeSpace((max - min) / Math.max(1, width)),
    incrs: TIME_STEPS,
    // Those of uPlot are up to 1 ms early if `min` has a fraction.
    splits: (_u, _axis, min, max, step) => (origin === null ? timesBetween(min, max, step) : multiplesBetween(min, max, step, origin)),
    gap: 3,
    show: !small,
    grid: { stroke: theme.grid, width: 1 },
    ticks: { show: false },
    values: (u, splits, _axis, _space, step) => {
      const free = u.width - VALUE_SIZE - timeWidth(step) / 2 - RIGHT_FREE;
      return splits.map((at) => {
        const x = u.valToPos(at, "x");
        return x < LEFT_FREE || x > free ? "" : timeText(at, step, origin);
      });
    },
  };
}

export function valueAxis(scale: string, side: number, quantity: Quantity, theme: Theme, small: boolean): uPlot.Axis {
  return {
    scale,
    side,
    stroke: theme.quiet,
    font: FONT,
    size: small ? 46 : VALUE_SIZE,
    space: (_u, _axis, _min, _max, height) => (small || height < LOW ? SMALL_SPACE : VALUE_SPACE),
    gap: 5,
    incrs: quantity === "bytes" ? BINARY : DECIMAL,
    grid: scale === "y" ? { stroke: theme.grid, width: 1 } : { show: false },
    ticks: { show: false },
    values: (_u, splits) => splits.map((value) => (value === 0 ? "0" : format(value, quantity))),
  };
}
