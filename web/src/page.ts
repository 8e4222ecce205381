// The page: connects its parts and dispatches messages.

import "uplot/dist/uPlot.min.css";
import "./theme.css";
import type { ComparisonContext } from "./comparing";
import { Served, tokenIn, type Connection, type Link } from "./connection";
import { fullPage, notify, persistentNotice } from "./dialogs";
import { embeddedIn } from "./embedded";
import { ResultScreen } from "./explained/screen";
import { embeddedResults, servedResults } from "./explained/sources";
import { ProcessFeed } from "./processes/feed";
import type { Frame } from "./frame";
import { OWN_ENTRY, Screen } from "./screen";
import { applyTheme } from "./theme";
import { readView, type View } from "./view";
import type { FromServer, WireLabel, ClientLimits, OpeningInfo, Role, SourceInfo, ObservationState, ToServer } from "./wire";
import { Ids } from "./timeline";

/** A command to the server, without the number that it gets when it is sent. */
type Order = Extract<ToServer, { type: "order" | "label" | "edit_label" | "remove_label" }>;
type Without<T> = T extends { id: number } ? Omit<T, "id"> : never;
export type OrderBody = Without<Order>;

export class Page {
  readonly connection: Connection;
  readonly ids = new Ids();
  readonly view: View;
  /** Null without a server. */
  readonly processes: ProcessFeed | null;
  link: Link = { is: "connecting" };
  state: ObservationState | null = null;
  role: Role = "viewer";
  limits: ClientLimits | null = null;
  private screen: Screen | null = null;
  /** Results of `numa explain` need no server once they are shown. */
  private results: ResultScreen | null = null;
  private sources: SourceInfo[] = [];
  /** The recordings that the server is opening. */
  private opening: OpeningInfo[] = [];
  /** The sources of the server while the one to show is not among them. */
  private arriving: { sources: SourceInfo[]; sameRole: boolean } | null = null;
  private readonly labels = new Map<number, Map<number, WireLabel>>();
  private instance = "";
  private expected: number | null = null;
  private readonly waiting = new Set<number>();

  constructor() {
    this.view = readView(location.hash);
    this.view.theme = applyTheme(this.view.theme);
    this.connection = embeddedIn(document, this) ?? new Served(this);
    this.processes = this.connection.served ? new ProcessFeed(this.connection, this.ids) : null;
  }

  start(): void {
    const token = tokenIn(location.hash);
    // Remove the token from the address, so that it is not shared with it.
    history.replaceState(OWN_ENTRY, "", token === null ? location.href : location.pathname);
    document.body.replaceChildren(this.connection.served ? fullPage("Connecting", location.host) : fullPage("Opening", "All data is in this file."));
    void this.connection.start(token);
    window.addEventListener("popstate", () => {
      if (history.state === OWN_ENTRY) this.returnTo(readView(location.hash));
    });
    // Pasting an address that differs only in its fragment does not reload the page.
    window.addEventListener("hashchange", () => {
      if (history.state === OWN_ENTRY) return;
      const pasted = tokenIn(location.hash);
      if (pasted === null) return location.reload();
      history.replaceState(OWN_ENTRY, "", location.pathname);
      void this.connection.start(pasted);
    });
  }

  message(message: FromServer): void {
    switch (message.type) {
      case "hello":
        this.limits = message.limits;
        this.opening = message.opening;
        return this.greeted(message.instance, message.role, message.sources, message.state);
      case "state":
        this.state = message;
        return this.screen?.stateChanged();
      case "labels":
        return this.keepLabels(message.source, message.labels, message.all);
      case "findings":
        this.screen?.findings.take(message);
        return;
      case "compared":
        this.screen?.conclusion.take(message);
        return;
      case "reply":
        if (this.screen?.answered(message)) return;
        if (!message.ok) notify(message.text, true);
        else if (this.waiting.has(message.id) && message.text && message.text !== "done") notify(message.text);
        this.waiting.delete(message.id);
        return;
      case "processes":
        return this.processes?.take(message.list);
      case "notice":
        return notify(message.text);
      case "source":
        return this.opened(message.source);
      case "opening":
        this.opening = message.opening;
        return this.arriving ? this.settle(this.arriving.sources, this.arriving.sameRole) : undefined;
      case "bye":
        return notify(message.reason, true);
    }
  }

  frame(frame: Frame): void {
    this.screen?.takeFrame(frame);
  }

  linkChanged(link: Link): void {
    this.link = link;
    if (this.results) return;
    if (this.screen) {
      persistentNotice(link.is === "refused" || link.is === "ended" ? link.why : null);
      return this.screen.stateChanged();
    }
    if (link.is === "refused" || link.is === "ended") {
      document.body.replaceChildren(this.connection.served
        ? fullPage("Access denied", link.why, { name: "Retry", run: () => this.connection.retry() })
        : fullPage("Nothing to show", link.why));
    } else if (link.is === "lost") {
      document.body.replaceChildren(fullPage("No response", link.why ?? `${location.host} is not responding. The page retries automatically.`, { name: "Retry now", run: () => this.connection.retry() }));
    }
  }

