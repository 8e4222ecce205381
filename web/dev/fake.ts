// A fake server with generated data, to use the page without a real one:
// `npm run fake [-- PORT NODES [two|many]]`. It uses the real protocol and content security policy.

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { WebSocketServer, type WebSocket } from "ws";
import type { FromServer, WireLabel, ObservationState, ToServer } from "../src/wire";
import { encodeFrame, type Columns } from "./encode";
import { signal, sourceInfo } from "./machine";

const port = Number(process.argv[2] ?? 7078);
const nodes = Number(process.argv[3] ?? 4);
const interval = 10;
const started = Date.now() - 14 * 60_000;
const info = sourceInfo(nodes, started, process.argv[4] === "many" ? Math.ceil(32_000 / nodes) : 0);
const two = process.argv[4] === "two";
const LENGTH = 300_000;
const second = { ...info, id: 1, kind: "recording" as const, name: "before.arrows", started_ns: (started - 3_600_000) * 1e6, ended_ns: (started - 3_600_000 + LENGTH) * 1e6 };
const sources = two ? [info, second] : [info];
const names = [...info.metrics.map((m) => ({ ...m, sensor: m.sensor as string | null })), ...info.formulas.map((f) => ({ ...f, sensor: null }))].flatMap((m) => m.instances.map((at) => [m.name, at, m.sensor] as const));
/** When each disabled sensor was switched off. */
const off = new Map<string, number>();
const instance = Math.random().toString(36).slice(2);
const state: ObservationState = {
  interval_ns: interval * 1e6,
  paused: false,
  recording: null,
  samples: 0,
  lost: 0,
  realtime: false,
  sensors: [...new Set(info.metrics.map((metric) => metric.sensor))].map((name) => ({ name, on: true })),
  clients: 0,
  history: { from_ns: started * 1e6, to_ns: 0, full_from_ns: started * 1e6, bytes: 61e6, budget: 256 * 2 ** 20 },
};
let labels: WireLabel[] = [
  { id: 1, time_ns: (Date.now() - 41_000) * 1e6, text: "phase 2: interleave off" },
  { id: 2, time_ns: (Date.now() - 320_000) * 1e6, text: "job started" },
];
let nextLabel = 3;

const LIMITS = { message_bytes: 262_144, series: 4096, values: 2_000_000, watches: 64, clients: 16, label_bytes: 4096, recording_bytes: 2 ** 30 };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";
const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

const server = createServer(async (request, response) => {
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  response.setHeader("Content-Security-Policy", POLICY);
  if (path === "/export.csv") return void response.end("time\n");
  if (path === "/session") return void response.end(JSON.stringify({ role: "controller" }));
  const file = path === "/" ? "index.html" : path.slice(1);
  try {
    if (!/^[a-z]+\.[a-z]+$/.test(file)) throw new Error(path);
    const body = await readFile(new URL(`../dist/${file}`, import.meta.url));
    response.setHeader("Content-Type", TYPES[file.split(".")[1] ?? ""] ?? "text/plain");
    response.end(body);
  } catch {
    response.statusCode = 404;
    response.end("not here");
  }
});

function buckets(source: number, series: number[], first: number, rows: number, stepMs: number): Columns {
  const [begin, end, later] = source === 1 ? [started - 3_600_000, started - 3_600_000 + LENGTH, 1300] : [started, Infinity, 0];
  const out: Columns = new Map();
  const inside = Math.min(series.length > 400 ? 2 : 8, Math.max(1, Math.round(stepMs / interval)));
  for (const number of series) {
    const [name, at, sensor] = names[number] ?? ["", "", null];
    const until = (source === 0 && sensor !== null && off.get(sensor)) || Infinity;
    const min = new Float32Array(rows).fill(NaN);
    const max = new Float32Array(rows).fill(NaN);
    const mean = new Float32Array(rows).fill(NaN);
    for (let row = 0; row < rows; row++) {
      const time = (first + row) * stepMs;
      if (time < begin || time > Math.min(end, until)) continue;
      let [low, high, sum] = [Infinity, -Infinity, 0];
      for (let part = 0; part < inside; part++) {
        const value = signal(name, at, time + later + (part * stepMs) / inside, nodes);
        low = Math.min(low, value);
        high = Math.max(high, value);
        sum += value / inside;
      }
      [min[row], max[row], mean[row]] = [low, high, sum];
    }
    out.set(number, { min, max, mean });
  }
  return out;
}

interface Watch {
  source: number;
  series: number[];
  stepMs: number;
  next: number;
  partial: boolean;
}

const sockets = new WebSocketServer({ server, path: "/stream", handleProtocols: () => "numakit.1" });

function send(socket: WebSocket, message: FromServer): void {
  socket.send(JSON.stringify(message));
}

