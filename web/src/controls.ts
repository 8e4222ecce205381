// The top bar: source, state, and commands.

import { h, ICONS, icon, iconButton, pageIcon } from "./elements";
import type { Link } from "./connection";
import { Losses, RECENT_MS } from "./losses";
import { format, span } from "./units";
import { SPANS, type View } from "./view";
import type { Role, SourceInfo, ObservationState } from "./wire";

export interface ControlEvents {
  follow(): void;
  freeze(): void;
  span(ms: number): void;
  order(line: string): void;
  label(): void;
  record(): void;
  share(): void;
  theme(): void;
  help(): void;
  load(file: File): void;
  drawer(which: "tree" | "side"): void;
  source(id: number): void;
}

const INTERVALS = ["1ms", "2ms", "5ms", "10ms", "20ms", "50ms", "100ms", "200ms", "500ms", "1s", "5s"];

export class Controls {
  readonly element: HTMLElement;
  private readonly followButton: HTMLButtonElement;
  private readonly spans: HTMLSelectElement;
  private readonly intervals: HTMLSelectElement;
  private readonly pauseButton: HTMLButtonElement;
  private readonly recordButton: HTMLButtonElement;
  private readonly name = h("span", { class: "what" });
  private readonly choice = h("select", { class: "source", "aria-label": "Data source" });
  private readonly status = h("div", { class: "status" });
  /** The state without changing numbers, for screen readers. */
  private readonly spoken = h("span", { class: "unseen", role: "status" });
  private readonly orders: HTMLElement[];
  private readonly losses = new Losses();
  private interval = 0;

  constructor(private readonly sources: SourceInfo[], private readonly source: SourceInfo, role: Role, parts: { compare: HTMLElement; save: HTMLElement; guide: HTMLElement | null }, events: ControlEvents) {
    this.followButton = iconButton("freeze", "", () => (this.followButton.dataset.on === "1" ? events.freeze() : events.follow()), "Freeze");
    this.followButton.classList.add("primary");
    this.spans = h("select", { "aria-label": "Time range", title: "Time range", change: () => events.span(Number(this.spans.value)) });
    this.intervals = h("select", { "aria-label": "Sampling interval, for everyone", title: "Sampling interval, for everyone", change: () => events.order(`interval ${this.intervals.value}`) },
      ...INTERVALS.map((text) => h("option", { value: text }, text)));
    this.pauseButton = iconButton("pause", "Pause all sampling, for everyone", () => events.order(this.pauseButton.dataset.paused === "1" ? "resume" : "pause"), "Pause all");
    this.recordButton = iconButton("record", "Record to a file on the server", () => events.record(), "Record");
    const labelButton = iconButton("label", "Add a label at the newest sample (n)", () => events.label(), "Label");
    this.orders = [this.intervals, this.pauseButton, this.recordButton];
    const mayOrder = role === "controller" && source.kind === "live";
    this.orders.forEach((element) => (element.hidden = !mayOrder));
    labelButton.hidden = role !== "controller";
    this.followButton.hidden = source.kind !== "live";
    const file = h("input", { type: "file", hidden: true, change: () => { const chosen = file.files?.[0]; if (chosen) events.load(chosen); } });
    const load = role === "controller" ? iconButton("open", "Open a recording", () => file.click()) : null;
    this.element = h("header", { class: "top" },
      iconButton("menu", "Metrics", () => events.drawer("tree")),
      h("div", { class: "brand" }, h("h1", { class: "unseen" }, `numakit: ${source.host || source.name}`), mark(), this.name, parts.compare, h("span", { class: "about" }, about(source))),
      this.status, this.spoken,
      h("div", { class: "buttons time" }, this.followButton, this.spans),
      h("div", { class: "buttons orders" }, this.intervals, this.pauseButton, this.recordButton, labelButton),
      h("div", { class: "buttons tools" }, load, file, parts.save,
        iconButton("share", "Copy link to this view (s)", () => events.share()),
        iconButton("theme", "Switch light/dark theme (d)", () => events.theme()), iconButton("help", "Keyboard shortcuts (?)", () => events.help()), parts.guide),
    );
    this.choice.addEventListener("change", () => events.source(Number(this.choice.value)));
    this.sourcesChanged();
    this.element.querySelector("button")?.classList.add("burger");
  }

  /** Shows the name of the source, or a choice if there are several. */
  sourcesChanged(): void {
    const { sources, source, choice } = this;
    choice.replaceChildren(...sources.map((one) => h("option", { value: one.id, selected: one === source }, one.kind === "live" ? `${one.host}, live` : one.name)));
    this.name.replaceChildren(sources.length < 2 ? h("strong", {}, source.host || source.name) : choice);
  }

