// Memory of a process.

import { readFile } from "node:fs/promises";

/** Resident memory in MiB: now, and its maximum so far. */
export async function resident(pid: number): Promise<{ now: number; most: number }> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) / 1024;
  return { now: field("VmRSS"), most: field("VmHWM") };
}
