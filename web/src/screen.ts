// Everything that is seen of one source: bar, list, panels, machine, slider.

import { Controls } from "./controls";
import { ask, notify, showKeys } from "./dialogs";
import { saveCsv, savePng, saveSvg, fileName } from "./download";
import { h } from "./elements";
import type { Frame } from "./frame";
import { listenToKeys, type KeyEvents } from "./keys";
import { Labels } from "./labels";
import { MachineDrawing } from "./machine";
import { Matrix } from "./matrix";
import { Board } from "./panels/board";
import type { Panel } from "./panels/panel";
import type { Page } from "./page";
import { Beside, sharedLabels } from "./beside";
import { Catalog } from "./series";
import { Slider } from "./slider";
import { readMachine } from "./topology";
import { Timeline } from "./timeline";
import { switchTheme } from "./theme";
import { Tree } from "./tree";
import { Overview } from "./overview";
import { writeView, freshView } from "./view";
import type { Label, SourceInfo } from "./wire";

const WATCH = 1;
const ADDRESS_PAUSE_MS = 300;

let current: Screen | null = null;
let listening = false;

export class Screen {
  private readonly catalog: Catalog;
  private readonly timeline: Timeline;
  private readonly overview: Overview;
  private readonly controls: Controls;
  private readonly tree: Tree;
  private readonly board: Board;
  private readonly slider: Slider;
  private readonly labels: Labels;
  private readonly machine: MachineDrawing | null = null;
  private readonly matrix: Matrix | null = null;
  private beside: Beside | null = null;
  private cursor: number | null = null;
  private dirty = false;
  private addressTimer = 0;
  private readonly onResize = () => this.resized();

  /** `source`: the one of `sources` that is shown. */
  constructor(
    private readonly page: Page,
    private readonly sources: SourceInfo[],
    private readonly source: SourceInfo,
  ) {
    const { view, connection, ids } = page;
    this.catalog = new Catalog(source);
    this.timeline = new Timeline(source, view, connection, ids, WATCH, () => this.changed());
    this.timeline.state = page.state;
    if (source.kind === "recording" && source === sources[0] && view.to <= view.from) [view.from, view.to] = this.timeline.limits();
    this.overview = new Overview(source, connection, ids, source === sources[0], () => this.changed());
    this.controls = new Controls(sources, source, page.role, this.orders());
    this.board = new Board(this.catalog, view, {
      cursor: (ms) => this.pointAt(ms),
      select: (from, to) => this.timeline.showRange(from, to),
      back: () => this.timeline.undo(),
      save: (panel, as) => this.save(panel, as),
    }, { zoom: (factor, at) => this.zoomAt(factor, at), pan: (share) => this.timeline.pan(share) }, () => this.panelsChanged());
    this.tree = new Tree(this.catalog, {
      isOpen: (entry) => this.board.has(`m:${entry.name}`),
      choose: (entry, join) => {
        const id = `m:${entry.name}`;
        if (join) this.board.join(entry.name);
        else if (this.board.has(id)) this.board.remove(id);
        else this.board.add(id);
      },
    });
    this.slider = new Slider({ show: (from, to) => this.slide(from, to), zoom: (factor, around) => this.timeline.zoom(factor, view.follow ? undefined : around) });
    this.labels = new Labels(page.role === "controller", {
      add: () => void this.addLabel(),
      jump: (ms) => this.jump(ms),
      edit: (label, text) => page.order({ type: "edit_label", source: source.id, label: label.id, text }),
      remove: (label) => page.order({ type: "remove_label", source: source.id, label: label.id }),
    });
    const machine = readMachine(source.topology);
    if (machine) {
      this.machine = new MachineDrawing(machine, this.catalog, view.colour, (colour) => {
        view.colour = colour;
        this.panelsChanged();
      });
      if (machine.nodes.length > 1) this.matrix = new Matrix(machine, this.catalog);
    }
    this.assemble();
    current = this;
    if (!listening) listenToKeys(() => current?.timeline ?? null, screenKeys);
    listening = true;
    window.addEventListener("resize", this.onResize);
    this.panelsChanged();
    this.stateChanged();
  }

  destroy(): void {
    window.removeEventListener("resize", this.onResize);
    this.timeline.stop();
  }

  /** Whether these sources are those that are shown, so that what was received stays. */
  fits(sources: SourceInfo[]): boolean {
    const names = (list: SourceInfo[]) => JSON.stringify(list.map((one) => [one.id, one.kind, one.host, one.metrics.map((m) => [m.name, m.instances]), one.formulas.map((f) => [f.name, f.instances])]));
    return names(sources) === names(this.sources);
  }

  reconnected(): void {
    this.timeline.state = this.page.state;
    this.timeline.reconnected();
    this.overview.reconnected();
    this.stateChanged();
  }

