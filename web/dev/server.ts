// A fake server with generated data. It uses the real protocol and content security policy.

import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import type { FromServer, ObservationState, SourceInfo, ToServer, WireLabel } from "../src/wire";
import { processList } from "./processes";
import { encodeFrame, type Columns } from "./encode";
import { comparedIn } from "./compared";
import { foundIn } from "./findings";
import { signal, sourceInfo } from "./machine";

const INTERVAL_MS = 10;
const BEFORE_MS = 14 * 60_000;
const SECOND_EARLIER_MS = 3_600_000;
const SECOND_LENGTH_MS = 300_000;
const LIMITS = { message_bytes: 262_144, series: 4096, values: 2_000_000, watches: 64, clients: 16, label_bytes: 4096, recording_bytes: 2 ** 30 };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'";
const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

/** What a recorder notes. */
function recorded(now: number): WireLabel[] {
  const labels: [number, string][] = [
    [52_000, "command solver --steps 900"], [34_000, "lost 3"], [33_900, "lost 12"], [25_000, "absent pressure: /proc/pressure/cpu was removed"], [19_000, "back pressure"], [8000, "interval 10000000ns"],
  ];
  return labels.map(([before, text], at) => ({ id: 100 + at, time_ns: (now - before) * 1e6, text: `numakit:${text}` }));
}

export interface Made {
  nodes: number;
  port?: number;
  /** Number of additional meaningless metrics per node. */
  more?: number;
  /** Whether there is a recording, too. */
  two?: boolean;
  /** Whether nothing is wrong. */
  fine?: boolean;
}

interface Watch {
  source: number;
  series: number[];
  stepMs: number;
  next: number;
  partial: boolean;
}

export class FakeServer {
  readonly started = Date.now() - BEFORE_MS;
  readonly state: ObservationState;
  labels: WireLabel[];
  private readonly sources: SourceInfo[];
  private readonly names: [string, string, string | null][];
  /** When each disabled sensor was switched off. */
  private readonly off = new Map<string, number>();
  private readonly instance = Math.random().toString(36).slice(2);
  private readonly server: Server;
  private readonly sockets: WebSocketServer;
  private readonly ticking: NodeJS.Timeout;

  private constructor(private readonly made: Made) {
    const { started } = this;
    const info = sourceInfo(made.nodes, started, made.more ?? 0);
    const begun = started - SECOND_EARLIER_MS;
    const second = { ...info, id: 1, kind: "recording" as const, name: "before.arrows", started_ns: begun * 1e6, ended_ns: (begun + SECOND_LENGTH_MS) * 1e6 };
    this.sources = made.two ? [info, second] : [info];
    this.names = [...info.metrics.map((m) => ({ ...m, sensor: m.sensor as string | null })), ...info.formulas.map((f) => ({ ...f, sensor: null }))]
      .flatMap((m) => m.instances.map((at): [string, string, string | null] => [m.name, at, m.sensor]));
    this.state = {
      interval_ns: INTERVAL_MS * 1e6, paused: false, ended: false, recording: null, samples: 0, lost: 0, realtime: false, clients: 0,
      sensors: [...new Set(info.metrics.map((metric) => metric.sensor))].map((name) => ({ name, on: true })),
      history: { from_ns: started * 1e6, to_ns: Date.now() * 1e6, full_from_ns: started * 1e6, bytes: 61e6, budget: 256 * 2 ** 20 },
    };
    this.labels = [
      { id: 1, time_ns: (Date.now() - 41_000) * 1e6, text: "phase 2: interleave off" },
      { id: 2, time_ns: (Date.now() - 320_000) * 1e6, text: "job started" },
      ...recorded(Date.now()),
    ];
    this.server = createServer((request, response) => void this.file((request.url ?? "/").split("?")[0] ?? "/").then(({ status, type, body }) => {
      response.writeHead(status, { "Content-Security-Policy": POLICY, "Content-Type": type }).end(body);
    }));
    this.sockets = new WebSocketServer({ server: this.server, path: "/stream", handleProtocols: () => "numakit.1" });
    this.sockets.on("connection", (socket) => this.connected(socket));
    this.ticking = setInterval(() => this.tick(), 1000);
  }

