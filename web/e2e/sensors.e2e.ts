// Sensors switched off and on: one state for everyone, and samples are kept.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "./infra/browser";
import { charts } from "./infra/chart";
import { Controls } from "./infra/controls";
import { stage } from "./infra/stage";
import { becomes, until } from "./infra/until";

const s = stage({ args: ["-i", "50ms"] }, 2);
const FAULTS = "m:vmstat.pgfault";

const sensor = (client: Client, name: string) => client.page.getByRole("switch", { name: `Sample ${name} for everyone` });
const isOn = async (client: Client, name: string) => (await sensor(client, name).getAttribute("aria-checked")) === "true";

async function measured(client: Client): Promise<number[]> {
  const line = (await charts(client, FAULTS))[0]?.lines[0];
  return line?.times.filter((_, row) => !Number.isNaN(line.values[row])) ?? [];
}

test("a sensor switched off in one page is off for everyone, and its history is kept", async () => {
  for (const client of [s.one, s.two]) {
    await client.page.getByLabel("Search metrics").fill("vmstat.pgfault");
    await client.page.locator(".tree .entry", { has: client.page.getByText("vmstat.pgfault", { exact: true }) }).click();
    await client.page.getByLabel("Search metrics").fill("");
    await new Controls(client).span.selectOption("300000");
    await until("samples", async () => (await measured(client)).length > 5);
  }
  assert.ok((await isOn(s.one, "vmstat")) && (await isOn(s.two, "vmstat")));
  await sensor(s.one, "vmstat").click();
  for (const client of [s.one, s.two]) await becomes("the switch", () => isOn(client, "vmstat"), false);
  const before = await measured(s.two);
  const now = ((await s.two.state())?.history.to_ns ?? 0) / 1e6;
  await until("samples of others", async () => ((await charts(s.two, FAULTS))[0]?.to ?? 0) > now + 1500);
  const after = await measured(s.two);
  // Values are steps of at most this apart: they grow with the range.
  const step = 500;
  assert.ok(after.length > 0 && (after.at(-1) ?? 0) <= now + step, "no values since then");
  assert.ok(after.some((time) => Math.abs(time - (before[1] ?? 0)) <= step), "what was before stays");
  const chip = s.two.page.locator(`[data-panel="${FAULTS}"] .chip`).first();
  await until("the reason in the legend", async () => /No data since .*sensor ‘vmstat’ is off/.test((await chip.getAttribute("title")) ?? ""));
});

test("another page switches it on again, and new values arrive", async () => {
  const last = (await measured(s.one)).at(-1) ?? 0;
  await sensor(s.two, "vmstat").click();
  for (const client of [s.one, s.two]) {
    await becomes("the switch", () => isOn(client, "vmstat"), true);
    await until("new values", async () => ((await measured(client)).at(-1) ?? 0) > last + 1000);
  }
  const times = await measured(s.one);
  assert.ok(times.slice(1).some((time, at) => time - (times[at] ?? 0) > 1000), "the gap stays");
});

test("numa ctl does the same", async () => {
  await s.numa.ctl("disable", "vmstat");
  for (const client of [s.one, s.two]) await becomes("the switch", () => isOn(client, "vmstat"), false);
  await s.numa.ctl("enable", "vmstat");
  for (const client of [s.one, s.two]) await becomes("the switch", () => isOn(client, "vmstat"), true);
  await assert.rejects(s.numa.ctl("disable", "nonsense"), /nonsense/);
});