  stateChanged(): void {
    this.timeline.state = this.page.state;
    this.controls.show(this.page.link, this.page.state, this.page.view);
    document.body.classList.toggle("offline", this.page.link.is !== "open");
    if (this.timeline.view.follow) this.timeline.refresh();
    this.overview.refresh(this.timeline.limits());
  }

  takeFrame(frame: Frame): void {
    if (this.timeline.take(frame) || this.beside?.take(frame)) return;
    if (this.overview.take(frame) && this.overview.span) this.spanFound(this.overview.span);
  }

  takeLabels(source: number, labels: Label[], all: boolean): void {
    if (source !== this.source.id) return;
    this.labels.take(labels, all);
    this.board.setMarks(this.labels.marks());
    this.changed();
  }

  /** A source of which the server's state tells nothing showed where it ends. */
  private spanFound(span: [number, number]): void {
    const { view } = this.page;
    const before = this.timeline.known;
    this.timeline.known = span;
    const untouched = view.to <= view.from || (before !== null && view.from === before[0] && view.to === before[1]);
    if (untouched && (before === null || span[1] > before[1])) this.timeline.showRange(...span, false);
  }

  // ---- comparing ----

  /** Draws another source beside this one, or none; `at`: a label's text, or empty for the start. */
  compare(id: number | null, at: string): void {
    const other = this.sources.find((one) => one.id === id);
    const { connection, ids } = this.page;
    this.beside = null;
    if (other) {
      const beside = new Beside(other, this.catalog, connection, ids, this.shiftTo(other, at), () => this.changed());
      this.beside = beside;
      this.board.compare((number) => beside.track(this.timeline.slice, number));
    } else this.board.compare(undefined);
    this.changed();
  }

  /** Labels by which two sources can be laid over each other. */
  sharedWith(id: number): string[] {
    return sharedLabels(this.page.labelsOf(this.source.id), this.page.labelsOf(id));
  }

  private shiftTo(other: SourceInfo, at: string): number {
    const time = (source: number) => this.page.labelsOf(source).find((label) => label.text === at)?.time_ns;
    const [own, its] = [time(this.source.id), time(other.id)];
    if (at && own !== undefined && its !== undefined) return (its - own) / 1e6;
    const begin = this.source.kind === "recording" ? this.timeline.limits()[0] : this.source.started_ns / 1e6;
    return other.started_ns / 1e6 - begin;
  }

  // ---- what people do ----

  private orders() {
    const { page } = this;
    return {
      follow: () => this.timeline.follow(),
      freeze: () => this.timeline.freeze(),
      span: (ms: number) => this.setSpan(ms),
      order: (line: string) => page.order({ type: "order", line }),
      label: () => void this.addLabel(),
      record: () => void this.record(),
      share: () => void this.share(),
      theme: () => this.changeTheme(),
      help: () => showKeys(),
      load: (file: File) => void this.load(file),
      save: () => this.saveAll(),
      drawer: (which: "tree" | "side") => this.drawer(which),
      source: (id: number) => page.choose(id),
      compare: (id: number | null, at: string) => this.compare(id, at),
      sharedWith: (id: number) => this.sharedWith(id),
    };
  }

  drawer(which: "tree" | "side"): void {
    document.body.classList.toggle(`${which}-toggled`);
    this.resized();
  }

  search(): void {
    if (getComputedStyle(this.tree.element).display === "none") this.drawer("tree");
    this.tree.search.focus();
    this.tree.search.select();
  }

  defaults(): void {
    this.page.view.panels = freshView().panels;
    this.panelsChanged();
  }

  changeTheme(): void {
    switchTheme();
    this.board.rebuild();
    this.machine?.draw();
    this.matrix?.draw();
    this.changed();
  }

  moveCursor(share: number): void {
    const [from, to] = this.timeline.range();
    this.pointAt(Math.min(to, Math.max(from, (this.cursor ?? to) + share * (to - from))));
  }

  async share(): Promise<void> {
    this.writeAddress();
    try {
      await navigator.clipboard.writeText(location.href);
      notify("The address of this view is copied. Whoever opens it needs access of their own.");
    } catch {
      notify("Copy it from the address bar: it holds this view.");
    }
  }

  async addLabel(): Promise<void> {
    const time = this.cursor ?? this.timeline.limits()[1];
    const text = await ask("Note a label", "", this.cursor === null ? "at the newest sample" : "at the cursor", "Note");
    if (text) this.page.order({ type: "label", source: this.source.id, time_ns: Math.round(time * 1e6), text });
  }

  private async record(): Promise<void> {
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
    const path = await ask("Record to a file on the server", `numa-${now}.arrows`, "A relative path begins where numa was started.", "Record");
    if (path) this.page.order({ type: "order", line: `record ${path}` });
  }

