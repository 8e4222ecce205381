// Panels, their charts and legends, as users see them.

import type { Locator } from "playwright-core";
import type { Client } from "./browser";
import { until } from "./until";

export class Panel {
  readonly element: Locator;

  constructor(
    private readonly client: Client,
    readonly id: string,
  ) {
    this.element = client.page.locator(`[data-panel="${id}"]`);
  }

  /** The ids of all panels, from the top. */
  static async all(client: Client): Promise<string[]> {
    return client.page.locator("[data-panel]").evaluateAll((all) => all.map((one) => one.getAttribute("data-panel") ?? ""));
  }

  /** The ids of all panels with charts: on one node, one of them only says that locality cannot be told. */
  static async drawn(client: Client): Promise<string[]> {
    return client.page.locator("[data-panel]:has(.u-over)").evaluateAll((all) => all.map((one) => one.getAttribute("data-panel") ?? ""));
  }

  get count(): Promise<number> {
    return this.element.count();
  }

  /** The plotting area of a chart. */
  chart(at = 0): Locator {
    return this.element.locator(".u-over").nth(at);
  }

  async box(at = 0): Promise<{ x: number; y: number; width: number; height: number }> {
    return until(`a chart of ${this.id}`, async () => {
      // A chart that is being rebuilt is searched again.
      await this.chart(at).scrollIntoViewIfNeeded().catch(() => null);
      return this.chart(at).boundingBox();
    });
  }

  /** The point at a fraction of a chart's width, at half its height. */
  async point(share: number, at = 0): Promise<[number, number]> {
    const box = await this.box(at);
    return [box.x + box.width * share, box.y + box.height / 2];
  }

  /** Clicks a button by its title. */
  async press(title: string): Promise<void> {
    await this.element.scrollIntoViewIfNeeded();
    await this.element.hover({ position: { x: 5, y: 5 } });
    await this.element.locator(`[title="${title}"]`).click();
  }

  /** Saves it as `Visible data, CSV`, `Image, PNG` or `Image, SVG`; returns the download. */
  async save(item: string): Promise<{ name: string; path: string }> {
    await this.press("Save panel");
    return download(this.client, () => this.element.getByRole("button", { name: item }).click());
  }

  /** The names in the legend, the value of each and whether it is shown. */
  legend(): Promise<{ name: string; value: string; on: boolean }[]> {
    return this.element.locator(".chip").evaluateAll((all) => all.map((chip) => ({
      name: chip.getAttribute("data-line") ?? "",
      value: chip.querySelector(".value")?.textContent ?? "",
      on: chip.getAttribute("aria-pressed") === "true",
    })));
  }

  chip(name: string): Locator {
    return this.element.locator(`.chip[data-line="${name}"]`);
  }

  /** The rows of the table, the head first. */
  table(): Promise<string[][]> {
    return this.element.locator("table.values tr").evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent ?? "")));
  }
}

/** Runs an action and returns the file that it downloads. */
export async function download(client: Client, action: () => Promise<void>): Promise<{ name: string; path: string }> {
  const [saved] = await Promise.all([client.page.waitForEvent("download"), action()]);
  return { name: saved.suggestedFilename(), path: await saved.path() };
}
