// What a comparison says at a glance: which line is which source, and what the server found to differ, as `numa show A B` says it.

import type { Connection } from "../connection";
import { h } from "../elements";
import { Asking } from "../findings/asking";
import { NS_PER_MS } from "../store";
import type { Ids } from "../timeline";
import type { View } from "../view";
import type { FromServer } from "../wire";
import type { ComparedInfo, ComparedRange, DifferenceInfo } from "../wire-compared";

/** Rows that are shown before somebody asks for all. */
const LISTED = 5;
const HEAD = ["what", "A", "B", "change", "noise", "B is"];

/** Two sources as they are on screen: A, the drawn one, and B. */
export interface Compared {
  /** Their names. */
  first: string;
  second: string;
  /** Their numbers. */
  source: number;
  beside: number;
  range: [number, number];
  /** How many ms the times of B are later. */
  shift: number;
  /** Why nothing can be said yet; null if it can. */
  waits: string | null;
}

export interface ConclusionStage {
  view: View;
  connection: Connection;
  ids: Ids;
  /** Shows the panel of a series, if the source has it. */
  reveal(series: string): void;
  /** Whether the source has a series. */
  has(series: string): boolean;
  /** The view changed. */
  changed(): void;
}

export class Conclusion {
  readonly element: HTMLElement;
  private readonly names = h("p", { class: "which" });
  private readonly says = h("p", { class: "judgement", role: "status" });
  private readonly about = h("p", { class: "quiet" });
  private readonly table = h("table", { class: "values" });
  private readonly rest = h("p", { class: "quiet" });
  private readonly more = h("button", { type: "button", class: "link", hidden: true, click: () => this.expand() });
  private readonly columns = h("button", { type: "button", class: "button", click: () => this.turn() }, "Two columns");
  private readonly asking = new Asking((from, to) => this.request(from, to));
  private compared: Compared | null = null;
  private found: ComparedInfo | null = null;
  /** What was asked about. */
  private key = "";
  private all = false;

  constructor(private readonly stage: ConclusionStage) {
    this.element = h("section", { class: "conclusion", "aria-label": "Comparison", hidden: true },
      h("header", {}, this.names, this.columns), this.says, this.about, h("div", { class: "table-box" }, this.table, this.more), this.rest);
  }

  /** Shows what differs between these; null: there is no second source. */
  show(compared: Compared | null): void {
    this.element.hidden = compared === null;
    this.compared = compared;
    if (!compared) return this.stop();
    this.name(compared);
    const key = `${compared.source} ${compared.beside} ${compared.shift} ${compared.waits}`;
    if (key !== this.key) {
      this.key = key;
      this.found = null;
      this.say(compared.waits ?? "Comparing …");
      this.asking.stop();
      if (compared.waits === null) this.asking.restart();
    }
    if (compared.waits === null) this.asking.want(...compared.range, this.stage.view.follow);
  }

  /** Takes an answer, also that a request was refused. */
  take(message: Extract<FromServer, { type: "compared" | "reply" }>): boolean {
    if (!this.asking.ended(message.id)) return false;
    if (message.type === "compared") this.fill((this.found = message.compared));
    else this.say(message.text);
    return true;
  }

  reconnected(): void {
    this.asking.restart();
  }

  stop(): void {
    this.asking.stop();
    this.key = "";
  }

  private request(from: number, to: number): number | null {
    const { compared, stage } = this;
    if (!compared) return null;
    const range = (source: number, later: number): ComparedRange =>
      ({ source, from_ns: Math.max(0, Math.round((from + later) * NS_PER_MS)), to_ns: Math.max(0, Math.round((to + later) * NS_PER_MS)) });
    const id = stage.ids.next();
    return stage.connection.send({ type: "compare", id, first: range(compared.source, 0), second: range(compared.beside, compared.shift) }) ? id : null;
  }

  private name({ first, second }: Compared): void {
    const { columns } = this.stage.view;
    this.columns.setAttribute("aria-pressed", String(columns));
    const key = (kind: string, name: string) => h("span", { class: `which-key ${columns ? "" : kind}` }, name);
    const names = [`A${columns ? ", left" : ""}: ${first}`, `B${columns ? ", right" : ""}: ${second}`];
    if ([...this.names.children].map((one) => one.textContent).join() === names.join() && this.names.dataset.columns === String(columns)) return;
    this.names.dataset.columns = String(columns);
    this.names.replaceChildren(key("solid", names[0] ?? ""), key("dashed", names[1] ?? ""));
  }

  private say(text: string): void {
    this.says.textContent = text;
    this.about.replaceChildren();
    this.table.replaceChildren();
    this.rest.textContent = "";
    this.more.hidden = true;
  }

  private fill(found: ComparedInfo): void {
    this.says.textContent = found.verdict;
    const time = found.whole ? "All of both recordings" : "The time on screen";
    this.about.replaceChildren(...[`Change: ${found.change}`, `Do: ${found.action}`, ...found.cautions.map((one) => `Caution: ${one}`), `${time}: ${found.compared}`].map((text) => h("span", {}, text)));
    this.about.title = `A: ${found.first}\nB: ${found.second}`;
    const rows = [...part("program", found.program), ...part("machine", found.machine)];
    const shown = this.all ? rows : rows.slice(0, LISTED);
    const head = h("tr", {}, ...HEAD.map((text) => h("th", { scope: "col" }, text)));
    this.table.replaceChildren(...(rows.length > 0 ? [h("thead", {}, head), h("tbody", {}, ...shown.map(([of, one]) => this.row(of, one)))] : []));
    this.more.hidden = rows.length <= LISTED;
    this.more.setAttribute("aria-expanded", String(this.all));
    this.more.textContent = this.all ? "fewer" : `all ${rows.length}`;
    const findings = [["gone in B", found.gone], ["new in B", found.new], ["of both", found.kept]] as const;
    this.rest.textContent = findings.filter(([, all]) => all.length > 0).map(([title, all]) => `Findings ${title}: ${all.join("; ")}.`).join(" ");
  }

  private row(of: string, one: DifferenceInfo): HTMLElement {
    const title = [one.series, ...one.alike].join("\n");
    const what = this.stage.has(one.series)
      ? h("button", { type: "button", class: "link", title: `${title}\nClick: show its panel`, click: () => this.stage.reveal(one.series) }, one.what)
      : h("span", { title }, one.what);
    return h("tr", { class: one.verdict, "data-of": of }, h("th", { scope: "row" }, what), ...[one.before, one.after, one.change, one.noise, one.verdict].map((text) => h("td", {}, text)));
  }

  private expand(): void {
    this.all = !this.all;
    if (this.found) this.fill(this.found);
  }

  private turn(): void {
    const { view, changed } = this.stage;
    view.columns = !view.columns;
    changed();
  }
}

function part(of: string, all: DifferenceInfo[]): [string, DifferenceInfo][] {
  return all.map((one) => [of, one]);
}