  private async load(file: File): Promise<void> {
    notify(`Sending ${file.name} …`);
    try {
      const answer = await fetch(`recordings?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      if (!answer.ok) notify(await answer.text(), true);
    } catch {
      notify("The server does not answer.", true);
    }
  }

  private setSpan(ms: number): void {
    if (this.page.view.follow) return this.timeline.follow(ms);
    const [from, to] = this.timeline.range();
    this.timeline.showRange((from + to) / 2 - ms / 2, (from + to) / 2 + ms / 2);
  }

  private slide(from: number, to: number): void {
    const [low, high] = this.timeline.limits();
    if (this.timeline.live && to >= high - (high - low) * 0.003 && to - from > 500) return this.timeline.follow(to - from);
    this.timeline.showRange(from, to, false);
  }

  private jump(ms: number): void {
    const [from, to] = this.timeline.range();
    this.timeline.showRange(ms - (to - from) / 2, ms + (to - from) / 2);
  }

  private zoomAt(factor: number, at: number): void {
    const [from, to] = this.timeline.range();
    this.timeline.zoom(factor, this.page.view.follow && at > 0.9 ? undefined : from + at * (to - from));
  }

  private save(panel: Panel, as: "csv" | "png" | "svg"): void {
    const { slice, range } = panel.current();
    if (as === "png") savePng(panel);
    else if (as === "svg") saveSvg(panel);
    else if (slice) saveCsv(fileName(panel.spec.title), panel.spec.lines, slice, ...range);
  }

  private saveAll(): void {
    const lines = this.board.list.flatMap((panel) => panel.spec.lines);
    saveCsv(`${this.source.host || "numa"}-on-screen`, lines, this.timeline.slice, ...this.timeline.range());
  }

  // ---- drawing ----

  private assemble(): void {
    const side = h("aside", { class: "sides", "aria-label": "Machine and labels" }, this.machine?.element, this.matrix?.element, this.labels.element);
    const main = h("main", { class: "main" }, this.board.element);
    const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Parts of the page" },
      ...([["charts", "Charts"], ["side", "Machine"], ["tree", "Metrics"]] as const).map(([name, text]) =>
        h("button", { type: "button", click: () => this.tab(name), "data-tab": name }, text)));
    document.body.replaceChildren(this.controls.element, this.tree.element, main, side, this.slider.element, tabs);
    this.tab("charts");
  }

  private tab(name: string): void {
    document.body.dataset.tab = name;
    document.querySelectorAll<HTMLElement>("[data-tab]").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.tab === name)));
    this.resized();
  }

  private panelsChanged(): void {
    this.board.arrange();
    this.tree.draw();
    this.resized();
    this.timeline.show([...this.board.series(), ...(this.machine?.series() ?? []), ...(this.matrix?.series() ?? [])]);
    const first = this.board.list[0]?.spec.lines.filter((line) => line.slot >= 0).slice(0, 4) ?? [];
    this.overview.choose(this.catalog.entry("fault_rate")?.series.slice(0, 1).map((s) => s.number) ?? first.map((line) => line.series.number));
    this.overview.refresh(this.timeline.limits());
    this.changed();
  }

  private resized(): void {
    const buckets = Math.round(Math.max(200, this.board.chartWidth()) / 50) * 50;
    if (buckets !== this.timeline.buckets) {
      this.timeline.buckets = buckets;
      this.timeline.refresh();
    }
    this.changed();
  }

  private pointAt(ms: number | null): void {
    this.cursor = ms;
    this.board.pointAt(ms);
    const shown = ms ?? this.timeline.range()[1];
    this.machine?.show(this.timeline.slice, shown);
    this.matrix?.show(this.timeline.slice, shown);
  }

  /** Draws with the next frame of the screen, once, however often this is called. */
  private changed(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      this.draw();
    });
  }

  private draw(): void {
    const { slice } = this.timeline;
    const range = this.timeline.range();
    this.beside?.want([...this.timeline.shown], ...range, this.timeline.buckets);
    this.board.show(slice, ...range);
    const shown = this.cursor ?? range[1];
    this.machine?.show(slice, shown);
    this.matrix?.show(slice, shown);
    this.slider.show(this.overview.slice, this.overview.series, this.timeline.limits(), range, this.labels.marks());
    this.controls.show(this.page.link, this.page.state, this.page.view);
    document.body.classList.toggle("held", !this.page.view.follow);
    if (this.addressTimer === 0) this.addressTimer = window.setTimeout(() => this.writeAddress(), ADDRESS_PAUSE_MS);
  }

  private writeAddress(): void {
    window.clearTimeout(this.addressTimer);
    this.addressTimer = 0;
    const text = writeView(this.page.view);
    if (location.hash.slice(1) !== text) history.replaceState(null, "", text ? `#${text}` : location.pathname);
  }
}

const screenKeys: KeyEvents = {
  label: () => void current?.addLabel(),
  share: () => void current?.share(),
  theme: () => current?.changeTheme(),
  help: () => showKeys(),
  defaults: () => current?.defaults(),
  search: () => current?.search(),
  drawer: (which) => current?.drawer(which),
  cursor: (share) => current?.moveCursor(share),
};