  static async start(made: Made): Promise<FakeServer> {
    const fake = new FakeServer(made);
    await new Promise<void>((done) => fake.server.listen(made.port ?? 0, "127.0.0.1", done));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  /** The second source ends here; the first one never ends. */
  private get secondEnd(): number {
    return this.started - SECOND_EARLIER_MS + SECOND_LENGTH_MS;
  }

  /** Sends the state to all pages. */
  tell(): void {
    this.broadcast({ type: "state", ...this.state });
  }

  async close(): Promise<void> {
    clearInterval(this.ticking);
    for (const socket of this.sockets.clients) socket.terminate();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async file(path: string): Promise<{ status: number; type: string; body: string | Buffer }> {
    if (path === "/export.csv") return { status: 200, type: "text/csv", body: "time\n" };
    if (path === "/session") return { status: 200, type: "application/json", body: JSON.stringify({ role: "controller" }) };
    const name = path === "/" ? "index.html" : path.slice(1);
    try {
      if (!/^[a-z]+\.[a-z]+$/.test(name)) throw new Error(path);
      return { status: 200, type: TYPES[name.split(".")[1] ?? ""] ?? "text/plain", body: await readFile(new URL(`../dist/${name}`, import.meta.url)) };
    } catch {
      return { status: 404, type: "text/plain", body: "not here" };
    }
  }

  private tick(): void {
    const { state } = this;
    state.samples = Math.round((Date.now() - this.started) / INTERVAL_MS);
    state.history.to_ns = Date.now() * 1e6;
    if (state.recording) state.recording.bytes += 40_000;
    this.tell();
  }

  private broadcast(message: FromServer): void {
    for (const client of this.sockets.clients) send(client, message);
  }

  private connected(socket: WebSocket): void {
    const { state, sources, instance } = this;
    const watches = new Map<number, Watch>();
    const seq = { next: 0 };
    let looking: NodeJS.Timeout | undefined;
    state.clients += 1;
    send(socket, { type: "hello", protocol: 1, role: "controller", instance, sources, opening: [], state, limits: LIMITS });
    send(socket, { type: "labels", source: 0, labels: this.labels, all: true });
    const [, second] = sources;
    if (second) send(socket, { type: "labels", source: 1, labels: [{ id: 1, time_ns: second.started_ns + 9e9, text: "job started" }], all: true });
    const timer = setInterval(() => watches.forEach((watch, id) => this.grow(socket, seq, id, watch, watches.size)), 100);
    socket.on("close", () => {
      clearInterval(timer);
      clearInterval(looking);
      state.clients -= 1;
    });
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as ToServer;
      if (message.type === "watch") {
        const stepMs = message.step_ns / 1e6;
        const from = Math.max(message.from_ns / 1e6, message.source === 1 ? this.started - SECOND_EARLIER_MS : this.started);
        const watch = { source: message.source, series: message.series, stepMs, next: Math.floor(from / stepMs), partial: message.partial === true };
        watches.set(message.id, watch);
        this.grow(socket, seq, message.id, watch, watches.size);
      } else if (message.type === "unwatch") watches.delete(message.id);
      else if (message.type === "findings") send(socket, { type: "findings", id: message.id, source: message.source, found: foundIn(this.made, message.from_ns, Math.min(message.to_ns, Date.now() * 1e6)) });
      else if (message.type === "compare") send(socket, { type: "compared", id: message.id, compared: comparedIn(message.first, message.second) });
      else if (message.type === "processes") {
        clearInterval(looking);
        const tell = () => send(socket, { type: "processes", list: processList(this.made.nodes, Date.now()) });
        if (message.on) looking = setInterval(tell, 2000);
        if (message.on) tell();
      } else if (message.type === "fetch") this.answer(socket, seq, message);
      else this.change(socket, message);
    });
  }

  /** Sends the buckets of a watch since the last ones. */
  private grow(socket: WebSocket, seq: { next: number }, id: number, watch: Watch, watches: number): void {
    const now = watch.source === 1 ? this.secondEnd : Date.now();
    const last = Math.floor(now / watch.stepMs);
    // The last bucket is sent again as it grows.
    const end = watch.partial && watch.source === 0 ? last + 1 : last;
    if (end <= watch.next || (this.state.paused && seq.next > watches)) return;
    const rows = end - watch.next;
    const columns = this.buckets(watch.source, watch.series, watch.next, rows, watch.stepMs);
    socket.send(encodeFrame({ id, source: watch.source, seq: seq.next++, dropped: 0, kind: "grid", first: watch.next, step_ns: watch.stepMs * 1e6, rows }, columns));
    watch.next = last;
  }

