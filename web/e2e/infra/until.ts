// Waits for a condition. Limits are generous: no test checks how fast anything is.

import { inspect } from "node:util";

const LIMIT_MS = 60_000;
const PAUSE_MS = 50;

/** The first value that is not false, null or undefined; `what` is for the error message. */
export async function until<T>(what: string, look: () => T | Promise<T>, limitMs = LIMIT_MS): Promise<Exclude<T, null | undefined | false>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== undefined && found !== false) return found as Exclude<T, null | undefined | false>;
    if (Date.now() > end) throw new Error(`waited for ${what}; the last value was ${inspect(found)}`);
    await pause(PAUSE_MS);
  }
}

/** Waits until `look` returns the expected value. */
export async function becomes<T>(what: string, look: () => T | Promise<T>, expected: T): Promise<void> {
  let seen: T | undefined;
  const wanted = JSON.stringify(expected);
  try {
    await until(what, async () => JSON.stringify((seen = await look())) === wanted);
  } catch {
    throw new Error(`waited for ${what} to be ${inspect(expected)}; it is ${inspect(seen)}`);
  }
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
