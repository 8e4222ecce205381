// A fake server that sends buckets of a live watch as fast as the page receives them.

import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { WebSocketServer, type WebSocket } from "ws";
import { frameOf } from "../../dev/encode";
import { sourceInfo } from "../../dev/machine";
import type { FromServer, ObservationState, ToServer } from "../../src/wire";
import { LIMIT_MS, until } from "./until";

const DIST = fileURLToPath(new URL("../dist/", import.meta.url));
const TYPES: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const STARTED_MS = 1_700_000_000_000;
/** Limits of unsent bytes: above the first, sending waits until the second is reached. */
const [MAX_WAITING, MIN_WAITING] = [4 << 20, 1 << 20];
/** Number of frames per write. A state message follows them. */
const TOGETHER = 1000;

type Watch = ToServer & { type: "watch" };

/** A source with few series. */
const SOURCE = {
  ...sourceInfo(1, STARTED_MS),
  topology: null,
  formulas: [],
  absent: [],
  metrics: sourceInfo(1, STARTED_MS).metrics.filter((metric) => /pgfault|pgmajfault|hint|migrate/.test(metric.name)),
};

export class Flood {
  /** Frames that were sent. */
  sent = 0;
  /** The end of the last bucket, in ms. */
  newest = STARTED_MS;
  /** The next bucket, in steps of the watch. */
  private next = 0;
  private socket: WebSocket | null = null;
  private wire: Duplex | null = null;
  private watch: Watch | null = null;

  private constructor(private readonly server: Server) {
    const sockets = new WebSocketServer({ server, path: "/stream", handleProtocols: () => "numakit.1" });
    sockets.on("connection", (socket, request) => {
      [this.socket, this.wire] = [socket, request.socket];
      this.tell({ type: "hello", protocol: 1, role: "viewer", instance: "flood", sources: [SOURCE], opening: [], state: this.state() } as unknown as FromServer);
      this.tell({ type: "labels", source: 0, labels: [], all: true });
      socket.on("message", (data) => {
        const message = JSON.parse(String(data)) as ToServer;
        // The first is of the charts; the other is of the slider.
        if (message.type !== "watch" || message.id !== 1) return;
        this.watch = message;
        // The page asks for longer steps when its live range grows, and draws nothing until it has a bucket of them.
        this.next = Math.floor(Math.max(message.from_ns / 1e6, this.newest) / (message.step_ns / 1e6));
        if (this.sent === 0) return;
        socket.send(this.frame(message));
        this.tell({ type: "state", ...this.state() });
      });
    });
  }

  static async start(): Promise<Flood> {
    const server = createServer(async (request, response) => {
      const path = (request.url ?? "/").split("?")[0] ?? "/";
      if (path === "/session") return void response.end(JSON.stringify({ role: "viewer" }));
      const file = path === "/" ? "index.html" : path.slice(1);
      try {
        if (!/^[a-z]+\.[a-z]+$/.test(file)) throw new Error(path);
        response.setHeader("Content-Type", TYPES[file.split(".")[1] ?? ""] ?? "text/plain");
        response.end(await readFile(DIST + file));
      } catch {
        response.statusCode = 404;
        response.end();
      }
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    return new Flood(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  /** Sends that number of frames of one bucket each. */
  async send(frames: number): Promise<void> {
    await until("a watch", () => this.watch !== null);
    for (const end = this.sent + frames; this.sent < end; ) {
      const { socket, watch } = this;
      if (!socket || !watch || socket.readyState !== socket.OPEN) throw new Error("the page has disconnected");
      this.wire?.cork();
      for (const pause = Math.min(end, this.sent + TOGETHER); this.sent < pause; ) socket.send(this.frame(watch));
      this.tell({ type: "state", ...this.state() });
      this.wire?.uncork();
      if (socket.bufferedAmount > MAX_WAITING) await this.drained(socket, MIN_WAITING);
    }
    if (this.socket) await this.drained(this.socket, 0);
  }

  async close(): Promise<void> {
    this.socket?.terminate();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async drained(socket: WebSocket, to: number): Promise<void> {
    const end = Date.now() + LIMIT_MS;
    while (socket.bufferedAmount > to && socket.readyState === socket.OPEN) {
      if (Date.now() > end) throw new Error(`the page reads nothing; ${socket.bufferedAmount} bytes wait for it`);
      await new Promise((done) => setTimeout(done, 1));
    }
  }

  private frame(watch: Watch): Uint8Array {
    const columns = watch.series.map((series) => ({ series, what: "min" as const, type: "const" as const, base: (this.sent * (series + 1)) % 1000, scale: 1, at: 0 }));
    const first = this.next++;
    this.newest = (this.next * watch.step_ns) / 1e6;
    return frameOf({ id: watch.id, source: 0, seq: this.sent++, dropped: 0, kind: "grid", first, step_ns: watch.step_ns, rows: 1, columns }, []);
  }

  private tell(message: FromServer): void {
    this.socket?.send(JSON.stringify(message));
  }

  private state(): ObservationState {
    const [from, to] = [STARTED_MS * 1e6, this.newest * 1e6];
    return {
      interval_ns: 1e6, paused: false, ended: false, recording: null, samples: this.sent, lost: 0, realtime: false, clients: 1, sensors: [],
      history: { from_ns: from, to_ns: to, full_from_ns: from, bytes: 0, budget: 1 },
    };
  }
}
