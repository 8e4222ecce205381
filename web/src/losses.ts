// Ticks that the sampler lost lately. States come about once a second, so a difference between two of them would be
// shown for a moment only.

/** How long a lost tick counts as recent. */
export const RECENT_MS = 10_000;

export class Losses {
  /** How many were lost until a time, oldest first. The first is the newest that is not recent. */
  private seen: { time: number; lost: number }[] = [];

  /** Takes the total of lost ticks; returns how many of them are recent. A total that shrinks is of another sampler. */
  take(time: number, lost: number): number {
    const last = this.seen[this.seen.length - 1];
    if (last && lost < last.lost) this.seen = [];
    if (!last || lost !== last.lost) this.seen.push({ time, lost });
    while ((this.seen[1]?.time ?? Infinity) <= time - RECENT_MS) this.seen.shift();
    return lost - (this.seen[0]?.lost ?? lost);
  }

  /** What is lost while nobody looks is not recent. */
  forget(): void {
    this.seen = [];
  }
}
