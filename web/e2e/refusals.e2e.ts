// Unauthorised and invalid requests are refused and reported on standard error; the server keeps running.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { afterEach, beforeEach, test } from "node:test";
import { Numa } from "./infra/numa";
import { ask, bytes, logIn, Socket } from "./infra/socket";
import { thorough } from "./infra/thorough";
import { until } from "./infra/until";

// Each test has its own server, as the number of reported refusals per second is limited.
let numa: Numa;
const WHY = "tests of the server say the same";

beforeEach(async () => {
  numa = await Numa.start({ args: ["-i", "100ms"] });
});

afterEach(async () => {
  assert.match(await numa.ctl("status"), /interval/);
  assert.equal((await ask(numa, "GET", "/")).status, 200);
  await numa.close();
});

/** Waits until the server has reported a refusal. */
async function reported(pattern: RegExp): Promise<void> {
  await until(`a line like ${pattern} among: ${numa.errors.join(" / ")}`, () => numa.errors.some((line) => line.startsWith("numa: refused 127.0.0.1:") && pattern.test(line)));
}

thorough("a message that is not JSON or of unknown type is answered with the error", WHY, async () => {
  const socket = await Socket.enter(numa, numa.controller);
  for (const wrong of ["", "{", "[1,2", "null", '{"type":"reboot"}', '{"type":"order","id":-1,"line":"stop"}', "[".repeat(100_000)]) socket.send(wrong);
  await until("an answer to each", () => socket.messages.filter((one) => one.type === "notice").length === 7);
  const notices = socket.messages.flatMap((one) => (one.type === "notice" ? [one.text] : []));
  assert.ok(notices.every((text) => /^invalid message: /.test(text)), notices.join("\n"));
  socket.send(Buffer.from([1, 2, 3]));
  await socket.message("notice", (one) => /binary/.test(one.text));
  assert.equal((await socket.order("status")).ok, true);
  await reported(/invalid message/);
  await reported(/binary messages/);
  await socket.close();
});

thorough("a message over 256 KiB ends the connection", WHY, async () => {
  const socket = await Socket.enter(numa, numa.controller);
  socket.send(`{"type":"order","id":1,"line":"${"x".repeat(260 * 1024)}"}`);
  await until("the end of the connection", () => socket.closed);
  await reported(/too long|size|capacity/i);
});

thorough("invalid commands are answered with the fix", WHY, async () => {
  const socket = await Socket.enter(numa, numa.controller);
  const { text, ok } = await socket.order("interval never");
  assert.deepEqual([ok, /interval|time/i.test(text)], [false, true], text);
  socket.send({ type: "watch", id: 1, source: 9, series: [0], step_ns: 1e6, from_ns: 0 });
  assert.match((await socket.message("reply", (one) => one.id === 1)).text, /source 9 does not exist/);
  socket.send({ type: "fetch", id: 2, source: 0, series: [0, 1, 2, 4_000_000_000], from_ns: 0, to_ns: 1e18, buckets: 4_000_000_000 });
  assert.equal((await socket.message("reply", (one) => one.id === 2)).ok, false);
  socket.send({ type: "label", id: 3, source: 0, time_ns: 1, text: "x".repeat(5000) });
  assert.match((await socket.message("reply", (one) => one.id === 3)).text, /5000 bytes/);
  await socket.close();
});

test("without the cookie, access is denied", async () => {
  assert.equal((await Socket.open(numa, {})).refused, 401);
  assert.equal((await Socket.open(numa, { Cookie: `numa-${numa.port}-00000000=${"0".repeat(32)}` })).refused, 401);
  assert.equal((await ask(numa, "GET", "/export.csv?source=0&series=0&from=0&to=1&rows=1")).status, 401);
  assert.equal((await ask(numa, "POST", "/recordings?name=x", { Origin: numa.origin }, "x")).status, 401);
  const wrong = await ask(numa, "POST", "/session", { Origin: numa.origin }, JSON.stringify({ token: "0".repeat(32) }));
  assert.deepEqual([wrong.status, wrong.headers["set-cookie"]], [401, undefined]);
  await reported(/GET \/stream: 401/);
  await reported(/GET \/export.csv: 401/);
  await reported(/POST \/recordings: 401/);
  await reported(/POST \/session: 401/);
});

thorough("pages of other origins can neither log in nor read", WHY, async () => {
  const cookie = await logIn(numa, numa.controller);
  const body = JSON.stringify({ token: Numa.token(numa.controller) });
  for (const origin of ["http://evil.example", `http://127.0.0.1:${numa.port + 1}`, "null"]) {
    assert.equal((await ask(numa, "POST", "/session", { Origin: origin }, body)).status, 403, origin);
    assert.equal((await Socket.open(numa, { Cookie: cookie, Origin: origin })).refused, 403, origin);
  }
  assert.equal((await ask(numa, "POST", "/session", {}, body)).status, 403);
  assert.equal((await ask(numa, "POST", "/recordings?name=x", { Cookie: cookie, Origin: "http://evil.example" }, "x")).status, 403);
  await reported(/POST \/session: 403 .*origin 'http:\/\/evil.example'/);
  await reported(/GET \/stream: 403 .*origin/);
});

