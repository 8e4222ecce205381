// Dialogs, notices and the list of keyboard shortcuts.

import { h, pageIcon } from "./elements";

/** Asks for a line of text; null if cancelled. */
export function ask(title: string, value: string, hint: string, action: string): Promise<string | null> {
  return new Promise((done) => {
    const input = h("input", { type: "text", value, "aria-label": title, autofocus: true, maxlength: 1000 });
    const dialog = h("dialog", { class: "dialog" });
    const finish = (result: string | null) => {
      dialog.close();
      dialog.remove();
      done(result);
    };
    dialog.append(h("form", {
      method: "dialog",
      submit: (event: Event) => {
        event.preventDefault();
        const text = input.value.trim();
        if (text) finish(text);
      },
    }, h("h2", {}, title), input, hint ? h("p", { class: "quiet" }, hint) : null,
      h("div", { class: "row" }, h("button", { type: "button", class: "button", click: () => finish(null) }, "Cancel"), h("button", { type: "submit", class: "button primary" }, action))));
    dialog.addEventListener("cancel", () => finish(null));
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}

/** Asks to choose one of several actions, the last of which is the default; null if cancelled. */
export function decide(title: string, text: string, actions: [string, string][]): Promise<string | null> {
  return new Promise((done) => {
    const finish = (result: string | null) => {
      dialog.remove();
      done(result);
    };
    const buttons = actions.map(([name, label], at) =>
      h("button", { type: "button", class: at === actions.length - 1 ? "button primary" : "button", click: () => finish(name) }, label));
    const dialog = h("dialog", { class: "dialog", "aria-label": title }, h("h2", {}, title), h("p", { class: "quiet" }, text), h("div", { class: "row" }, ...buttons));
    dialog.addEventListener("cancel", () => finish(null));
    document.body.append(dialog);
    dialog.showModal();
  });
}

const KEYS: [string, string][] = [
  ["space", "Freeze the display, or follow live data"],
  ["+  −", "Zoom in, out"],
  ["←  →", "Scroll in time; with Shift by a full range"],
  ["Home  End", "Go to the oldest, to the newest sample"],
  ["Backspace", "Previous time range (or double-click on a chart)"],
  ["a", "Show the whole history"],
  ["[  ]", "Move the cursor; legends show the values there"],
  ["/", "Search metrics; Esc clears the search"],
  ["↓  ↑", "In the metric list: next, previous row"],
  ["0", "Open the default panels"],
  ["n", "Add a label"],
  ["s", "Copy link to this view"],
  ["d", "Switch light/dark theme"],
  ["←  →", "On the title of a panel: move it; with Shift and ↑ ↓ too: its size"],
  ["m  t", "Show or hide the side views, the metric list"],
  ["?", "Show this list"],
];

const MOUSE: [string, string][] = [
  ["Drag on a chart", "Zoom in to the selection"],
  ["Wheel", "Zoom; with Ctrl if the page scrolls; with Shift scroll in time"],
  ["Touch", "Tap: set the cursor, or remove it; one finger scrolls in time, two fingers zoom"],
  ["Double-click", "On a chart: previous time range"],
  ["Legend", "Click: show or hide a line; double-click or Shift+click: show only this line"],
  ["Metric list", "Click: open or close a panel; Shift+click: add to the open panel"],
  ["Panel", "Drag its title: move it; drag its lower right corner: its size"],
  ["Slider", "Drag the window or its edges; wheel: zoom"],
  ["Drop a file", "Open a recording"],
];

/** Shows the keyboard shortcuts. */
export function showKeys(): void {
  const list = (rows: [string, string][]) => h("dl", {}, ...rows.flatMap(([keys, text]) => [h("dt", {}, ...keys.split("  ").map((key) => h("kbd", {}, key))), h("dd", {}, text)]));
  const dialog = h("dialog", { class: "dialog keys", "aria-label": "Keyboard shortcuts" }, h("h2", {}, "Keyboard shortcuts"), list(KEYS), h("h2", {}, "Mouse and touch"), list(MOUSE),
    h("div", { class: "row" }, h("button", { type: "button", class: "button primary", click: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}

const notices = h("div", { class: "notices", role: "status", "aria-live": "polite" });

/** Shows a notice for some seconds. */
export function notify(text: string, bad = false): void {
  if (!notices.isConnected) document.body.append(notices);
  const one = h("div", { class: bad ? "notice bad" : "notice" }, text);
  notices.append(one);
  // The time starts when the notice is drawn: a busy page draws it late.
  requestAnimationFrame(() => window.setTimeout(() => one.remove(), bad ? 8000 : 3500));
}

let stands: HTMLElement | null = null;

/** Shows a notice until it is replaced; null removes it. */
export function persistentNotice(text: string | null): void {
  stands?.remove();
  stands = null;
  if (text === null) return;
  if (!notices.isConnected) document.body.append(notices);
  stands = h("div", { class: "notice bad" }, text);
  notices.prepend(stands);
}

/** Fills the page while there is nothing else to show: connecting, access denied, no response. */
export function fullPage(title: string, text: string, action?: { name: string; run(): void }): HTMLElement {
  return h("div", { class: "full" }, h("img", { src: pageIcon(), alt: "", width: 56, height: 56 }), h("h1", {}, title), h("p", {}, text),
    action ? h("button", { type: "button", class: "button primary", click: () => action.run() }, action.name) : null);
}
