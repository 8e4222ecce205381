// When findings are requested: after the range has settled, again every two seconds while it moves with live data, and
// never before the last request was answered.

/** A range that did not change for this long has settled. */
export const SETTLED_MS = 300;
/** Pause between two requests while the range moves with live data. */
export const LIVE_PAUSE_MS = 2000;

/** The clock and the timers, which tests replace. */
export interface Timers {
  now(): number;
  start(run: () => void, ms: number): number;
  stop(timer: number): void;
}

const BROWSER: Timers = {
  now: () => performance.now(),
  start: (run, ms) => window.setTimeout(run, ms),
  stop: (timer) => window.clearTimeout(timer),
};

export class Asking {
  private wanted: [number, number] = [0, 0];
  private asked: [number, number] | null = null;
  private askedAt = -Infinity;
  private moving = false;
  private waiting: number | null = null;
  private timer: number | null = null;

  /** `send` returns the number of its request; null if it cannot be sent now. */
  constructor(
    private readonly send: (from: number, to: number) => number | null,
    private readonly timers: Timers = BROWSER,
  ) {}

  /** The range on screen, and whether it moves with live data. */
  want(from: number, to: number, moving: boolean): void {
    const [start, end] = this.wanted;
    const changed = from !== start || to !== end;
    this.wanted = [from, to];
    this.moving = moving;
    if (moving) {
      if (this.timer === null) this.later(this.askedAt + LIVE_PAUSE_MS - this.timers.now());
    } else if (changed || this.timer === null) {
      this.settle();
    }
  }

  /** Whether this is the number of the request that is waited for; then the next one may be sent. */
  ended(id: number): boolean {
    if (id !== this.waiting) return false;
    this.waiting = null;
    this.want(...this.wanted, this.moving);
    return true;
  }

  /** The connection was lost with all requests. */
  restart(): void {
    this.waiting = null;
    this.asked = null;
    this.askedAt = -Infinity;
    this.want(...this.wanted, this.moving);
  }

  stop(): void {
    if (this.timer !== null) this.timers.stop(this.timer);
    this.timer = null;
  }

  /** Requests a range that stays for a while, unless it is the one that was requested last. */
  private settle(): void {
    this.stop();
    const [from, to] = this.wanted;
    if (this.asked?.[0] === from && this.asked[1] === to) return;
    this.later(SETTLED_MS);
  }

  private later(ms: number): void {
    this.timer = this.timers.start(() => {
      this.timer = null;
      this.ask();
    }, Math.max(0, ms));
  }

  private ask(): void {
    const [from, to] = this.wanted;
    if (this.waiting !== null || to <= from) return;
    this.waiting = this.send(from, to);
    if (this.waiting === null) return;
    this.asked = [from, to];
    this.askedAt = this.timers.now();
  }
}
