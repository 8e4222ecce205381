// What threads wait for while they do not run, and the locks that cost time.

import { h } from "../elements";
import { percent, type Code, type Lock, type Result, type Wait, type Waits } from "./result";

/** Waits with less of the time of all waits, and locks with less of the time of their threads, are left out. */
const MIN_SHARE = 0.005;
const MIN_LOCK = 0.02;
const ROWS = 20;

const KINDS: Record<string, string> = {
  lock: "a lock", condition: "a condition", semaphore: "a semaphore", barrier: "a barrier", thread: "the end of a thread",
  "other-thread": "another thread", file: "a file", storage: "storage", pipe: "a pipe", socket: "a socket", connections: "connections", terminal: "a terminal", events: "events",
  timer: "a timer", child: "a child process", signal: "a signal", "page-fault": "a page on disk", stopped: "SIGCONT",
  kernel: "the kernel",
};

export function waitsView(result: Result): HTMLElement | null {
  const { waits } = result;
  if (!waits) return null;
  const all = waits.rows.reduce((sum, { time }) => sum + time, 0);
  const shown = waits.rows.filter(({ time }) => time >= MIN_SHARE * all).slice(0, ROWS);
  const locks = waits.locks.filter((lock) => part(lock) >= MIN_LOCK);
  return h("section", { class: "card", "aria-label": "Waits" },
    h("h2", {}, "What threads wait for while they do not run"),
    shown.length > 0 ? table(shown, all) : h("p", { class: "why" }, unseen(result, waits) ?? "No thread was seen to wait."),
    ...locks.map(lockView),
    ...(shown.length > 0 ? [unseen(result, waits)] : []).filter((why) => why !== null).map((why) => h("p", { class: "quiet" }, why)));
}

function table(rows: Wait[], all: number): HTMLElement {
  const headings: [string, string][] = [["Part of all waits", "number"], ["Threads", "number"], ["Waits for", ""], ["What, whose", ""], ["In", ""]];
  return h("div", { class: "scroll" }, h("table", { class: "waits" },
    h("thead", {}, h("tr", {}, ...headings.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
    h("tbody", {}, ...rows.map((row) => h("tr", {},
      h("td", { class: "number" }, percent(row.time / all)),
      h("td", { class: "number" }, row.threads.toLocaleString("en")),
      h("td", {}, waitKind(row).replace(/^(an?|the) /, "")),
      h("td", {}, what(row) || h("span", { class: "quiet" }, "–")),
      h("td", {}, h("span", { class: "code" }, chainText(row.chain)), row.call ? h("small", {}, `in ${row.call}`) : null))))));
}

/** What is waited for, with its article. */
export function waitKind({ kind }: Wait): string {
  return KINDS[kind] ?? kind;
}

/** What it is, and whose the other end is. */
export function what({ what: object, peers, processes }: Wait): string {
  const from = peers.length > 0 ? `from ${peers.join(", ")}` : "";
  return [object ?? "", from, processes > 1 ? `in ${processes} processes` : ""].filter(Boolean).join(" ");
}

/** The functions of a chain, innermost first. */
export function chainText(chain: Code[]): string {
  const names = chain.map((code) => code.function ?? `[${code.module}]`);
  return names.filter((name, at) => name !== names[at - 1]).join(" < ");
}

/** The part of the time in which its threads had work that they waited for a lock. */
function part({ time, worked }: Lock): number {
  return time / Math.max(1, time + worked);
}

function lockView(lock: Lock): HTMLElement {
  const threads = lock.threads === 1 ? "1 thread waits" : `${lock.threads} threads wait`;
  const holders = lock.holders.map((holder) => h("li", {},
    `held by thread ${holder.thread} (${holder.name}) ${percent(holder.share)}, ${holder.runs ? "running" : "waiting"}`, chainList(holder.chain)));
  return h("article", { class: "lock" },
    h("h3", {}, "Lock ", h("span", { class: "code" }, lock.what)),
    h("p", {}, `${threads} for it ${percent(part(lock))} of the time in which they have work.`),
    h("ul", { class: "chains" }, h("li", {}, "waits", chainList(lock.chain)), ...holders),
    holders.length === 0 ? h("p", { class: "why" }, "Who holds it is not known: this kind of lock does not tell.") : null);
}

function chainList(chain: Code[]): HTMLElement {
  if (chain.length === 0) return h("p", { class: "why" }, "without a call chain");
  const where = (code: Code) => (code.file ? ` (${code.file}${code.line ? `:${code.line}` : ""})` : "");
  return h("ol", { class: "chain" }, ...chain.map((code) => h("li", {}, `${code.function ?? `[${code.module}]`}${where(code)}`)));
}

/** What the looks cost, or why the waiting of threads has no cause. */
function unseen({ seconds }: Result, { unseen: time, looks, cost, refused }: Waits): string | null {
  const all = Math.max(seconds, 1e-9) * 1e9;
  const threads = `The waiting of ${(time / all).toFixed(1)} threads on average`;
  if (refused) return `${threads} has no cause, since ${refused}.`;
  if (looks === 0) return null;
  const rest = time / all >= 0.05 ? ` ${threads} was not looked at.` : "";
  return `${looks.toLocaleString("en")} looks at threads that waited took ${((100 * cost) / all).toFixed(2)} % of a CPU.${rest}`;
}
