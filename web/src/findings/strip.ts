// The strip on top of the page: what is wrong in the range on screen, what it costs, and what to do. It has the same height
// whatever it says, so that charts do not move when it changes.

import { notify } from "../dialogs";
import { h, icon, ICONS, iconButton } from "../elements";
import { NS_PER_MS } from "../store";
import { moment } from "../units";
import type { FindingInfo, RangeFindings, UntoldInfo } from "../wire-findings";
import { actionWords, costOf, costWords, foldedOf, isCommand, lineOf, nameOf, stateOf, whenOf, type State } from "./words";

const STATES: Record<State, [keyof typeof ICONS, string]> = {
  bad: ["warning", "Problem"],
  aside: ["check", "Nothing wrong with the program"],
  good: ["check", "Nothing wrong"],
  unknown: ["help", "Cannot tell"],
};

export interface StripEvents {
  /** A finding was clicked. */
  choose(finding: FindingInfo): void;
  /** Back to what was on screen before. */
  back(): void;
}

export class Strip {
  readonly element: HTMLElement;
  private readonly sign = h("span", { class: "sign" });
  private readonly verdict = h("h2", { class: "verdict" });
  private readonly cost = h("span", { class: "cost" });
  private readonly actions = h("span", { class: "actions" });
  private readonly first = h("div", { class: "first" });
  private readonly back = iconButton("back", "Back to what was on screen before", () => this.events.back(), "Back");
  private readonly toggle = h("button", { type: "button", class: "folds", "aria-expanded": "false", "aria-controls": "findings-rest", hidden: true, click: () => this.fold(this.isOpen) });
  private readonly rest = h("div", { class: "rest", id: "findings-rest", hidden: true });
  /** The verdict for screen readers: only when it changes. */
  private readonly spoken = h("span", { class: "unseen", role: "status" });
  private shown = "";

