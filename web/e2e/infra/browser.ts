// Headless Chromium, and pages in it. Every error in a page fails the test unless it was expected.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type CDPSession, type Page } from "playwright-core";
import type { Page as Numakit } from "../../src/page";
import { atEnd } from "./ending";
import { until } from "./until";

declare global {
  interface Window {
    numakit?: Numakit;
  }
}

/** For development, NUMAKIT_DIST=1: the page in web/dist, or in another folder, instead of the embedded one. */
const { NUMAKIT_DIST } = process.env;
const DIST = NUMAKIT_DIST === "1" ? fileURLToPath(new URL("../dist", import.meta.url)) : NUMAKIT_DIST;
/** A page that is not from a server counts as public, and public pages may not access loopback. */
const DIST_ARGS = DIST ? ["--disable-features=LocalNetworkAccessChecks"] : [];
const KINDS: Record<string, string> = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };
export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 390, height: 844 };

let launched: Promise<Browser> | null = null;

/** The only browser of this process. */
export function browser(): Promise<Browser> {
  launched ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", ...DIST_ARGS] });
  return launched;
}

export async function closeBrowser(): Promise<void> {
  await (await launched)?.close();
  launched = null;
}

/** A page with its own cookies. */
export class Client {
  /** Unexpected errors on the console or from scripts. */
  readonly errors: string[] = [];
  private readonly expected: RegExp[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  /** Opens an address, with a script that runs first; unless `ready` is false, waits until samples are visible. */
  static async open(url: string, options: BrowserContextOptions & { ready?: boolean; expected?: RegExp; script?: () => void } = {}): Promise<Client> {
    const { ready = true, expected, script, ...rest } = options;
    const context = await (await browser()).newContext({ viewport: WIDE, acceptDownloads: true, ...rest });
    // Other tests keep the CPUs busy meanwhile.
    context.setDefaultTimeout(60_000);
    if (script) await context.addInitScript(script);
    const client = atEnd(await Client.in(context));
    if (expected) client.expect(expected);
    await client.page.goto(url);
    if (ready) await client.ready();
    return client;
  }

  /** Opens another page in a context, for instance with the cookies of another page. */
  static async in(context: BrowserContext): Promise<Client> {
    const page = await context.newPage();
    const client = new Client(context, page);
    page.on("console", (message) => message.type() === "error" && client.say(message.text()));
    page.on("pageerror", (error) => client.say(error.stack ?? error.message));
    if (DIST) await serveDist(page, DIST);
    return client;
  }

  /** Opens another address in a fresh page. */
  async visit(url: string): Promise<void> {
    await this.page.goto("about:blank");
    await this.page.goto(url);
    await this.ready();
  }

  /** Declares errors that the test causes. */
  expect(pattern: RegExp): void {
    this.expected.push(pattern);
  }

  private say(text: string): void {
    if (!this.expected.some((pattern) => pattern.test(text))) this.errors.push(text);
  }

  /** Throws unexpected errors, once. */
  check(): void {
    const said = this.errors.splice(0);
    if (said.length > 0) throw new Error(`errors in the page: ${said.join("\n")}`);
  }

  /** Waits until panels show samples. */
  async ready(): Promise<void> {
    const onScreen = () => this.page.evaluate(() => document.querySelector(".board:not(.waiting) .panel") !== null);
    await until("samples on screen", onScreen).catch(async (error: Error) => {
      const text = await this.page.evaluate(() => document.body.innerText.slice(0, 400));
      throw new Error([error.message, ...this.errors, text].join("\n"));
    });
  }

  /** The status in the top bar. */
  async status(): Promise<string> {
    return (await this.page.locator(".status").textContent()) ?? "";
  }

  /** Whether it shows live data. Beside other programs, the sampler may be behind. */
  async isLive(): Promise<boolean> {
    return /^(live|sampler behind)/.test(await this.status());
  }

  /** The visible notices. */
  notices(): Promise<string[]> {
    return this.page.locator(".notice").allTextContents();
  }

  /** Waits for a notice; returns its text. */
  async notice(pattern: RegExp): Promise<string> {
    return until(`a notice like ${pattern}`, async () => (await this.notices()).find((text) => pattern.test(text)));
  }

  /** The server's state as the page has it. */
  state() {
    return this.page.evaluate(() => window.numakit?.state ?? null);
  }

  /** The view: range, panels, chart types. */
  view() {
    return this.page.evaluate(() => structuredClone(window.numakit?.view));
  }

  cdp(): Promise<CDPSession> {
    return this.context.newCDPSession(this.page);
  }

  /** Closes it; an unexpected error fails the test. */
  async close(): Promise<void> {
    await this.context.close();
    this.check();
  }
}

async function serveDist(page: Page, dist: string): Promise<void> {
  if (!existsSync(join(dist, "app.js"))) throw new Error(`there is no page in ${dist}; run 'npm run build'`);
  const files: Record<string, string> = { "/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/icon.svg": "icon.svg" };
  await page.route((url) => url.pathname in files, async (route) => {
    const name = files[new URL(route.request().url()).pathname] ?? "";
    const kind = KINDS[name.slice(name.lastIndexOf(".") + 1)] ?? "";
    const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
    await route.fulfill({ body: await readFile(join(dist, name)), headers: { "content-type": kind, "content-security-policy": policy } });
  });
}
