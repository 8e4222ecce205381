// A recording of a machine with several nodes, made in a guest.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { program } from "./numa";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LIMIT_MS = 240_000;
/** Exit status of `cargo xtask guest` if guests cannot run here. */
const UNAVAILABLE = 69;

/** The recording, or why no guest can be started. */
export type Recorded = { path: string } | { skipped: string };

/** Records a command on a machine of this shape with `cargo xtask guest`. */
export function recordInGuest(folder: string, shape: string, command: string[]): Promise<Recorded> {
  const words = ["xtask", "guest", "--shape", shape, "--out", folder, "--", "numa", "record", "-i", "50ms", "-o", "guest.arrows", "--", ...command];
  return new Promise((done, fail) =>
    execFile(process.env.CARGO ?? "cargo", words, { cwd: ROOT, env: { ...process.env, NUMAKIT_NUMA: program() }, timeout: LIMIT_MS }, (error, out, err) => {
      if (error?.code === UNAVAILABLE) done({ skipped: err.trim().split("\n").pop() ?? "" });
      else if (error) fail(new Error(`cargo ${words.join(" ")}: ${error.message}\n${out}\n${err}`));
      else done({ path: join(folder, "guest.arrows") });
    }));
}
