// What the recorder noted between the samples: pauses, lost ticks, sensors without values, start and end of the program.

import { NS_PER_MS } from "../store";
import { digits, span } from "../units";
import type { WireLabel } from "../wire";

/** Labels with this prefix were written by the recorder. */
export const RESERVED = "numakit:";

/** `loss`: samples or values are missing. `program`: the observed program started or ended. `change`: anything else. */
export type EventKind = "loss" | "pause" | "program" | "change";

export interface RecorderEvent {
  kind: EventKind;
  /** In ms. */
  from: number;
  /** When it ended; null: it still lasts. The same as `from` for what has no length. */
  to: number | null;
  text: string;
}

/** Signals are reported as this plus their number. */
const SIGNAL = 128;

/** The events among labels, in the order of their times. */
export function eventsOf(labels: readonly WireLabel[]): RecorderEvent[] {
  const events: RecorderEvent[] = [];
  /** What still lasts: a pause, or a sensor without values, by its name. */
  const open = new Map<string, RecorderEvent>();
  const own = labels.filter(({ text }) => text.startsWith(RESERVED)).sort((a, b) => a.time_ns - b.time_ns || a.id - b.id);
  for (const { time_ns, text } of own) {
    const from = time_ns / NS_PER_MS;
    const [word = "", value = ""] = halves(text.slice(RESERVED.length), " ");
    const begin = (name: string, kind: EventKind, says: string) => {
      const event: RecorderEvent = { kind, from, to: null, text: says };
      open.set(name, event);
      events.push(event);
    };
    const end = (name: string): boolean => {
      const begun = open.get(name);
      if (begun) [begun.to, begun.text] = [from, `${begun.text}, for ${span(from - begun.from)}`];
      return open.delete(name);
    };
    const [sensor = "", why] = halves(value, ": ");
    if (word === "pause") begin("", "pause", "Sampling was paused");
    else if (word === "resume" && end("")) continue;
    else if (word === "absent") begin(`sensor ${sensor}`, "loss", `No values of ‘${sensor}’${why ? `: ${why}` : ""}`);
    else if (word === "back" && end(`sensor ${sensor}`)) continue;
    else {
      const [kind, says] = single(word, value);
      events.push({ kind, from, to: from, text: says });
    }
  }
  return events;
}

function single(word: string, value: string): [EventKind, string] {
  const count = Number.parseInt(value, 10);
  switch (word) {
    case "command":
      return ["program", `The program started: ${value}`];
    case "exit":
      return ["program", count > SIGNAL ? `The program was killed by signal ${count - SIGNAL}` : `The program ended with exit status ${value}`];
    case "resume":
      return ["pause", "Sampling continued"];
    case "interval":
      return ["change", `The interval changed to ${span(count / NS_PER_MS)}`];
    case "lost":
      return ["loss", `${counted(count, "tick")} lost`];
    case "dropped":
      return ["loss", `${counted(count, "sample")} dropped: the recorder was too slow`];
    case "damaged":
      return ["loss", `${counted(count, "sample")} cannot be read: the file is damaged`];
    case "clock":
      return ["change", `The clock was set ${count < 0 ? "back" : "forward"} by ${span(Math.abs(count) / NS_PER_MS)}`];
    case "back":
      return ["change", `Values of ‘${value}’ again`];
    default:
      return ["change", `${word} ${value}`.trim()];
  }
}

function counted(count: number, what: string): string {
  return `${digits(count)} ${what}${count === 1 ? "" : "s"}`;
}

function halves(text: string, by: string): [string, string | undefined] {
  const at = text.indexOf(by);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + by.length)];
}

/** Events that are too near to each other for a mark of their own. */
export interface Cluster {
  kind: EventKind;
  /** Where its mark is, in pixels. */
  at: number;
  events: RecorderEvent[];
}

/** The most important kind comes first. */
const ORDER: EventKind[] = ["loss", "pause", "program", "change"];

/** Marks for the events of a range of that many pixels, at least `apart` from each other. */
export function clusters(events: readonly RecorderEvent[], from: number, to: number, pixels: number, apart: number): Cluster[] {
  const out: Cluster[] = [];
  for (const event of events) {
    if (event.from > to || (event.to ?? to) < from) continue;
    const at = (Math.max(0, event.from - from) / (to - from)) * pixels;
    const last = out[out.length - 1];
    if (last && at - last.at < apart + widthOf(last)) {
      last.events.push(event);
      if (ORDER.indexOf(event.kind) < ORDER.indexOf(last.kind)) last.kind = event.kind;
    } else out.push({ kind: event.kind, at, events: [event] });
  }
  return out;
}

const DIGIT = 7;

/** Width of the number of its events, in pixels. */
function widthOf({ events }: Cluster): number {
  return events.length > 1 ? DIGIT * String(events.length).length : 0;
}

const LISTED = 6;

/** What a mark says, a line for each event; ticks lost in several rows are counted together. */
export function linesOf(found: readonly RecorderEvent[], time: (ms: number) => string): string[] {
  const lost = found.filter(({ text }) => LOST.test(text));
  const total = lost.reduce((sum, { text }) => sum + Number.parseInt(text, 10), 0);
  const together = lost.length > 1 ? [`${time(lost[0]?.from ?? 0)} to ${time(lost[lost.length - 1]?.from ?? 0)}  ${counted(total, "tick")} lost, ${lost.length} times`] : [];
  const others = lost.length > 1 ? found.filter((event) => !lost.includes(event)) : found;
  const lines = [...together, ...others.map(({ from, text }) => `${time(from)}  ${text}`)];
  return lines.length > LISTED ? [...lines.slice(0, LISTED - 1), `and ${lines.length - LISTED + 1} more`] : lines;
}

const LOST = /^\d+ ticks? lost$/;