  private answer(socket: WebSocket, seq: { next: number }, message: ToServer & { type: "fetch" }): void {
    const [from, to] = [message.from_ns / 1e6, Math.min(message.to_ns / 1e6, Date.now())];
    const stepMs = Math.max((to - from) / message.buckets, INTERVAL_MS);
    const rows = Math.max(0, Math.round((to - from) / stepMs));
    const columns = this.buckets(message.source, message.series, from / stepMs, rows, stepMs);
    socket.send(encodeFrame({ id: message.id, source: message.source, seq: seq.next++, dropped: 0, kind: "grid", from_ns: from * 1e6, step_ns: stepMs * 1e6, rows }, columns));
  }

  private buckets(source: number, series: number[], first: number, rows: number, stepMs: number): Columns {
    const [begin, end, later] = source === 1 ? [this.started - SECOND_EARLIER_MS, this.secondEnd, 1300] : [this.started, Infinity, 0];
    const out: Columns = new Map();
    const inside = Math.min(series.length > 400 ? 2 : 8, Math.max(1, Math.round(stepMs / INTERVAL_MS)));
    for (const number of series) {
      const [name, at, sensor] = this.names[number] ?? ["", "", null];
      const until = (source === 0 && sensor !== null && this.off.get(sensor)) || Infinity;
      const [min, max, mean] = [new Float32Array(rows).fill(NaN), new Float32Array(rows).fill(NaN), new Float32Array(rows).fill(NaN)];
      for (let row = 0; row < rows; row++) {
        const time = (first + row) * stepMs;
        if (time < begin || time > Math.min(end, until)) continue;
        let [low, high, sum] = [Infinity, -Infinity, 0];
        for (let part = 0; part < inside; part++) {
          const value = signal(name, at, time + later + (part * stepMs) / inside, this.made.nodes);
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

  private turn(name: string, on: boolean): void {
    this.state.sensors = this.state.sensors.map((sensor) => (sensor.name === name ? { name, on } : sensor));
    if (on) this.off.delete(name);
    else this.off.set(name, Date.now());
  }

  private label(time_ns: number, text: string): void {
    this.labels.push({ id: 1 + Math.max(0, ...this.labels.map((label) => label.id)), time_ns, text });
  }

  private change(socket: WebSocket, message: ToServer): void {
    let [ok, text] = [true, "done"];
    if (message.type === "order") [ok, text] = this.order(message.line);
    else if (message.type === "label") this.label(message.time_ns ?? Date.now() * 1e6, message.text);
    else if (message.type === "edit_label") this.labels = this.labels.map((l) => (l.id === message.label ? { ...l, text: message.text } : l));
    else if (message.type === "remove_label") this.labels = this.labels.filter((l) => l.id !== message.label);
    else return;
    send(socket, { type: "reply", id: message.id, ok, text });
    this.broadcast({ type: "labels", source: 0, labels: this.labels, all: true });
    this.tell();
  }

  private order(line: string): [boolean, string] {
    const { state } = this;
    const [verb, ...rest] = line.split(" ");
    const argument = rest.join(" ");
    if (verb === "pause" || verb === "resume") state.paused = verb === "pause";
    else if (verb === "interval") state.interval_ns = parseFloat(argument) * (argument.endsWith("ms") ? 1e6 : 1e9);
    else if (verb === "record") state.recording = { path: argument, bytes: 0 };
    else if (verb === "close") state.recording = null;
    else if (verb === "enable" || verb === "disable") this.turn(argument, verb === "enable");
    else if (verb === "label") this.label(Date.now() * 1e6, argument);
    else return [false, `'${String(verb)}' is not a command; give one of record, label, pause, resume, interval`];
    return [true, "done"];
  }
}

function send(socket: WebSocket, message: FromServer): void {
  socket.send(JSON.stringify(message));
}
