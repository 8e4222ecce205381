// A server whose keys are in a file: a page that is open when the server restarts goes on.

import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { before, test } from "node:test";
import { Client } from "./infra/browser";
import { Numa } from "./infra/numa";
import { until } from "./infra/until";

let numa: Numa;

before(async () => {
  numa = await Numa.start({ args: ["-i", "50ms", "--key-file", "keys"] });
});

test("the printed addresses are the same after a restart, and open pages go on", async () => {
  assert.equal((await stat(numa.file("keys"))).mode & 0o777, 0o600);
  const one = await Client.open(numa.controller, { expected: /WebSocket|ERR_CONNECTION_REFUSED|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET/ });
  const before = numa.controller;
  await numa.end("SIGKILL");
  await until("the loss of the connection", async () => /connection lost/.test(await one.status()));
  await numa.run();
  assert.equal(numa.controller, before);
  await until("samples again", () => one.isLive());
  // After a normal end, a page does not ask again until it is reloaded.
  await numa.end();
  await numa.run();
  await one.page.reload();
  await one.ready();
  await until("control", async () => await one.page.getByRole("button", { name: "Record to a file on the server" }).isVisible());
  await one.close();
});
