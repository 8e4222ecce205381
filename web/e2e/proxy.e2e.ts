// The page behind nginx, below a path, and from a server with TLS.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { Client } from "./infra/browser";
import { atEnd, endsWithUs } from "./infra/ending";
import { Numa } from "./infra/numa";
import { skip } from "./infra/skip";
import { until } from "./infra/until";

/** A certificate for tests that the browser is told to accept. */
const tls = (ending: string) => fileURLToPath(new URL(`../../crates/server/tests/server/tls/localhost.${ending}`, import.meta.url));
const NAME = "numa.localhost";

function hasNginx(): boolean {
  try {
    execFileSync("nginx", ["-v"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** The proxy configuration of the guide, with other paths and ports. */
async function config(folder: string, port: number, numa: number): Promise<string> {
  const guide = await readFile(new URL("../../docs/guide/live.md", import.meta.url), "utf8");
  const block = /```nginx\n(.*?)```/s.exec(guide)?.[1] ?? "";
  const server = block
    .replace("listen 443", `listen 127.0.0.1:${port}`)
    .replace("127.0.0.1:7077", `127.0.0.1:${numa}`)
    .replaceAll("numa.example.org;", `${NAME};`)
    .replace(/ssl_certificate .*;/, `ssl_certificate ${tls("pem")};`)
    .replace(/ssl_certificate_key .*;/, `ssl_certificate_key ${tls("key")};`);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`);
  return `daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}\nhttp { access_log off; ${temporary.join(" ")}\n${server}}\n`;
}

/** Starts nginx in front of numa; returns its address. */
async function nginx(numa: Numa): Promise<string> {
  const [folder, port] = [numa.file("nginx"), await freePort()];
  await mkdir(folder);
  await writeFile(`${folder}/conf`, await config(folder, port, numa.port));
  const child = endsWithUs(spawn("nginx", ["-p", folder, "-c", `${folder}/conf`], { stdio: "ignore" }), "SIGTERM");
  const close = async () => {
    child.kill("SIGTERM");
    await until("the end of nginx", () => child.exitCode !== null || child.signalCode !== null);
  };
  atEnd({ close });
  return `https://${NAME}:${port}`;
}

/** Tries everything that depends on paths: commands, saved values, and uploads. */
async function works(client: Client, numa: Numa, path: string): Promise<void> {
  const [cookie] = await client.context.cookies();
  assert.deepEqual([cookie?.secure, cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, true, "Strict", path]);
  await client.page.evaluate(() => window.numakit?.order({ type: "order", line: "record a.arrows" }));
  await until("the recording", async () => (await client.state())?.recording?.path.endsWith("/a.arrows"));
  assert.match(await numa.ctl("close"), /closed .*a.arrows/);
  const statuses = await client.page.evaluate(async () => {
    const body = '[["links",2,1000],\n["bytes:0","bytes:1"],\n[1,5,6],\n[2,5,6]\n]\n';
    const answers = [await fetch("session"), await fetch("export.csv?series=0"), await fetch("recordings?name=b.json", { method: "POST", body })];
    return answers.map((answer) => answer.status);
  });
  assert.deepEqual(statuses, [200, 200, 200]);
}

test("everything works behind nginx, below a path", async (t) => {
  if (!hasNginx()) return skip(t, "servers", "nginx is not here (Debian: nginx-light)");
  const numa = await Numa.start({ args: ["-i", "100ms", "--trusted-host", NAME, "--base-path", "/tools/numa"] });
  const origin = await nginx(numa);
  // Without the trailing slash, the proxy or the server redirects to the page.
  const url = `${origin}/tools/numa#${Numa.token(numa.controller)}`;
  await until("nginx", () => fetch(`http://127.0.0.1:${new URL(origin).port}/`).then((answer) => answer.status === 400, () => false));
  const client = await Client.open(url, { ignoreHTTPSErrors: true });
  assert.equal(new URL(client.page.url()).pathname, "/tools/numa/");
  await works(client, numa, "/tools/numa/");
});

test("a server with TLS needs no proxy", async () => {
  const numa = await Numa.start({ args: ["-i", "100ms", "--tls-cert", tls("pem"), "--tls-key", tls("key")] });
  assert.match(numa.controller, /^https:/);
  const client = await Client.open(numa.controller, { ignoreHTTPSErrors: true });
  await works(client, numa, "/");
});
