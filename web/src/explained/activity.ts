// What the program does, in a sentence: CPU time first, so that threads that only wait change nothing of it.

import { h } from "../elements";
import { percent, type Activity, type Result } from "./result";
import { chainText, waitKind, what } from "./waits";

/** Most of the CPU time. */
const MOST = 0.5;
/** From this part of the time in which threads could run on, it is said that they had no CPU. */
const WITHOUT_CPU = 0.2;

const PARTS: Record<string, string> = {
  computing: "computing", caches: "use of memory that fits the caches", memory: "waiting for memory outside of the caches",
  contended: "waiting for lines that other threads use", spinning: "waiting for other threads in loops", kernel: "in the kernel",
};

/** The sentence, and how many processes were observed; null for results that have neither. */
export function activityView(result: Result): HTMLElement | null {
  const processes = processesText(result);
  if (!result.activity && !processes) return null;
  return h("div", { class: "activity" },
    result.too_few_samples ? h("p", { class: "why" }, `${result.too_few_samples}.`) : null,
    result.activity ? h("p", {}, activityText(result.activity)) : null,
    processes ? h("p", { class: "quiet" }, processes) : null);
}

export function activityText(activity: Activity): string {
  const text = activity.is_busy ? busy(activity) : waiting(activity);
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function busy({ threads, busy: count, cpus, part, function: most, without_cpu: without }: Activity): string {
  const who = threads <= 1 ? (count === 1 ? "its one thread is busy; of its CPU time" : "of its CPU time")
    : count === 0 ? `none of its ${threads} threads is busy for long, together ${cpus.toFixed(1)} CPUs; of their CPU time`
    : count === 1 ? `1 of ${threads} threads is busy; of its CPU time`
    : `${count} of ${threads} threads are busy; of their CPU time`;
  const parts = [
    part ? (part[1] > MOST ? `${percent(part[1])} is ${PARTS[part[0]] ?? part[0]}` : `the largest part, ${percent(part[1])}, is ${PARTS[part[0]] ?? part[0]}`) : null,
    most ? `${percent(most[1])} is in ${most[0].function ?? "code without names"} [${most[0].module}]` : part ? "no function has much" : "nothing is known",
  ];
  const it = count > 1 ? "they" : "it";
  const queued = without != null && without >= WITHOUT_CPU ? `; for ${percent(without)} of the time in which ${it} could run ${it} had no CPU` : "";
  return `${who} ${parts.filter(Boolean).join(", ")}${queued}`;
}

function waiting({ threads, cpus, waits, cpu_wait: queued }: Activity): string {
  const who = threads === 1 ? `its one thread is not busy (${percent(cpus)} of a CPU)` : `none of its ${threads} threads is busy (together ${percent(cpus)} of a CPU)`;
  const words = waits.map(([wait, share]) => {
    const object = what(wait);
    const place = chainText(wait.chain.slice(0, 1));
    return `${percent(share)} for ${waitKind(wait)}${object ? ` ${wait.kind === "events" ? "of " : ""}${object}` : ""}${place ? ` (in ${place})` : ""}`;
  });
  if (queued != null) words.push(`${percent(queued)} for a CPU`);
  return words.length > 0 ? `${who}; it waits: ${words.join(", ")}` : who;
}

/** How many processes were observed, where that is more than one. */
function processesText({ processes }: Result): string | null {
  if (!processes || processes.length < 2) return null;
  const count = (is: boolean[], words: string) => (is.some(Boolean) ? `, ${is.filter(Boolean).length} ${words}` : "");
  const began = count(processes.map(({ joined }) => joined), "began meanwhile");
  return `${processes.length} processes${began}${count(processes.map(({ ended }) => ended), "have ended")}.`;
}

/** The processes of an object: `server 4711`, `12 x server`; null where the result has one process. */
export function processesOf(result: Result, pids: number[]): string | null {
  if ((result.processes ?? []).length < 2 || pids.length === 0) return null;
  const names = [...new Set((result.processes ?? []).filter(({ pid, name }) => name && pids.includes(pid)).map(({ name }) => name))];
  const name = names.length === 1 ? names[0] : null;
  if (pids.length === 1) return name ? `${name} ${pids[0]}` : `process ${pids[0]}`;
  return name ? `${pids.length} x ${name}` : `${pids.length} processes`;
}
