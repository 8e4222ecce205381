// A view that is added to the table of side views needs no other change of the page.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { format } from "../src/units";
import { Client } from "./infra/browser";
import { Controls } from "./infra/controls";
import { Numa } from "./infra/numa";
import { Panel } from "./infra/panel";
import { until } from "./infra/until";

const WEB = fileURLToPath(new URL("..", import.meta.url));
/** The series of the example in infra/free-memory.ts. */
const FREE = "vmstat.nr_free_pages";
let numa: Numa;

before(async () => {
  numa = await Numa.start({ args: ["-i", "50ms"] });
});

/** The script of the page with one more module, which adds its view to the table. */
async function extended(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: 'import "./e2e/infra/free-memory"; import "./src/page";', resolveDir: WEB },
    bundle: true, format: "iife", target: "es2022", write: false, outdir: WEB,
  });
  return outputFiles.find((file) => file.path.endsWith(".js"))?.text ?? "";
}

test("a new side view is shown below the others, its series are requested, and it follows the cursor", async () => {
  const one = await Client.open("about:blank", { ready: false });
  const requested = new Set<number>();
  one.page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
    const message = JSON.parse(String(payload)) as { type: string; series?: number[] };
    if (message.type === "watch" || message.type === "fetch") message.series?.forEach((number) => requested.add(number));
  }));
  const script = await extended();
  await one.page.route("**/app.js", (route) => route.fulfill({ body: script, contentType: "text/javascript" }));
  await one.visit(numa.controller);

  const names = await one.page.locator(".sides > section").evaluateAll((all) => all.map((view) => view.getAttribute("aria-label")));
  assert.deepEqual([names.at(-2), names.at(-1)], ["Labels", "Free memory"], names.join());
  const { number, factor, panels } = await one.page.evaluate((name) => {
    const screen = window.numakit?.["screen"];
    const series = screen?.["catalog"].at(name, "");
    return { number: series?.number ?? -1, factor: series?.factor ?? 0, panels: screen?.["board"].series() ?? [] };
  }, FREE);
  assert.ok(number >= 0 && !panels.includes(number), "no panel requests this series");
  assert.ok(requested.has(number), [...requested].join());

  const view = one.page.getByRole("region", { name: "Free memory" }).locator("strong");
  await until("a value", async () => /\d/.test((await view.textContent()) ?? ""));
  await new Controls(one).hold();
  const [x, y] = await new Panel(one, "faults").point(0.97);
  await one.page.mouse.move(x, y);
  await until("the value at the cursor", async () => {
    const value = await one.page.evaluate((number) => {
      const screen = window.numakit?.["screen"];
      const [slice, cursor] = [screen?.["timeline"].slice, screen?.["cursor"]];
      const near = (time: number) => Math.abs(time - (cursor ?? NaN));
      const nearest = [...(slice?.x ?? [])].reduce((best, time, row) => (near(time) < near(slice?.x[best] ?? NaN) ? row : best), 0);
      return cursor ? slice?.track(number)?.mean[nearest] ?? NaN : NaN;
    }, number);
    return !Number.isNaN(value) && (await view.textContent()) === format(value * factor, "bytes");
  });
  await one.close();
});