  /** Shows the state of the connection and of the sampler. */
  show(link: Link, state: ObservationState | null, view: View): void {
    const { follow } = view;
    this.followButton.dataset.on = follow ? "1" : "0";
    relabel(this.followButton, follow ? "freeze" : "newest", follow ? "Freeze" : "Live", follow ? "Freeze this display; sampling continues (space)" : "Follow live data (space)");
    this.followButton.classList.toggle("calls", !follow);
    this.fillSpans(view.spanMs);
    const [kind, text] = this.wording(link, state, follow);
    const spoken = text.replace(/[:,;(].*$/, "").trim();
    if (this.spoken.textContent !== spoken) this.spoken.textContent = spoken;
    this.status.className = `status ${kind}`;
    if (this.status.textContent !== text) this.status.replaceChildren(h("i", {}), h("span", {}, text));
    this.status.title = state ? `${state.samples} samples, ${state.lost} ticks lost; history ${format(state.history.bytes, "bytes")} of ${format(state.history.budget, "bytes")}` : "";
    if (!state) return;
    if (state.ended) for (const element of this.orders) element.hidden = true;
    this.fillInterval(state.interval_ns);
    this.pauseButton.dataset.paused = state.paused ? "1" : "0";
    relabel(this.pauseButton, state.paused ? "play" : "pause", state.paused ? "Resume all" : "Pause all", state.paused ? "Resume all sampling, for everyone" : "Pause all sampling, for everyone");
    this.recordButton.classList.toggle("on", state.recording !== null);
    relabel(this.recordButton, "record", state.recording ? format(state.recording.bytes, "bytes") : "Record", state.recording ? `Recording to ${state.recording.path}, ${format(state.recording.bytes, "bytes")}; click to stop or to change the file` : "Record to a file on the server");
  }

  private wording(link: Link, state: ObservationState | null, follow: boolean): [string, string] {
    if (link.is !== "open") this.losses.forget();
    if (link.is === "connecting") return ["wait", "connecting"];
    if (link.is === "lost") return ["bad", `${link.why ?? "connection lost"}; retrying (${link.tries})`];
    if (link.is === "refused") return ["bad", "not connected"];
    if (link.is === "ended") return ["bad", link.why];
    if (link.is === "standalone") return ["idle", this.standalone(link.steps)];
    if (this.source.kind === "recording") return ["idle", "recording"];
    if (state?.ended) return ["idle", "sampling has ended"];
    if (!state || state.interval_ns === 0) return ["wait", "waiting for samples"];
    if (state.paused) return ["idle", "sampling paused"];
    const behind = this.losses.take(Date.now(), state.lost);
    const rate = 1e9 / state.interval_ns;
    if (behind > 0) return ["warn", `sampler behind: ${behind} ticks lost in ${span(RECENT_MS)}, ${format(rate, "count/s")}`];
    return ["good", `${follow ? "live" : "frozen"}, ${format(rate, "count/s")}${state.clients > 1 ? `, ${state.clients} clients` : ""}`];
  }

  private standalone(steps: number[]): string {
    const step = steps[this.source.id] ?? 0;
    return step > 0 ? `standalone file, buckets of ${span(step)}` : "standalone file";
  }

  private fillSpans(ms: number): void {
    const all = SPANS.some((known) => Math.abs(known - ms) < 1) ? SPANS : [...SPANS, ms].sort((a, b) => a - b);
    const key = all.map(Math.round).join();
    if (this.spans.dataset.key !== key) {
      this.spans.dataset.key = key;
      this.spans.replaceChildren(...all.map((one) => h("option", { value: String(Math.round(one)) }, span(one))));
    }
    if (document.activeElement !== this.spans) this.spans.value = String(Math.round(all.find((one) => Math.abs(one - ms) < 1) ?? ms));
  }

  private fillInterval(ns: number): void {
    // An open choice stays as it is, unless another client changed the interval.
    if (document.activeElement === this.intervals && ns === this.interval) return;
    this.interval = ns;
    const text = ns >= 1e9 ? `${ns / 1e9}s` : `${ns / 1e6}ms`;
    if (![...this.intervals.options].some((option) => option.value === text)) this.intervals.append(h("option", { value: text }, text));
    this.intervals.value = text;
  }
}

/** Changes a button only if its text changed: replacing its content during a click would lose the click. */
function relabel(button: HTMLButtonElement, name: keyof typeof ICONS, text: string, title: string): void {
  button.title = title;
  button.setAttribute("aria-label", title);
  if (button.dataset.text === text) return;
  button.dataset.text = text;
  button.replaceChildren(icon(ICONS[name]), h("span", {}, text));
}

function about(source: SourceInfo): string {
  return [source.kind === "recording" ? source.name : "", source.kernel ? `Linux ${source.kernel}` : "", source.command ?? ""].filter(Boolean).join(" · ");
}

function mark(): HTMLElement {
  return h("img", { src: pageIcon(), alt: "", width: 22, height: 22 });
}
