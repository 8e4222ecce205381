// What the tests of a file started ends with the file, also if a test failed.

import type { ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { within } from "./until";

interface Closing {
  /** Doing it twice does no harm. */
  close(): Promise<unknown>;
}

const open: Closing[] = [];
const processes = new Map<ChildProcess, NodeJS.Signals>();

process.on("exit", () => processes.forEach((signal, child) => child.kill(signal)));
// The runner ends a file like this that takes too long.
process.on("SIGTERM", () => process.exit(143));

/** Closes it at the end of the file. */
export function atEnd<T extends Closing>(one: T): T {
  open.push(one);
  return one;
}

/** Ends a process with this one, at the latest. */
export function endsWithUs(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): ChildProcess {
  processes.set(child, signal);
  child.on("exit", () => processes.delete(child));
  return child;
}

/** A new folder that is removed at the end of the file. */
export async function temporary(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `numa-${name}-`));
  atEnd({ close: () => remove(folder) });
  return folder;
}

/** Removes a folder, also while a process that was killed still writes there. */
export function remove(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 20 });
}

/** Closes everything, the newest first; then throws what failed. */
export async function closeAll(): Promise<void> {
  const failures: string[] = [];
  for (const one of open.splice(0).reverse()) {
    await within("the end of what a test started", one.close()).catch((error: Error) => failures.push(error.stack ?? error.message));
  }
  if (failures.length > 0) throw new Error(failures.join("\n"));
}
