// Waits for a condition. Limits are generous: no test checks how fast anything is.

import { inspect } from "node:util";

/** Within this, everything comes to an end. */
export const LIMIT_MS = 60_000;
const PAUSE_MS = 50;

/** The first value that is not false, null or undefined; `what` is for the error message. */
export async function until<T>(what: string, look: () => T | Promise<T>, limitMs = LIMIT_MS): Promise<Exclude<T, null | undefined | false>> {
  const end = Date.now() + limitMs;
  for (;;) {
    const found = await within(what, Promise.resolve(look()), limitMs);
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

/** What a promise brings, if it does so in time. */
export async function within<T>(what: string, promise: Promise<T>, limitMs = LIMIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => (timer = setTimeout(() => fail(new Error(`waited for ${what} for ${limitMs} ms`)), limitMs)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits. */
export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
