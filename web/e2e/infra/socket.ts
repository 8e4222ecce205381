// A client without a browser, which can also send invalid messages.

import { request, type IncomingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { WebSocket } from "ws";
import { decodeFrame, type Frame } from "../../src/frame";
import type { FromServer, ToServer } from "../../src/wire";
import { atEnd } from "./ending";
import { Numa } from "./numa";
import { until, within } from "./until";

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
}

/** A request with any headers. */
export function ask(numa: Numa, method: string, path: string, headers: Record<string, string> = {}, body = ""): Promise<Reply> {
  return within(`an answer to ${method} ${path}`, new Promise((done, failed) => {
    const sent = request({ host: "127.0.0.1", port: numa.port, method, path, headers, agent: false }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part)).on("end", () => done({ status: answer.statusCode ?? 0, headers: answer.headers, text }));
    });
    sent.on("error", failed).end(body);
  }));
}

/** Exchanges the token of an address for a cookie. */
export async function logIn(numa: Numa, url: string): Promise<string> {
  const { status, headers, text } = await ask(numa, "POST", "/session", { Origin: numa.origin }, JSON.stringify({ token: Numa.token(url) }));
  if (status !== 200) throw new Error(`access denied: ${status} ${text}`);
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}

/** Sends bytes; returns everything that the server sends until it closes. */
export function bytes(numa: Numa, sent: string | Buffer): Promise<string> {
  return within("the end of a connection", new Promise((done) => {
    let got = "";
    const socket = connect(numa.port, "127.0.0.1", () => socket.write(sent));
    socket.setEncoding("utf8").on("data", (part: string) => (got += part)).on("error", () => done(got)).on("close", () => done(got));
  }));
}

export class Socket {
  readonly messages: FromServer[] = [];
  readonly frames: Frame[] = [];
  closed: { code: number } | null = null;
  /** The HTTP status of a refused upgrade. */
  refused = 0;
  private last = 1000;

  private constructor(readonly socket: WebSocket) {
    socket.binaryType = "arraybuffer";
    socket.on("message", (data: ArrayBuffer | Buffer, binary: boolean) => {
      if (binary) this.frames.push(decodeFrame(data as ArrayBuffer));
      else this.messages.push(JSON.parse(Buffer.from(data as ArrayBuffer).toString()) as FromServer);
    });
    socket.on("close", (code) => (this.closed = { code }));
    socket.on("unexpected-response", (_, answer) => {
      this.refused = answer.statusCode ?? 0;
      answer.resume();
      socket.terminate();
    });
    socket.on("error", () => {});
  }

  /** Opens a stream with these headers; `refused` is set if access is denied. */
  static async open(numa: Numa, headers: Record<string, string>): Promise<Socket> {
    const socket = new Socket(new WebSocket(`ws://127.0.0.1:${numa.port}/stream`, "numakit.1", { headers: { Origin: numa.origin, ...headers } }));
    atEnd({ close: async () => socket.socket.terminate() });
    await until("the answer to an upgrade", () => socket.messages.length > 0 || socket.refused > 0 || socket.closed !== null);
    return socket;
  }

  /** Logs in by an address and opens a stream. */
  static async enter(numa: Numa, url: string): Promise<Socket> {
    return Socket.open(numa, { Cookie: await logIn(numa, url) });
  }

  send(message: ToServer | string | Buffer): void {
    this.socket.send(typeof message === "string" || Buffer.isBuffer(message) ? message : JSON.stringify(message));
  }

  /** The first matching message of a type. */
  message<T extends FromServer["type"]>(type: T, fits: (message: Extract<FromServer, { type: T }>) => boolean = () => true) {
    type Wanted = Extract<FromServer, { type: T }>;
    return until(`a message '${type}'`, () => this.messages.find((one): one is Wanted => one.type === type && fits(one as Wanted)));
  }

  /** Sends a command; returns the reply. */
  async order(line: string) {
    const id = ++this.last;
    this.send({ type: "order", id, line });
    return this.message("reply", (reply) => reply.id === id);
  }

  /** Stops reading. */
  stall(): void {
    (this.socket as unknown as { _socket: { pause(): void } })._socket.pause();
  }

  resume(): void {
    (this.socket as unknown as { _socket: { resume(): void } })._socket.resume();
  }

  async close(): Promise<void> {
    this.socket.close();
    await until("the end of a stream", () => this.closed !== null || this.socket.readyState === WebSocket.CLOSED);
  }
}
