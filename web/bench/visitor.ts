// A client without a browser: logs in and follows the series that a page would, but draws nothing.

import { defaultPanels } from "../src/panels/lines";
import { Catalog } from "../src/series";
import { stepFor } from "../src/steps";
import type { FromServer, SourceInfo, ObservationState, ToServer } from "../src/wire";
import WebSocket from "ws";

/** The chart width of a page on a large screen. */
const PIXELS = 1000;
const SPAN_MS = 60_000;
const NS = 1e6;

type Hello = Extract<FromServer, { type: "hello" }>;

export class Visitor {
  frames = 0;
  bytes = 0;
  helloBytes = 0;
  state: ObservationState | null = null;
  private constructor(
    private readonly socket: WebSocket,
    private readonly greeted: (hello: Hello) => void,
  ) {
    socket.on("message", (data: Buffer, binary: boolean) => this.take(data, binary));
  }

  /** Opens the address that the server printed; resolves when the server has sent its first message. */
  static async enter(address: string): Promise<[Visitor, Hello]> {
    const { origin, host, hash } = new URL(address);
    const login = await fetch(`${origin}/session`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: origin },
      body: JSON.stringify({ token: hash.slice(1) }),
    });
    if (!login.ok) throw new Error(`${login.status}: ${await login.text()}`);
    const cookie = (login.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
    const socket = new WebSocket(`ws://${host}/stream`, "numakit.1", { origin, headers: { Cookie: cookie }, perMessageDeflate: false });
    return new Promise((resolve, reject) => {
      socket.on("error", reject);
      const visitor: Visitor = new Visitor(socket, (hello) => resolve([visitor, hello]));
    });
  }

  send(message: ToServer): void {
    this.socket.send(JSON.stringify(message));
  }

  /** Follows the series of the default panels, as a page of a thousand pixels does. */
  followDefaults(source: SourceInfo, state: ObservationState): number {
    const lines = defaultPanels(new Catalog(source)).flatMap((panel) => panel.lines);
    const series = [...new Set(lines.map((line) => line.series.number))];
    const step = stepFor(SPAN_MS, PIXELS, state.interval_ns / NS) * NS;
    const from = Date.now() * NS - SPAN_MS * NS;
    this.send({ type: "watch", id: 1, source: source.id, series, step_ns: step, from_ns: from, partial: true });
    this.send({ type: "watch", id: 2, source: source.id, series: series.slice(0, 4), step_ns: step, from_ns: from });
    return series.length;
  }

  leave(): void {
    this.socket.close();
  }

  private take(data: Buffer, binary: boolean): void {
    if (binary) {
      this.frames += 1;
      this.bytes += data.length;
      return;
    }
    const message = JSON.parse(data.toString()) as FromServer;
    if (message.type === "state") this.state = message;
    if (message.type !== "hello") return;
    this.helloBytes = data.length;
    this.state = message.state;
    this.greeted(message);
  }
}
