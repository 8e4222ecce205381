// Memory of a process, as the kernel counts it.

import { readFile } from "node:fs/promises";

/** Resident memory in MiB: now, and the most it ever was. */
export async function resident(pid: number): Promise<{ now: number; most: number }> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1]) / 1024;
  return { now: field("VmRSS"), most: field("VmHWM") };
}
