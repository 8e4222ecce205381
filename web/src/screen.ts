// Everything that shows one source: top bar, metric list, panels, side views, slider.

import { Controls } from "./controls";
import { ask, notify, showKeys } from "./dialogs";
import { download, fileName, savePng, saveSvg } from "./download";
import { guideLink, h } from "./elements";
import { Files } from "./files";
import { panelId } from "./findings/evidence";
import { Findings } from "./findings/findings";
import type { Frame } from "./frame";
import { listenToKeys, type KeyEvents } from "./keys";
import { Board } from "./panels/board";
import { Lane } from "./panels/lane";
import { RESERVED } from "./panels/events";
import type { Mark } from "./panels/marks";
import type { Panel } from "./panels/panel";
import type { Page } from "./page";
import { Comparing } from "./comparing";
import { Conclusion, type Compared } from "./compare/conclusion";
import { copyPng, drawingsOn, findingsOn, pagePng, type PagePicture } from "./picture";
import { Presence } from "./presence";
import { Catalog } from "./series";
import { SideColumn } from "./side-views/column";
import { Slider } from "./slider";
import { readMachine } from "./topology";
import { Timeline } from "./timeline";
import { followSystem, switchTheme } from "./theme";
import { Tree } from "./tree";
import { timesOf, useZone } from "./units";
import { Overview } from "./overview";
import { freshView, writeRange, writeView, type View } from "./view";
import type { FromServer, WireLabel, SourceInfo } from "./wire";

