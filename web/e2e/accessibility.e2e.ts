// What axe-core finds, for one node, four and 128, wide and on a phone, in both themes.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { before } from "node:test";
import type { AxeResults, RunOptions } from "axe-core";
import { Client, NARROW, WIDE } from "./infra/browser";
import { closeAll } from "./infra/ending";
import { fakeServer } from "./infra/fake";
import { Panel } from "./infra/panel";
import { thorough } from "./infra/thorough";
import { until } from "./infra/until";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const LOOKS = {
  "wide": { viewport: WIDE, colorScheme: "light" },
  "on a phone": { viewport: NARROW, hasTouch: true, isMobile: true, colorScheme: "light" },
} as const;
/** The only rule that a theme can violate: the other one has the same elements at the same places. */
const OF_COLOURS = ["color-contrast"];

let axe: string;

before(async () => {
  axe = await readFile(AXE, "utf8");
});

/** The violations on the page as it is, light and dark: the rule, how severe, and the elements. */
async function violations(client: Client): Promise<string[]> {
  const light = await run(client, { rules: { "target-size": { enabled: true } } }, 15);
  await client.page.emulateMedia({ colorScheme: "dark" });
  const dark = await run(client, { runOnly: OF_COLOURS }, 1);
  await client.page.emulateMedia({ colorScheme: "light" });
  return [...light, ...dark.map((one) => `dark: ${one}`)];
}

async function run(client: Client, options: RunOptions, atLeast: number): Promise<string[]> {
  // By evaluation, as the page's policy permits no other scripts.
  if (!(await client.page.evaluate(() => "axe" in window))) await client.page.evaluate(axe);
  const { violations, passes } = await client.page.evaluate((options) =>
    (window as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }).axe.run(options), options);
  assert.ok(passes.length >= atLeast, `only ${passes.length} rules apply`);
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html, failureSummary }) => `${id} (${impact}): ${html.slice(0, 160)}: ${failureSummary?.split("\n")[1]?.trim()}`));
}

/** Whether the panels need no scrolling. */
function fits(client: Client): Promise<boolean> {
  return client.page.evaluate(() => [...document.querySelectorAll(".main")].every((main) => main.scrollHeight <= main.clientHeight));
}

for (const nodes of [4, 1, 128]) for (const [name, look] of Object.entries(LOOKS)) {
  const why = "isMobile" in look ? "a phone" : nodes === 4 ? null : "four nodes say the same";
  thorough(`${nodes} ${nodes === 1 ? "node" : "nodes"}, ${name}`, why, async () => {
    const fake = await fakeServer({ nodes, two: true });
    const client = await Client.open(fake.url, look);
    const found: string[] = [];
    const check = async (what: string) => found.push(...(await violations(client)).map((one) => `${what}: ${one}`));
    if ("isMobile" in look) {
      for (const tab of ["Charts", "Machine", "Metrics"]) {
        await client.page.getByRole("button", { name: tab, exact: true }).last().click();
        await check(tab);
      }
    } else {
      await client.page.locator(".strip:not(.waiting)").waitFor();
      assert.ok(await fits(client), "all panels are on screen at first");
      await check("at first");
      await client.page.locator(".folds").click();
      await check("with all findings");
      await client.page.locator(".finding").first().click();
      await client.page.locator(".panel.faded").first().waitFor();
      await check("with a chosen finding");
      await client.page.locator(".strip").getByRole("button", { name: /^Back/ }).click();
      await new Panel(client, "memory").press("Table");
      await client.page.locator(".tree summary").first().click();
      await client.page.getByLabel("Compare with").selectOption("1");
      await until("the comparison", async () => (await new Panel(client, "memory").table())[0]?.includes("difference"));
      await client.page.keyboard.press("Space");
      await check("with a comparison and a table");
      await client.page.getByRole("region", { name: "Processes", exact: true }).getByRole("button", { name: "Show" }).click();
      await until("the processes", async () => (await client.page.locator(".processes tbody tr").count()) > 1);
      await check("with processes");
      await client.page.keyboard.press("?");
      await check("with a dialog");
    }
    assert.deepEqual(found, []);
    await closeAll();
  });
}
