// Keyboard shortcuts.

import type { Timeline } from "./timeline";

export interface KeyEvents {
  label(): void;
  share(): void;
  theme(): void;
  help(): void;
  defaults(): void;
  search(): void;
  drawer(which: "tree" | "side"): void;
  /** Moves the cursor by a fraction of the range. */
  cursor(share: number): void;
}

/** Listens for keys, except while the user types text or a dialog is open. */
export function listenToKeys(timeline: () => Timeline | null, to: KeyEvents): void {
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, dialog")) return;
    const onButton = target.closest("button, summary") !== null;
    if (onButton && (event.key === " " || event.key === "Enter")) return;
    const time = timeline();
    if (time && act(event, time, to)) event.preventDefault();
  });
}

function act(event: KeyboardEvent, time: Timeline, to: KeyEvents): boolean {
  const step = event.shiftKey ? 1 : 0.2;
  const [low, high] = time.limits();
  const [from, until] = time.range();
  const actions: Record<string, () => void> = {
    " ": () => (time.view.follow ? time.freeze() : time.follow()),
    "+": () => time.zoom(0.7),
    "=": () => time.zoom(0.7),
    "-": () => time.zoom(1.4),
    ArrowLeft: () => time.pan(-step),
    ArrowRight: () => time.pan(step),
    Home: () => time.showRange(low, low + until - from),
    End: () => time.follow(until - from),
    Backspace: () => time.undo(),
    a: () => time.showRange(low, high),
    "[": () => to.cursor(-0.01),
    "]": () => to.cursor(0.01),
    "/": () => to.search(),
    "0": () => to.defaults(),
    n: () => to.label(),
    s: () => to.share(),
    d: () => to.theme(),
    m: () => to.drawer("side"),
    t: () => to.drawer("tree"),
    "?": () => to.help(),
  };
  const action = actions[event.key];
  action?.();
  return action !== undefined;
}