function broadcast(message: FromServer): void {
  for (const client of sockets.clients) send(client, message);
}

sockets.on("connection", (socket) => {
  const watches = new Map<number, Watch>();
  let seq = 0;
  state.clients += 1;
  send(socket, { type: "hello", protocol: 1, role: "controller", instance, sources, state, limits: LIMITS });
  send(socket, { type: "labels", source: 0, labels, all: true });
  if (two) send(socket, { type: "labels", source: 1, labels: [{ id: 1, time_ns: second.started_ns + 9e9, text: "job started" }], all: true });
  const grid = (id: number, watch: Watch): void => {
    const now = watch.source === 1 ? started - 3_600_000 + LENGTH : Date.now();
    const last = Math.floor(now / watch.stepMs);
    // The last bucket is sent again as it grows.
    const end = watch.partial && watch.source === 0 ? last + 1 : last;
    if (end <= watch.next || (state.paused && seq > watches.size)) return;
    const rows = end - watch.next;
    const columns = buckets(watch.source, watch.series, watch.next, rows, watch.stepMs);
    socket.send(encodeFrame({ id, source: watch.source, seq: seq++, dropped: 0, kind: "grid", first: watch.next, step_ns: watch.stepMs * 1e6, rows }, columns));
    watch.next = last;
  };
  const timer = setInterval(() => watches.forEach((watch, id) => grid(id, watch)), 100);
  socket.on("close", () => {
    clearInterval(timer);
    state.clients -= 1;
  });
  socket.on("message", (data) => {
    const message = JSON.parse(String(data)) as ToServer;
    if (message.type === "watch") {
      const stepMs = message.step_ns / 1e6;
      const from = Math.max(message.from_ns / 1e6, message.source === 1 ? started - 3_600_000 : started);
      const watch = { source: message.source, series: message.series, stepMs, next: Math.floor(from / stepMs), partial: message.partial === true };
      watches.set(message.id, watch);
      grid(message.id, watch);
    } else if (message.type === "unwatch") watches.delete(message.id);
    else if (message.type === "fetch") answer(message);
    else change(socket, message);
  });
  function answer(message: ToServer & { type: "fetch" }): void {
    const [from, to] = [message.from_ns / 1e6, Math.min(message.to_ns / 1e6, Date.now())];
    const stepMs = Math.max((to - from) / message.buckets, interval);
    const rows = Math.max(0, Math.round((to - from) / stepMs));
    const columns = buckets(message.source, message.series, from / stepMs, rows, stepMs);
    socket.send(encodeFrame({ id: message.id, source: message.source, seq: seq++, dropped: 0, kind: "grid", from_ns: from * 1e6, step_ns: stepMs * 1e6, rows }, columns));
  }
});

function turn(name: string, on: boolean): void {
  state.sensors = state.sensors.map((sensor) => (sensor.name === name ? { name, on } : sensor));
  if (on) off.delete(name);
  else off.set(name, Date.now());
}

function change(socket: WebSocket, message: ToServer): void {
  let text = "done";
  let ok = true;
  if (message.type === "order") {
    const [verb, ...rest] = message.line.split(" ");
    const argument = rest.join(" ");
    if (verb === "pause" || verb === "resume") state.paused = verb === "pause";
    else if (verb === "interval") state.interval_ns = parseFloat(argument) * (argument.endsWith("ms") ? 1e6 : 1e9);
    else if (verb === "record") state.recording = { path: argument, bytes: 0 };
    else if (verb === "close") state.recording = null;
    else if (verb === "enable" || verb === "disable") turn(argument, verb === "enable");
    else if (verb === "label") labels.push({ id: nextLabel++, time_ns: Date.now() * 1e6, text: argument });
    else [ok, text] = [false, `'${String(verb)}' is not a command; give one of record, label, pause, resume, interval`];
  } else if (message.type === "label") labels.push({ id: nextLabel++, time_ns: message.time_ns ?? Date.now() * 1e6, text: message.text });
  else if (message.type === "edit_label") labels = labels.map((l) => (l.id === message.label ? { ...l, text: message.text } : l));
  else if (message.type === "remove_label") labels = labels.filter((l) => l.id !== message.label);
  else return;
  send(socket, { type: "reply", id: message.id, ok, text });
  broadcast({ type: "labels", source: 0, labels, all: true });
  broadcast({ type: "state", ...state });
}

setInterval(() => {
  state.samples = Math.round((Date.now() - started) / interval);
  state.history.to_ns = Date.now() * 1e6;
  if (state.recording) state.recording.bytes += 40_000;
  broadcast({ type: "state", ...state });
}, 1000);

server.listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/#token=made-up-token-of-no-worth`));
