// Files: recordings on the server, uploaded recordings, and saved values.

import { ask, decide, notify } from "./dialogs";
import { download, extent, fileName, saveCsv, type Extent } from "./download";
import { h, ICONS, icon } from "./elements";
import type { Page } from "./page";
import type { Line } from "./panels/lines";
import type { Timeline } from "./timeline";
import { format } from "./units";
import type { SourceInfo } from "./wire";

export class Files {
  constructor(
    private readonly page: Page,
    private readonly source: SourceInfo,
    private readonly timeline: Timeline,
  ) {}

  /** Starts a recording; if one is running, asks what to do. */
  async record(): Promise<void> {
    const running = this.page.state?.recording;
    if (running) {
      const what = await decide(`Recording to ${running.path}`, `${format(running.bytes, "bytes")} so far. Sampling continues in any case.`,
        [["on", "Keep recording"], ["other", "Change file …"], ["stop", "Stop recording"]]);
      if (what === "stop") this.page.order({ type: "order", line: "close" });
      if (what !== "other") return;
    }
    const now = new Date().toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
    const path = await ask("Record to a file on the server", `numa-${now}.arrows`, "Relative to the recordings folder: --recordings DIR, or the folder where numa was started.", "Record");
    if (path) this.page.order({ type: "order", line: `record ${path}` });
  }

  /** Uploads a recording and shows it. */
  async load(file: File): Promise<void> {
    const limit = this.page.limits?.recording_bytes ?? Infinity;
    if (file.size > limit) return notify(`${file.name} is ${format(file.size, "bytes")}; the limit is ${format(limit, "bytes")}. Use: numa show --page FILE`, true);
    notify(`Uploading ${file.name} …`);
    try {
      const answer = await fetch(`recordings?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
      const text = await answer.text();
      if (!answer.ok) return notify(`${file.name}: ${text}`, true);
      const { source } = JSON.parse(text) as { source: number };
      this.page.expect(source);
    } catch {
      notify("The server is not responding.", true);
    }
  }

  /** Uploads files that are dropped on the page. */
  listen(element: HTMLElement): void {
    const over = (on: boolean) => element.classList.toggle("dropping", on);
    element.ondragover = (event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      over(true);
    };
    element.ondragleave = () => over(false);
    element.ondrop = (event) => {
      over(false);
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      void this.load(file);
    };
  }

  /** A menu of what can be saved of some lines. When it opens, it shows the size of each file. */
  menu(title: string, name: string, lines: () => Line[], more: [string, () => void][] = []): HTMLElement {
    const items = h("div", { class: "menu-items" });
    const item = (text: string, detail: string, click: () => void) =>
      h("button", { type: "button", click: () => { menu.open = false; click(); } }, text, detail ? h("small", {}, detail) : null);
    const fill = () => {
      const all = this.extent(lines());
      const rows = this.rowsOnScreen();
      items.replaceChildren(
        item("Visible data, CSV", `${rows} rows`, () => this.saveScreen(lines(), name)),
        ...(this.page.connection.served ? [item("All samples, CSV", all.whole ? `${all.rows} rows, about ${format(all.bytes, "bytes")}` : `too many for one file: min, max, mean in ${all.rows} buckets, about ${format(all.bytes, "bytes")}`, () => void this.saveSamples(lines(), name))] : []),
        ...more.map(([text, click]) => item(text, "", click)));
    };
    const menu = h("details", { class: "menu", toggle: () => menu.open && fill() },
      h("summary", { title, "aria-label": title }, icon(ICONS.download)), items);
    menu.addEventListener("focusout", (event) => !menu.contains(event.relatedTarget as Node | null) && event.relatedTarget && (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary")?.focus();
    });
    return menu;
  }

  private extent(lines: Line[]): Extent {
    const [from, to] = this.timeline.range();
    const interval = (this.source.kind === "live" ? this.page.state?.interval_ns : 0) || this.source.interval_ns || 1e8;
    return extent(numbers(lines).length, to - from, interval / 1e6, this.page.limits?.values ?? 1e6);
  }

  private rowsOnScreen(): number {
    const [from, to] = this.timeline.range();
    return this.timeline.slice.x.reduce((sum, time) => sum + (time >= from && time <= to ? 1 : 0), 0);
  }

  private saveScreen(lines: Line[], name: string): void {
    if (this.rowsOnScreen() === 0) return notify("There is no visible data to save.", true);
    saveCsv(fileName(name), lines, this.timeline.slice, ...this.timeline.range());
  }

  /** Saves the samples as the server keeps them, in raw units. */
  private async saveSamples(lines: Line[], name: string): Promise<void> {
    const [from, to] = this.timeline.range().map((ms) => Math.max(0, Math.round(ms * 1e6)));
    const series = numbers(lines);
    const rows = Math.max(1, Math.floor((this.page.limits?.values ?? 1e6) / series.length));
    try {
      const answer = await fetch(`export.csv?source=${this.source.id}&series=${series.join()}&from=${from}&to=${to}&rows=${rows}`);
      if (!answer.ok) return notify(`Not saved: ${(await answer.text()) || `the server returned HTTP status ${answer.status}`}`, true);
      download(`${fileName(name)}-samples.csv`, await answer.blob());
    } catch {
      notify("Not saved: the server is not responding.", true);
    }
  }
}

function numbers(lines: Line[]): number[] {
  return [...new Set(lines.map((line) => line.series.number))];
}