thorough("an unknown host name that resolves to this server is refused", WHY, async () => {
  const cookie = await logIn(numa, numa.controller);
  for (const host of ["evil.example", `evil.example:${numa.port}`, `127.0.0.1.evil.example:${numa.port}`]) {
    assert.equal((await ask(numa, "GET", "/", { Host: host })).status, 421, host);
    const origin = `http://${host}`;
    assert.equal((await Socket.open(numa, { Cookie: cookie, Host: host, Origin: origin })).refused, 421, host);
  }
  assert.equal((await ask(numa, "GET", "/", { Host: "localhost:9" })).status, 200, "tunnels have other ports");
  await reported(/421 .*'evil.example'/);
});

thorough("a viewer can change nothing", WHY, async () => {
  const viewer = await Socket.enter(numa, numa.viewer);
  const boss = await Socket.enter(numa, numa.controller);
  for (const line of ["interval 1s", "pause", "stop", `record ${numa.file("x.arrows")}`, "label x"]) {
    const { ok, text } = await viewer.order(line);
    assert.deepEqual([ok, /viewer/.test(text)], [false, true], line);
  }
  viewer.send({ type: "label", id: 7, source: 0, time_ns: 1, text: "x" });
  assert.equal((await viewer.message("reply", (one) => one.id === 7)).ok, false);
  const upload = await ask(numa, "POST", "/recordings?name=x", { Origin: numa.origin, Cookie: await logIn(numa, numa.viewer) }, "x");
  assert.equal(upload.status, 403);
  await boss.order("status");
  const before = boss.messages.length;
  const state = await boss.message("state", (one) => boss.messages.indexOf(one) >= before);
  assert.deepEqual([state.interval_ns, state.paused, state.recording], [1e8, false, null]);
  await reported(/a viewer cannot change anything/);
  await Promise.all([viewer.close(), boss.close()]);
});

thorough("clients above the limit are refused, and one that leaves frees a slot", WHY, async () => {
  const cookie = await logIn(numa, numa.viewer);
  const all: Socket[] = [];
  for (let count = 0; count < 16; count++) all.push(await Socket.open(numa, { Cookie: cookie }));
  assert.ok(all.every((one) => one.refused === 0));
  assert.equal((await Socket.open(numa, { Cookie: cookie })).refused, 503);
  await reported(/503 .*16 viewers/);
  const asked = await ask(numa, "GET", "/session", { Cookie: cookie });
  assert.deepEqual([asked.status, /16 viewers/.test(asked.text)], [503, true]);
  await all.pop()?.close();
  const next = await until("room", async () => {
    const one = await Socket.open(numa, { Cookie: cookie });
    return one.refused === 0 ? one : null;
  });
  await Promise.all([...all, next].map((one) => one.close()));
});

thorough("anything that is not HTTP is refused", WHY, async () => {
  const answers = await Promise.all([
    bytes(numa, Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 131) % 256))),
    bytes(numa, "GET / HTTP/9.9\r\n\r\n"),
    bytes(numa, `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(64 * 1024)}\r\n\r\n`),
    bytes(numa, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
  ]);
  assert.ok(answers.every((text) => !text.includes(" 200 ")), answers.join("\n"));
  await until("a line for each", () => numa.errors.filter((line) => /refused/.test(line)).length >= 4);
});

thorough("unknown files and methods are refused", WHY, async () => {
  for (const path of ["/x", "//", "/../../etc/passwd", "/%2e%2e/etc/passwd", "/app.js/"]) assert.equal((await ask(numa, "GET", path)).status, 404, path);
  for (const method of ["PUT", "DELETE", "TRACE"]) assert.equal((await ask(numa, method, "/")).status, 405, method);
  const upgrade = await ask(numa, "GET", "/stream", { Origin: numa.origin, Cookie: await logIn(numa, numa.viewer) });
  assert.equal(upgrade.status, 400);
  await reported(/GET \/etc\/passwd|passwd: 404/);
});

thorough("an invalid recording is refused with the reason", WHY, async () => {
  const headers = { Origin: numa.origin, Cookie: await logIn(numa, numa.controller) };
  const answer = await ask(numa, "POST", "/recordings?name=broken.arrows", headers, "this is no recording");
  assert.ok(answer.status >= 400 && answer.status < 500, `${answer.status} ${answer.text}`);
  assert.match(answer.text, /broken.arrows/);
  await reported(/POST \/recordings: 4/);
});

thorough("a request whose head never arrives times out, while others are served", WHY, async () => {
  let closed = false;
  const socket = connect(numa.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "));
  socket.on("error", () => {}).on("close", () => (closed = true)).resume();
  assert.equal((await ask(numa, "GET", "/")).status, 200);
  await until("the end of the slow connection", () => closed);
});
