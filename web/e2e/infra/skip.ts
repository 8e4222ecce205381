// Tests that cannot run here: the line that `cargo xtask test` counts, with a kind of tests/skips.

import type { TestContext } from "node:test";

/** For a test that returns after this. */
export function skip(t: TestContext, kind: "guest" | "machine" | "servers", reason: string): void {
  console.log(`skipped (${kind}): ${reason}`);
  t.skip(reason);
}
