// The second tier: tests that repeat what others say, at other sizes or more often.

import { test, type TestContext } from "node:test";

/** Whether `cargo xtask test --thorough` runs. */
const THOROUGH = process.env.NUMAKIT_THOROUGH !== undefined;

/** A test that runs with `--thorough` only, and why; with null, always. */
export function thorough(name: string, why: string | null, run: (t: TestContext) => Promise<void>): void {
  test(name, { skip: why !== null && !THOROUGH && `thorough: ${why}` }, run);
}
