// The page of a result of `numa explain`.

import "./screen.css";
import { guideLink, h, iconButton, pageIcon } from "../elements";
import { switchTheme } from "../theme";
import { annotatedView } from "./annotated";
import { codeView } from "./code";
import { detail } from "./detail";
import { flameView } from "./flame";
import { linesView } from "./lines";
import { objectTable } from "./objects";
import { projectedView } from "./projected";
import { notesOf, pairsOf, squareOf, withoutNodes, type ExplainedObject, type NamedResult, type Result } from "./result";
import { squareView } from "./square";
import { timeBar } from "./time-bar";
import { waitsView } from "./waits";

/** Shows results in place of all else: one at a time. */
export class ResultScreen {
  private readonly main = h("main", { class: "result" });
  private readonly about = h("span", { class: "about" });
  private shown = 0;
  /** The object that is selected. */
  private object: ExplainedObject | null = null;
  private search: () => void = () => undefined;
  private readonly aside = h("aside", { class: "card", "aria-label": "Selected object", "aria-live": "polite" });

  /** `served`: whether a server has the guide beside the results. */
  constructor(private readonly results: NamedResult[], private readonly served: boolean) {
    document.body.className = "result-page";
    document.body.replaceChildren(this.top(), this.main);
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.draw();
  }

  private top(): HTMLElement {
    const choice = h("select", { "aria-label": "Result", change: () => this.choose(choice.selectedIndex) }, ...this.results.map(({ name }) => h("option", {}, name)));
    return h("header", { class: "top" },
      h("div", { class: "brand" }, h("img", { src: pageIcon(), alt: "", width: 18, height: 18 }), h("strong", {}, "numa explain"), this.about),
      this.results.length > 1 ? choice : null,
      h("div", { class: "buttons" }, iconButton("theme", "Switch light/dark theme (d)", () => this.theme()), this.served ? guideLink() : null));
  }

  private choose(at: number): void {
    this.shown = at;
    this.object = null;
    this.draw();
  }

  /** Colours of matrices depend on the theme, so they are drawn again. */
  private theme(): void {
    switchTheme();
    if (this.object) this.select(this.result, this.object);
    this.main.querySelector(".whole")?.replaceWith(whole(this.result));
    this.main.querySelector(".projected")?.replaceWith(projectedView(this.result) ?? "");
  }

  private get result(): Result {
    return (this.results[this.shown] as NamedResult).result;
  }

  private draw(): void {
    const named = this.results[this.shown];
    if (!named) return;
    const { result } = named;
    document.title = `${result.program}: numakit`;
    this.about.textContent = `${result.program} (${named.name})`;
    this.about.title = this.about.textContent;
    this.aside.replaceChildren(h("p", { class: "why" }, "No object was sampled."));
    const table = objectTable(result, (object) => this.select(result, object));
    this.search = table.search;
    this.main.replaceChildren(
      h("div", { class: "row first" }, timeBar(result, (object) => table.show(object)), whole(result)),
      h("div", { class: "row split" }, table.element, this.aside),
      ...sections(result));
  }

  private select(result: Result, object: ExplainedObject): void {
    this.object = object;
    this.aside.replaceChildren(detail(result, object));
    this.aside.scrollTop = 0;
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target instanceof HTMLInputElement) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "d") this.theme();
    if (event.key !== "/") return;
    event.preventDefault();
    this.search();
  }
}

/** What comes below the objects. */
function sections(result: Result): HTMLElement[] {
  const all = [projectedView(result), codeView(result), annotatedView(result), waitsView(result), flameView(result), linesView(result), notesView(result)];
  return all.filter((section) => section !== null);
}

/** The nodes of the whole program. */
function whole(result: Result): HTMLElement {
  const square = squareOf(pairsOf(result));
  const what = result.regime === "precise" ? "the time at memory outside of the caches" : "the pages in use";
  return h("section", { class: "card whole", "aria-label": "Nodes of the whole program" }, h("h2", {}, "Nodes"),
    square ? squareView(square, what) : h("p", { class: "why" }, withoutNodes(result)));
}

function notesView(result: Result): HTMLElement {
  return h("section", { class: "card", "aria-label": "Samples" }, h("h2", {}, "How samples were taken, and what is missing"), h("ul", { class: "notes" }, ...notesOf(result).map((note) => h("li", {}, note))));
}