  /** Sends a command and shows the answer. */
  order(body: OrderBody): void {
    const id = this.ids.next();
    this.waiting.add(id);
    if (!this.connection.send({ ...body, id } as ToServer)) notify("Not connected: the command was not sent.", true);
  }

  private greeted(instance: string, role: Role, sources: SourceInfo[], state: ObservationState): void {
    this.state = state;
    const sameRole = this.role === role;
    if (this.instance && this.instance !== instance) notify("The server restarted. Data received before is kept.");
    this.instance = instance;
    this.role = role;
    this.settle(sources, sameRole);
  }

  /** Shows the chosen source, or what is being opened as long as it may become that source. */
  private settle(sources: SourceInfo[], sameRole: boolean): void {
    const chosen = sources.find((one) => one.id === this.view.source);
    const shown = chosen ?? (this.opening.length > 0 ? undefined : sources[0]);
    // A server that just started has no source yet; it is announced later.
    this.arriving = shown ? null : { sources, sameRole };
    if (!shown) return this.opening.length > 0 ? this.showOpening() : void this.showResults();
    this.processes?.reconnected();
    if (sameRole && this.screen?.fits(sources)) {
      // More of them may have been read meanwhile.
      for (const one of sources) if (one.kind === "recording") this.renew(one);
      return this.screen.reconnected();
    }
    this.sources = sources;
    this.view.source = shown.id;
    this.open(shown);
  }

  private showOpening(): void {
    if (this.screen) return;
    const text = this.opening.map((one) => `${one.name}: ${one.percent} %`).join(", ");
    document.body.replaceChildren(fullPage("Opening", text));
  }

  /** Shows the results of a server without sources, unless the page has something to show. */
  private async showResults(): Promise<void> {
    if (this.results || this.screen) return;
    const nothing = (why: string) => document.body.replaceChildren(fullPage("Nothing to show", why));
    try {
      const results = await servedResults();
      // A source may have come meanwhile.
      if (!this.arriving) return;
      if (results.length === 0) nothing("The server has no data source.");
      else this.results = new ResultScreen(results, true);
    } catch (error) {
      if (this.arriving) nothing(error instanceof Error ? error.message : String(error));
    }
  }

  /** Shows another source. */
  choose(id: number): void {
    const { view } = this;
    const source = this.sources.find((one) => one.id === id);
    if (!source || (this.screen !== null && view.source === id)) return;
    // Swap the two sources of a comparison.
    if (view.beside === id) view.beside = view.source;
    Object.assign(view, { source: id, follow: source.kind === "live", from: 0, to: 0 });
    this.open(source);
  }

  /** Shows the view of an entry of the browser's history. */
  private returnTo(next: View): void {
    const { view, screen } = this;
    next.theme = view.theme;
    if (!screen || screen.returnTo(next)) return;
    const shown = this.sources.find((one) => one.id === next.source);
    if (!shown) return;
    Object.assign(view, next);
    this.open(shown);
  }

  /** Shows an uploaded recording as soon as the server announces it. */
  expect(id: number): void {
    this.expected = id;
    this.choose(id);
  }

  private opened(source: SourceInfo): void {
    if (this.arriving) return this.settle([...this.arriving.sources.filter((one) => one.id !== source.id), source], this.arriving.sameRole);
    if (this.renew(source)) {
      this.screen?.sourceGrew(source.id);
    } else {
      this.sources.push(source);
      this.screen?.sourcesChanged();
    }
    if (source.read_percent === null) notify(`Opened ${source.name}`);
    if (source.id === this.expected) this.choose(source.id);
  }

  /** Takes over what changed of a known source; false if it is not known. The parts of the screen have the object, which stays. */
  private renew(source: SourceInfo): boolean {
    const known = this.sources.find((one) => one.id === source.id);
    if (known) Object.assign(known, source);
    return known !== undefined;
  }

  /** What a comparison needs. */
  surroundings(): ComparisonContext {
    const { sources, view, connection, ids } = this;
    return { sources, view, connection, ids, labelsOf: (source) => this.labelsOf(source) };
  }

  /** The labels of a source that were received so far. */
  labelsOf(source: number): WireLabel[] {
    return [...(this.labels.get(source)?.values() ?? [])];
  }

  private open(source: SourceInfo): void {
    this.screen?.destroy();
    this.screen = new Screen(this, this.sources, source);
    this.screen.labelsChanged(source.id);
  }

  private keepLabels(source: number, labels: WireLabel[], all: boolean): void {
    const kept = (all ? undefined : this.labels.get(source)) ?? new Map<number, WireLabel>();
    for (const label of labels) kept.set(label.id, label);
    this.labels.set(source, kept);
    this.screen?.labelsChanged(source);
  }
}

declare global {
  interface Window {
    numakit?: Page;
  }
}

applyTheme();
const results = embeddedResults(document);
if (results) {
  results.then(
    (shown) => new ResultScreen(shown, false),
    (error: unknown) => document.body.replaceChildren(fullPage("Nothing to show", `This file cannot be read: ${error instanceof Error ? error.message : String(error)}`)),
  );
} else {
  const page = new Page();
  window.numakit = page;
  page.start();
}
