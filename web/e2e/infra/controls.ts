// The top bar and its dialogs.

import type { Locator } from "playwright-core";
import type { Client } from "./browser";
import { freeze } from "./chart";
import { becomes } from "./until";

export class Controls {
  constructor(private readonly client: Client) {}

  /** A button of the bar by its text or accessible name. */
  button(name: string | RegExp): Locator {
    return this.client.page.locator("header.top").getByRole("button", { name });
  }

  get follow(): Locator {
    return this.client.page.locator("header.top .primary");
  }

  /** Freezes the display, until its data in detail is there. */
  async hold(): Promise<void> {
    if ((await this.client.view())?.follow) await freeze(this.client);
    await becomes("hold", async () => (await this.client.view())?.follow, false);
  }

  /** Follows live data. */
  async live(): Promise<void> {
    if (!(await this.client.view())?.follow) await this.follow.click();
    await becomes("live", async () => (await this.client.view())?.follow, true);
  }

  get span(): Locator {
    return this.client.page.getByLabel("Time range", { exact: true }).and(this.client.page.locator("select"));
  }

  get interval(): Locator {
    return this.client.page.getByLabel("Sampling interval, for everyone");
  }

  get pause(): Locator {
    return this.button(/^(Pause|Resume) all sampling/);
  }

  get record(): Locator {
    return this.button(/^Record/);
  }

  get label(): Locator {
    return this.button(/^Add a label/);
  }

  /** Records to a file on the server, also if a recording is running. */
  async recordTo(path: string): Promise<void> {
    await this.record.click();
    if ((await this.client.state())?.recording) await this.dialog.getByRole("button", { name: /^Change file/ }).click();
    await this.answer(path);
  }

  get dialog(): Locator {
    return this.client.page.locator("dialog[open]");
  }

  /** Fills in the dialog that asks for a line of text. */
  async answer(text: string): Promise<void> {
    await this.dialog.locator("input").fill(text);
    await this.dialog.locator("button[type=submit]").click();
    await this.dialog.waitFor({ state: "detached" });
  }

  /** Uploads a recording. */
  async load(path: string): Promise<void> {
    await this.client.page.locator("header.top input[type=file]").setInputFiles(path);
  }
}
