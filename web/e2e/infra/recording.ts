// Recordings with known samples, written by the examples `long` and `pairs` of numakit-recording.

import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Writing the longest one takes this long on a busy machine, at most. */
const LIMIT_MS = 240_000;
const run = promisify(execFile);

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The program that writes them: the environment variable LONG or PAIRS, or a new build. */
async function generator(example: "long" | "pairs"): Promise<string> {
  const { CARGO = "cargo", CARGO_TARGET_DIR = "target" } = process.env;
  const built = process.env[example.toUpperCase()];
  if (built) return built;
  await run(CARGO, ["build", "--workspace", "--example", example], { cwd: ROOT });
  return resolve(ROOT, CARGO_TARGET_DIR, "debug/examples", example);
}

/**
 * A program on the nodes 0, 2, 4 and 6 that uses memory of node 0 for ten seconds, then for as long each thread that of
 * its own node. Returns when it started, in ms.
 */
export async function writePairs(path: string, kind: "time" | "pages"): Promise<number> {
  const { stdout } = await run(await generator("pairs"), [kind, path], { timeout: LIMIT_MS });
  return (JSON.parse(stdout) as { started_ns: number }).started_ns / 1e6;
}

export interface Plan {
  series: number;
  rows: number;
  intervalMs: number;
  startedS?: number;
}

export class Known {
  private constructor(
    readonly path: string,
    readonly startedMs: number,
    readonly intervalMs: number,
    readonly rows: number,
    /** The samples in which `test.spike` is not 0 but 1000 plus the number of the spike. */
    readonly spikes: number[],
  ) {}

  static async write(path: string, { series, rows, intervalMs, startedS = 1_700_000_000 }: Plan): Promise<Known> {
    const words = [series, rows, intervalMs, path, startedS].map(String);
    const { stdout } = await run(await generator("long"), words, { timeout: LIMIT_MS });
    const { spikes } = JSON.parse(stdout) as { spikes: number[] };
    return new Known(path, startedS * 1000, intervalMs, rows, spikes);
  }

  /** The time of a sample. Each is up to 20 us late. */
  timeMs(row: number): number {
    return this.startedMs + row * this.intervalMs + ((row * 7919) % 20_011) / 1e6;
  }

  /** The sample of a millisecond. */
  rowAt(ms: number): number {
    return Math.round((ms - this.startedMs) / this.intervalMs);
  }

  /** The value of a series in a sample. */
  value(series: "test.row" | "test.spike", row: number): number {
    return series === "test.row" ? row % 1000 : this.spikes.includes(row) ? 1000 + this.spikes.indexOf(row) : 0;
  }

  get endedMs(): number {
    return this.timeMs(this.rows - 1);
  }
}
