// How often a chart with many cells is drawn while it follows live samples: where the range moved by less than a
// pixel, nothing would change.

export type Range = readonly [from: number, to: number];

let made = 0;

export class Pace {
  private drawn: Range = [NaN, NaN];
  /** Charts take turns, so that an update draws half of them. */
  private waits = made++ % 2 === 1;

  /** Whether drawing can wait for the next update. `before`: the range of the last update. A range that stands still is drawn: its samples may be new. */
  skips(width: number, before: Range, [from, to]: Range): boolean {
    const [begin, end] = this.drawn;
    const moves = from > before[0] && to > before[1] && Math.abs(to - from - (end - begin)) < 1e-3;
    const pixels = ((from - begin) / (to - from)) * width;
    const skips = moves && pixels < 1 && (pixels > 0 || this.waits);
    if (skips && this.waits) this.waits = false;
    else if (!skips) this.drawn = [from, to];
    return skips;
  }
}