const WATCH = 1;
const ADDRESS_PAUSE_MS = 300;
/** Ranges that follow each other sooner are one entry in the history of the browser. */
const ENTRY_PAUSE_MS = 1000;
/** Marks entries of the page: the address of another one was typed or pasted. */
export const OWN_ENTRY = "numakit";
/** Half the width of a finger. */
const FINGER_PIXELS = 12;

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
  private readonly sides: SideColumn;
  private readonly comparing: Comparing;
  readonly conclusion: Conclusion;
  private readonly files: Files;
  private readonly lane: Lane;
  readonly findings: Findings;
  private cursor: number | null = null;
  /** The labels that users made, newest first. */
  private labels: WireLabel[] = [];
  private marks: Mark[] = [];
  private dirty = false;
  private addressTimer = 0;
  /** The range in the address; null: not written yet. */
  private range: string | null = null;
  private movedAt = -Infinity;
  private readonly onResize = () => this.resized();
  private readonly unfollow = followSystem(() => this.themeChanged());

  /** `source`: the one of `sources` to show. */
  constructor(
    private readonly page: Page,
    private readonly sources: SourceInfo[],
    private readonly source: SourceInfo,
  ) {
    const { view, connection, ids } = page;
    useZone(source.utc_offset_minutes);
    this.catalog = new Catalog(source);
    this.timeline = new Timeline(source, view, connection, ids, WATCH, () => this.changed());
    this.timeline.state = page.state;
    if (page.limits) this.timeline.most = page.limits;
    this.files = new Files(page, source, this.timeline);
    if (source.kind === "recording" && view.to <= view.from) this.showAll();
    this.overview = new Overview(source, connection, ids, () => requestAnimationFrame(() => this.drawSlider()));
    this.comparing = new Comparing(page.surroundings(), this.catalog, this.timeline, () => this.changed());
    this.conclusion = new Conclusion({ view, connection, ids, reveal: (series) => this.reveal(series), has: (series) => panelId(series, this.catalog, []) !== null, changed: () => this.changed() });
    this.controls = new Controls(sources, source, page.role, { compare: this.comparing.element, save: this.saveAll(), guide: connection.served ? guideLink() : null }, this.orders());
    this.board = new Board(this.catalog, view, {
      cursor: (ms) => this.pointAt(ms),
      select: (from, to) => this.timeline.showRange(from, to),
      back: () => this.timeline.undo(),
      menu: (panel) => this.saveMenu(panel),
      kept: () => this.changed(),
      ownName: () => this.nameOf(source),
      otherName: () => this.comparing.name,
    }, { zoom: (factor, at) => this.zoomAt(factor, at), pan: (share) => this.timeline.pan(share), tap: (at, pixels) => this.tapped(at, pixels) }, new Presence(this.catalog, () => page.state, () => this.timeline.loading), () => this.panelsChanged(), () => this.defaults());
    this.tree = new Tree(this.catalog, {
      isOpen: (id) => this.board.has(id),
      choose: (id, join) => {
        if (join) this.board.join(id);
        else if (this.board.has(id)) this.board.remove(id);
        else this.board.add(id);
      },
      mayOrder: page.role === "controller" && source.kind === "live",
      turn: (sensor, on) => page.order({ type: "order", line: `${on ? "enable" : "disable"} ${sensor}` }),
    });
    this.tree.keep(view, () => this.changed());
    this.slider = new Slider({ show: (from, to) => this.slide(from, to), zoom: (factor, around) => this.timeline.zoom(factor, view.follow ? undefined : around) });
    this.sides = this.sideColumn();
    this.lane = new Lane((from, to) => this.timeline.showRange(from, to));
    this.findings = new Findings({ view, connection: page.connection, ids: page.ids, catalog: this.catalog, timeline: this.timeline, panels: () => this.board.list, arrange: () => this.panelsChanged() });
    this.assemble();
    if (page.role === "controller") this.files.listen(document.body);
    current = this;
    if (!listening) listenToKeys(() => current?.timeline ?? null, screenKeys);
    listening = true;
    window.addEventListener("resize", this.onResize);
    this.panelsChanged();
    this.stateChanged();
  }

  destroy(): void {
    window.removeEventListener("resize", this.onResize);
    window.clearTimeout(this.addressTimer);
    this.unfollow();
    this.timeline.stop();
    this.findings.stop();
    this.conclusion.stop();
  }

  /** Takes a reply that belongs to a request of a part of the screen: it was refused. */
  answered(reply: Extract<FromServer, { type: "reply" }>): boolean {
    if (!reply.ok) this.timeline.refused(reply.id);
    return this.findings.take(reply) || this.conclusion.take(reply);
  }

  /** Whether these sources equal the current ones, so that received data can be kept. */
  fits(sources: SourceInfo[]): boolean {
    const names = (list: SourceInfo[]) => JSON.stringify(list.map((one) => [one.id, one.kind, one.host, one.metrics.map((m) => [m.name, m.instances]), one.formulas.map((f) => [f.name, f.instances])]));
    return names(sources) === names(this.sources);
  }

  reconnected(): void {
    this.timeline.state = this.page.state;
    this.timeline.reconnected();
    this.comparing.reconnected();
    this.overview.reconnected();
    this.findings.reconnected();
    this.conclusion.reconnected();
    this.stateChanged();
  }

  stateChanged(): void {
    this.timeline.state = this.page.state;
    this.controls.show(this.page.link, this.page.state, this.page.view);
    document.body.classList.toggle("offline", this.page.link.is !== "open" && this.page.link.is !== "standalone");
    if (this.source.kind === "live") this.tree.sensors(this.page.state?.sensors ?? []);
    if (this.timeline.view.follow) this.timeline.refresh();
    this.overview.refresh(this.timeline.limits());
  }

  /** More of a source was read: what is shown of it is requested again. */
  sourceGrew(source: number): void {
    if (source === this.source.id || source === this.page.view.beside) this.reconnected();
  }

  /** A source was added. */
  sourcesChanged(): void {
    this.controls.sourcesChanged();
    this.comparing.sourcesChanged();
  }

  takeFrame(frame: Frame): void {
    if (this.timeline.take(frame) || this.comparing.take(frame)) return;
    this.overview.take(frame);
  }

  labelsChanged(source: number): void {
    this.comparing.labelsChanged();
    if (source !== this.source.id) return;
    const all = this.page.labelsOf(source);
    this.labels = all.filter((label) => !label.text.startsWith(RESERVED)).sort((a, b) => b.time_ns - a.time_ns);
    this.lane.take(all);
    this.marks = this.labels.map((label) => ({ time: label.time_ns / 1e6, text: label.text })).reverse();
    this.board.setMarks(this.marks);
    this.changed();
  }

  private sideColumn(): SideColumn {
    const { page, source, catalog } = this;
    return new SideColumn({
      catalog,
      machine: readMachine(source.topology),
      view: page.view,
      mayEdit: page.role === "controller",
      labels: () => this.labels,
      changed: () => this.panelsChanged(),
      processes: page.processes,
      jump: (ms) => this.jump(ms),
      openPanel: (id) => this.board.add(id),
      showNode: (node) => this.board.showNode(node),
      addLabel: () => void this.addLabel(),
      editLabel: (label, text) => page.order({ type: "edit_label", source: source.id, label: label.id, text }),
      removeLabel: (label) => page.order({ type: "remove_label", source: source.id, label: label.id }),
    });
  }

  private showAll(): void {
    const { view } = this.page;
    [view.from, view.to] = this.timeline.limits();
    view.spanMs = view.to - view.from;
  }

  private orders() {
    const { page } = this;
    return {
      follow: () => this.timeline.follow(),
      freeze: () => this.timeline.freeze(),
      span: (ms: number) => this.setSpan(ms),
      order: (line: string) => page.order({ type: "order", line }),
      label: () => void this.addLabel(),
      record: () => void this.files.record(),
      share: () => void this.share(),
      theme: () => this.changeTheme(),
      help: () => showKeys(),
      load: (file: File) => void this.files.load(file),
      drawer: (which: "tree" | "side") => this.drawer(which),
      source: (id: number) => page.choose(id),
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
    Object.assign(this.page.view, { panels: freshView().panels, sizes: {} });
    this.panelsChanged();
  }

  changeTheme(): void {
    this.page.view.theme = switchTheme();
    this.themeChanged();
  }

  /** Draws again what takes its colours by script. */
  private themeChanged(): void {
    this.board.rebuild();
    this.slider.repaint();
    this.sides.rebuild();
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
      notify("Link copied. It has no access key: others need their own to open it.");
    } catch {
      notify("Cannot copy the link: copy it from the address bar.");
    }
  }

  async addLabel(): Promise<void> {
    if (this.page.role !== "controller") return;
    const time = this.cursor ?? this.timeline.limits()[1];
    const text = await ask("Add a label", "", this.cursor === null ? "at the newest sample" : "at the cursor", "Add");
    if (text) this.page.order({ type: "label", source: this.source.id, time_ns: Math.round(time * 1e6), text });
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

  /** Sets the cursor; a tap at the cursor removes it. */
  private tapped(at: number, pixels: number): void {
    const [from, to] = this.timeline.range();
    const ms = from + at * (to - from);
    const near = this.cursor !== null && Math.abs(ms - this.cursor) < (FINGER_PIXELS / pixels) * (to - from);
    this.pointAt(near ? null : ms);
  }

  private saveMenu(panel: Panel): HTMLElement {
    return this.files.menu("Save panel", panel.spec.title, () => panel.spec.lines, [
      ["Image, PNG", () => void savePng(panel, this.about()).catch((error: unknown) => notify(`Not saved: ${String(error)}`, true))],
      ["Image, SVG", () => saveSvg(panel, this.about())],
    ]);
  }

  /** Where and when the visible samples were taken, for pictures. */
  private about(): string {
    const { source, comparing } = this;
    const [from, to] = this.timeline.range();
    const where = [source.host, source.kind === "recording" ? source.name : ""].filter(Boolean);
    return [...where, timesOf(from, to), comparing.name ? `dashed: ${comparing.name}` : ""].filter(Boolean).join(" · ");
  }

  private nameOf(source: SourceInfo): string {
    return source.kind === "live" ? `${source.host}, live` : source.name;
  }

  private saveAll(): HTMLElement {
    return this.files.menu("Save visible data as CSV", `${this.source.host || "numa"}-visible`, () => this.board.list.flatMap((panel) => panel.spec.lines), [
      ["Picture of the page, PNG", () => void this.picture((picture) => pagePng(picture).then((png) => download(`${fileName(this.nameOf(this.source))}.png`, png)))],
      ["Picture of the page, to the clipboard", () => void this.picture((picture) => copyPng(picture).then(() => notify("Picture copied.")))],
    ]);
  }

  private async picture(use: (picture: PagePicture) => Promise<void>): Promise<void> {
    const { command, host, name } = this.source;
    try {
      await use({ head: [command ? `${host || name}: ${command}` : host || name, this.about(), ...findingsOn(document)], panels: this.board.list, drawings: drawingsOn(document) });
    } catch (error) {
      notify(`No picture: ${error instanceof Error ? error.message : String(error)}`, true);
    }
  }

  private assemble(): void {
    const main = h("main", { class: "main" }, this.board.chip.element, this.conclusion.element, this.board.element);
    const tabs = h("nav", { class: "tabs", "aria-label": "Page sections" },
      ...([["charts", "Charts"], ["side", "Machine"], ["tree", "Metrics"]] as const).map(([name, text]) =>
        h("button", { type: "button", click: () => this.tab(name), "data-tab": name }, text)));
    document.body.replaceChildren(this.controls.element, this.findings.strip.element, this.tree.element, this.lane.element, main, this.sides.element, this.slider.element, tabs);
    this.tab("charts");
  }

  private tab(name: string): void {
    document.body.dataset.tab = name;
    document.querySelectorAll<HTMLElement>(".tabs [data-tab]").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.tab === name)));
    this.resized();
  }

  private panelsChanged(): void {
    this.board.arrange();
    this.tree.mark();
    this.resized();
    this.timeline.show([...this.board.series(), ...this.sides.series()]);
    const first = this.board.list[0]?.spec.lines.filter((line) => line.slot >= 0).slice(0, 4) ?? [];
    this.overview.choose(this.catalog.entry("fault_rate")?.series.slice(0, 1).map((s) => s.number) ?? first.map((line) => line.series.number));
    this.overview.refresh(this.timeline.limits());
    this.changed();
  }

  private resized(): void {
    this.board.fit();
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
    this.showSides();
  }

  private showSides(): void {
    const [from, to] = this.timeline.range();
    this.sides.show({ slice: this.timeline.slice, from, to, at: this.cursor ?? to });
  }

  /** Draws in the next animation frame, once for any number of calls. */
  private changed(): void {
    if (this.dirty) return;
    this.dirty = true;
    requestAnimationFrame(() => {
      this.dirty = false;
      const begin = performance.now();
      this.draw();
      // The time that the browser needs for layout and painting counts too.
      window.setTimeout(() => (this.timeline.cost = performance.now() - begin));
    });
  }

  private draw(): void {
    const { slice } = this.timeline;
    const range = this.timeline.range();
    this.comparing.want();
    this.board.compare(this.comparing.other, this.comparing.origin);
    this.conclusion.show(this.compared(range));
    this.board.show(slice, ...range);
    this.lane.show(...range);
    this.findings.changed();
    this.showSides();
    this.drawSlider();
    this.controls.show(this.page.link, this.page.state, this.page.view);
    document.body.classList.toggle("held", !this.page.view.follow);
    if (this.addressTimer === 0) this.addressTimer = window.setTimeout(() => this.writeAddress(), ADDRESS_PAUSE_MS);
  }

  private compared(range: [number, number]): Compared | null {
    const { comparing, source } = this;
    const { second } = comparing;
    // Nothing is concluded from a part.
    const isWhole = source.read_percent === null && comparing.isWhole;
    return second && { first: this.nameOf(source), second: comparing.name, source: source.id, beside: second.id, range, shift: second.shift, waits: isWhole ? null : "Compared when all of both was read." };
  }

  /** Shows the panel of a series; one that is not open is opened. */
  private reveal(series: string): void {
    const id = panelId(series, this.catalog, this.board.list.map(({ spec }) => spec));
    if (id === null) return;
    if (!this.board.list.some(({ spec }) => spec.id === id)) this.board.add(id);
    this.board.reveal(id);
  }

  private drawSlider(): void {
    this.slider.show(this.overview.slice, this.overview.series, this.timeline.limits(), this.timeline.range(), this.marks);
  }

  /** Keeps the view in the address. Another range is an entry of its own in the history of the browser, so that its Back undoes it. */
  private writeAddress(): void {
    window.clearTimeout(this.addressTimer);
    this.addressTimer = 0;
    const { view } = this.page;
    const [text, range, now] = [writeView(view), writeRange(view), performance.now()];
    const isMoved = this.range !== null && range !== this.range;
    // One movement of the wheel or of the slider is one entry.
    const isOwn = isMoved && now - this.movedAt > ENTRY_PAUSE_MS;
    if (isMoved) this.movedAt = now;
    this.range = range;
    if (location.hash.slice(1) === text) return;
    history[isOwn ? "pushState" : "replaceState"](OWN_ENTRY, "", text ? `#${text}` : location.pathname);
  }

  /** Shows the view of an entry of the history; false if it differs in more than the range. */
  returnTo(next: View): boolean {
    const { view } = this.page;
    const { follow, spanMs, from, to } = next;
    if (writeView({ ...view, follow, spanMs, from, to }) !== writeView(next)) return false;
    if (follow) this.timeline.follow(spanMs);
    else this.timeline.showRange(from, to, false);
    this.range = writeRange(view);
    return true;
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
