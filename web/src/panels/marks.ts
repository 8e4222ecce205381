// What a chart shows besides its lines: labels, and times without samples.

import type uPlot from "uplot";
import type { Theme } from "./palette";

export interface Mark {
  time: number;
  text: string;
}

const LONGEST_TEXT = 28;

/** A label shortened to fit into a chart. */
export function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1)}…` : text;
}

/** Draws labels as dashed lines. If `named`, with their text where there is room. */
export function paintMarks(u: uPlot, marks: Mark[], theme: Theme, named: boolean): void {
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const { top, height, left, width } = u.bbox;
  ctx.save();
  ctx.strokeStyle = theme.accent;
  ctx.fillStyle = theme.accent;
  ctx.lineWidth = ratio;
  ctx.font = `${10 * ratio}px system-ui, sans-serif`;
  ctx.setLineDash([3 * ratio, 3 * ratio]);
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  let free = -Infinity;
  for (const mark of marks) {
    const x = Math.round(u.valToPos(mark.time, "x", true)) + 0.5;
    if (x < left || x > left + width) continue;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    const text = shortened(mark.text);
    const wide = ctx.measureText(text).width;
    const begin = x + wide + 6 * ratio > left + width ? x - wide - 4 * ratio : x + 4 * ratio;
    if (!named || begin < free || begin < left) continue;
    ctx.save();
    ctx.globalAlpha = 0.6;
    ctx.fillStyle = theme.panel;
    ctx.fillRect(begin - ratio, top, wide + 2 * ratio, 12 * ratio);
    ctx.restore();
    ctx.fillText(text, begin, top + 9 * ratio);
    free = begin + wide + 6 * ratio;
  }
  ctx.restore();
}

/** Hatches times without samples. */
export function paintHoles(u: uPlot, holes: [number, number][], theme: Theme): void {
  const { ctx } = u;
  const { top, height, left, width } = u.bbox;
  const step = 6 * devicePixelRatio;
  for (const [from, to] of holes) {
    const begin = Math.max(left, u.valToPos(from, "x", true));
    const end = Math.min(left + width, u.valToPos(to, "x", true));
    if (!(end - begin > 1)) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(begin, top, end - begin, height);
    ctx.clip();
    ctx.strokeStyle = theme.grid;
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    for (let x = begin - height; x < end; x += step) {
      ctx.moveTo(x, top + height);
      ctx.lineTo(x + height, top);
    }
    ctx.stroke();
    ctx.restore();
  }
}