  constructor(private readonly events: StripEvents, private readonly note: string) {
    this.back.hidden = true;
    this.element = h("section", { class: "strip waiting", "aria-label": "Findings" },
      this.sign, this.verdict, h("div", { class: "answer" }, this.cost, this.actions), this.first,
      h("div", { class: "more-findings" }, this.back, this.toggle), this.rest, this.spoken);
    this.element.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.isOpen) return;
      this.fold(true);
      this.toggle.focus();
    });
    document.addEventListener("pointerdown", this.pressed);
  }

  destroy(): void {
    document.removeEventListener("pointerdown", this.pressed);
  }

  /** Says what the first findings wait for. */
  wait(text: string): void {
    if (this.shown === "") put(this.verdict, text);
  }

  /** Shows findings; of a chosen one its details, which may be of an earlier range. */
  show(found: RangeFindings, chosen: FindingInfo | null): void {
    const key = JSON.stringify([{ ...found, from_ns: 0, to_ns: 0 }, found.problems.map((one) => whenOf(one, found)), chosen]);
    if (key === this.shown) return;
    this.shown = key;
    const focused = document.activeElement instanceof HTMLElement && this.element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    this.head(found, chosen);
    const [worst] = found.problems;
    this.first.replaceChildren(worst ? this.line(worst, found, chosen) : untoldLine(found.untold));
    const folded = foldedOf(found);
    this.toggle.hidden = folded.length === 0;
    this.toggle.replaceChildren(...folded.map((part, at) => h("span", {}, at === 0 ? part : `· ${part}`)), icon(ICONS.down));
    this.back.hidden = chosen === null;
    this.fill(found, chosen);
    if (folded.length === 0) this.fold(true);
    if (focused) [...this.element.querySelectorAll<HTMLElement>("[data-key]")].find((one) => one.dataset.key === focused)?.focus({ preventScroll: true });
  }

  private head(found: RangeFindings, chosen: FindingInfo | null): void {
    const state = chosen ? "bad" : stateOf(found);
    const [sign, word] = STATES[state];
    this.element.className = `strip ${state}${chosen ? " chosen" : ""}`;
    this.sign.replaceChildren(icon(ICONS[sign]), h("span", { class: "unseen" }, word));
    const verdict = chosen?.says ?? found.verdict;
    put(this.verdict, verdict);
    this.verdict.title = verdict;
    const cost = costWords(chosen?.cost ?? found.cost);
    put(this.cost, this.note && !chosen ? `${cost} · ${this.note}` : cost);
    this.cost.title = cost;
    const commands = chosen ? chosen.commands : isCommand(found.action, found) ? [found.action] : [];
    const words = chosen ? (commands.length > 0 ? "" : chosen.remedy) : commands.length > 0 ? "" : actionWords(found.action);
    this.actions.replaceChildren(...(words ? [h("span", { class: "remedy", title: words }, words)] : []), ...commands.map(commandButton));
    put(this.spoken, verdict);
  }

  /** One line for a problem. That of the chosen one has the numbers of its verdict, also if the range is another now. */
  private line(told: FindingInfo, found: RangeFindings, chosen: FindingInfo | null): HTMLElement {
    const name = nameOf(told);
    const pressed = chosen !== null && nameOf(chosen) === name;
    const finding = pressed ? chosen : told;
    const says = lineOf(finding, pressed ? { ...found, verdict: chosen.says } : found);
    return h("button", { type: "button", class: "finding", "data-key": name, "data-rule": finding.rule, "aria-pressed": String(pressed), title: pressed ? "Back to what was on screen before" : `${finding.says}\nClick: show its time and its numbers`, click: () => this.choose(finding, pressed) },
      h("span", { class: "subject" }, finding.subject), h("span", { class: "says" }, says),
      h("span", { class: "share", title: finding.cost }, costOf(finding)), h("span", { class: "certainty" }, finding.certainty), h("span", { class: "when", title: moment(finding.since_ns / NS_PER_MS) }, whenOf(finding, found)));
  }

  private choose(finding: FindingInfo, pressed: boolean): void {
    this.fold(true);
    if (pressed) this.events.back();
    else this.events.choose(finding);
  }

  /** What is folded: further problems, remarks, and what cannot be told. */
  private fill(found: RangeFindings, chosen: FindingInfo | null): void {
    const lines = (title: string, all: FindingInfo[]) => (all.length === 0 ? [] : [h("h3", {}, title), ...all.map((one) => this.line(one, { ...found, verdict: "" }, chosen))]);
    this.rest.replaceChildren(
      ...lines("More problems", found.problems.slice(1)),
      ...lines("Worth knowing", found.remarks),
      ...(found.untold.length === 0 ? [] : [h("h3", {}, "Cannot tell"), h("dl", {}, ...found.untold.flatMap(({ what, why }) => [h("dt", {}, what), h("dd", {}, why)]))]),
    );
  }

  private get isOpen(): boolean {
    return !this.rest.hidden;
  }

  private fold(close: boolean): void {
    this.rest.hidden = close;
    this.toggle.setAttribute("aria-expanded", String(!close));
  }

  private readonly pressed = (event: PointerEvent) => {
    if (this.isOpen && event.target instanceof Node && !this.element.contains(event.target)) this.fold(true);
  };
}

function untoldLine(untold: UntoldInfo[]): HTMLElement {
  const [first] = untold;
  return h("p", { class: "untold" }, ...(first ? [`Cannot tell: ${first.what}`, h("span", { class: "because" }, `, because ${first.why}`)] : []));
}

/** A command that a click copies. */
function commandButton(command: string): HTMLElement {
  return h("button", { type: "button", class: "to-copy", "data-key": `copy ${command}`, title: `${command}\nClick: copy`, "aria-label": `Copy: ${command}`, click: () => void copy(command) }, h("code", {}, command), icon(ICONS.copy));
}

async function copy(command: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(command);
    notify("Command copied.");
  } catch {
    notify(`Cannot copy: ${command}`, true);
  }
}

function put(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
