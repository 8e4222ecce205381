// What axe-core finds, for one node, four and 128, in both themes and on a phone.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import type { AxeResults, RunOptions } from "axe-core";
import { FakeServer } from "../dev/server";
import { Client, closeBrowser, NARROW, WIDE } from "./infra/browser";
import { Panel } from "./infra/panel";
import { until } from "./infra/until";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const LOOKS = {
  "light": { viewport: WIDE, colorScheme: "light" },
  "dark": { viewport: WIDE, colorScheme: "dark" },
  "on a phone": { viewport: NARROW, hasTouch: true, isMobile: true, colorScheme: "light" },
  "on a dark phone": { viewport: NARROW, hasTouch: true, isMobile: true, colorScheme: "dark" },
} as const;

let axe: string;

before(async () => {
  axe = await readFile(AXE, "utf8");
});

after(() => closeBrowser());

/** The violations on the page as it is: the rule, how severe, and the elements. */
async function violations(client: Client): Promise<string[]> {
  // By evaluation, as the page's policy permits no other scripts.
  await client.page.evaluate(axe);
  const { violations, passes } = await client.page.evaluate(() => 
    (window as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } }).axe.run({ rules: { "target-size": { enabled: true } } }));
  assert.ok(passes.length > 15, `only ${passes.length} rules apply`);
  return violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html, failureSummary }) => `${id} (${impact}): ${html.slice(0, 160)}: ${failureSummary?.split("\n")[1]?.trim()}`));
}

for (const nodes of [1, 4, 128]) describe(`${nodes} ${nodes === 1 ? "node" : "nodes"}`, () => {
  let fake: FakeServer;

  before(async () => {
    fake = await FakeServer.start({ nodes, two: true });
  });

  after(() => fake.close());

  for (const [name, look] of Object.entries(LOOKS)) test(name, async () => {
    const client = await Client.open(fake.url, look);
    const found: string[] = [];
    const check = async (what: string) => found.push(...(await violations(client)).map((one) => `${what}: ${one}`));
    if ("isMobile" in look) {
      for (const tab of ["Charts", "Machine", "Metrics"]) {
        await client.page.getByRole("button", { name: tab, exact: true }).last().click();
        await check(tab);
      }
    } else {
      await check("at first");
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
    await client.close();
  });
});
