// Times the work of the page, from inside the page.

import type { CDPSession, Page } from "playwright-core";

/** Milliseconds of each update: its script, and from its start until it is on screen. */
export interface Times {
  script: number[];
  frame: number[];
}

/** Counters of the browser, in seconds. */
export interface Counted {
  ScriptDuration: number;
  TaskDuration: number;
  JSHeapUsedSize: number;
}

/** The private parts of the page that are timed. */
interface Parts {
  connection: { receive(data: unknown): void };
  screen: { draw(): void };
}

declare global {
  interface Window {
    times?: Times;
  }
}

/**
 * Times every update of the page from now on: handling of messages, then drawing. A page draws at
 * the start of an animation frame, so the next frame starts when drawing is done.
 */
export async function watchUpdates(page: Page): Promise<void> {
  await page.evaluate(() => {
    const { connection, screen } = window.numakit as unknown as Parts;
    const times: Times = (window.times = { script: [], frame: [] });
    let messages = 0;
    const receive = connection.receive.bind(connection);
    connection.receive = (data) => {
      const from = performance.now();
      receive(data);
      messages += performance.now() - from;
    };
    const draw = screen.draw.bind(screen);
    screen.draw = () => {
      const from = performance.now() - messages;
      messages = 0;
      draw();
      times.script.push(performance.now() - from);
      requestAnimationFrame(() => times.frame.push(performance.now() - from));
    };
  });
}

/** The times since the last call. */
export function takeTimes(page: Page): Promise<Times> {
  return page.evaluate(() => {
    const times = window.times ?? { script: [], frame: [] };
    return { script: times.script.splice(0), frame: times.frame.splice(0) };
  });
}

export async function counted(cdp: CDPSession): Promise<Counted> {
  const { metrics } = await cdp.send("Performance.getMetrics");
  const of = (name: string) => metrics.find((metric) => metric.name === name)?.value ?? NaN;
  return { ScriptDuration: of("ScriptDuration"), TaskDuration: of("TaskDuration"), JSHeapUsedSize: of("JSHeapUsedSize") };
}

/** The quantile of all values. */
export function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export function median(values: number[]): number {
  return percentile(values, 0.5);
}

/** Prints results as `name value` lines. */
export function print(figures: Record<string, number>): void {
  for (const [name, value] of Object.entries(figures)) console.log(name, value);
}
