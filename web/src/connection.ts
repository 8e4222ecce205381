// The connection to the server: the token is exchanged for a cookie, then one WebSocket is opened, and
// opened again whenever it is lost.

import { decodeFrame, type Frame } from "./frame";
import type { FromServer, ToServer } from "./wire";

export type Link =
  | { is: "connecting" }
  | { is: "open" }
  | { is: "lost"; again: number; tries: number; why?: string }
  | { is: "refused"; why: string }
  | { is: "ended"; why: string }
  /** There is no server: the page's own file contains all data. For each source the bucket length, 0 if every row is kept. */
  | { is: "standalone"; steps: number[] };

export interface Listener {
  message(message: FromServer): void;
  frame(frame: Frame): void;
  linkChanged(link: Link): void;
}

/** Where the page gets its data. */
export interface Connection {
  /** Whether this is a server, which can also record and take commands. */
  readonly served: boolean;
  start(token: string | null): Promise<void>;
  /** False if the message cannot be sent. */
  send(message: ToServer): boolean;
  /** Retries now instead of after the pause. */
  retry(): void;
}

const PROTOCOL = "numakit.1";
const LONGEST_PAUSE_MS = 5000;
/** Maximum wait for the answer whether this page has access. */
const PATIENCE_MS = 5000;
/** HTTP status of a server that has reached its limit of clients. */
const FULL = 503;
const NO_TOKEN = "Open the full address that numa printed: the part after # is the access key.";
const SERVER_RESTARTED = "numa was restarted: open the new address that it printed. Data received so far is kept.";

/** The token in the address, as `#token=...` or as the whole fragment. */
export function tokenIn(fragment: string): string | null {
  const text = fragment.replace(/^#/, "");
  const named = new URLSearchParams(text).get("token");
  if (named) return named;
  return /^[A-Za-z0-9_-]{20,}$/.test(text) ? text : null;
}

export class Served implements Connection {
  readonly served = true;
  private socket: WebSocket | null = null;
  private tries = 0;
  private timer = 0;
  private wasOpen = false;
  private ended = false;
  private refused = false;
  /** Pages of one browser share cookies: when one gets access, the others retry. */
  private readonly others = new BroadcastChannel("numakit");

  constructor(private readonly listener: Listener) {
    this.others.onmessage = () => {
      if (this.refused || this.ended) this.retry();
    };
  }

  /** Exchanges the token, if any, and opens the stream. */
  async start(token: string | null): Promise<void> {
    this.listener.linkChanged({ is: "connecting" });
    if (token !== null && !(await this.exchange(token))) return;
    this.retry();
    if (token !== null) this.others.postMessage("in");
  }

  send(message: ToServer): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  retry(): void {
    window.clearTimeout(this.timer);
    this.ended = false;
    this.refused = false;
    this.open();
  }

  private async exchange(token: string): Promise<boolean> {
    try {
      const answer = await fetch("session", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ token }),
      });
      if (answer.ok) return true;
      this.listener.linkChanged({ is: "refused", why: (await answer.text()) || `the server returned HTTP status ${answer.status}` });
    } catch {
      this.listener.linkChanged({ is: "refused", why: "the server is not responding" });
    }
    return false;
  }

  private open(): void {
    this.socket?.close();
    // Relative to the page, so that it works behind a proxy.
    const stream = new URL("stream", location.href);
    stream.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(stream, PROTOCOL);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.tries = 0;
      this.wasOpen = true;
      this.listener.linkChanged({ is: "open" });
    };
    socket.onmessage = (event: MessageEvent<string | ArrayBuffer>) => this.receive(event.data);
    socket.onclose = () => {
      if (socket === this.socket) this.lost();
    };
  }

  private receive(data: string | ArrayBuffer): void {
    try {
      if (typeof data !== "string") return this.listener.frame(decodeFrame(data));
      const message = JSON.parse(data) as FromServer;
      if (message.type === "bye") {
        this.ended = true;
        this.listener.linkChanged({ is: "ended", why: message.reason });
      }
      this.listener.message(message);
    } catch (error) {
      console.error("cannot decode a message from the server:", error);
    }
  }

  private async lost(): Promise<void> {
    if (this.ended) return;
    this.tries += 1;
    // A refused upgrade looks like a lost connection; only a plain request can distinguish them.
    const refusal = await this.refusal();
    if (refusal !== null && refusal.status !== FULL) {
      this.refused = true;
      return this.listener.linkChanged({ is: "refused", why: this.wasOpen ? SERVER_RESTARTED : NO_TOKEN });
    }
    const pause = Math.min(250 * 2 ** Math.min(this.tries, 6), LONGEST_PAUSE_MS);
    this.listener.linkChanged({ is: "lost", again: Date.now() + pause, tries: this.tries, why: refusal?.why });
    this.timer = window.setTimeout(() => this.open(), pause);
  }

  /** Why the server denies access; null if it does not, or does not respond. */
  private async refusal(): Promise<{ status: number; why: string } | null> {
    try {
      const answer = await fetch("session", { signal: AbortSignal.timeout(PATIENCE_MS) });
      return [401, 403, FULL].includes(answer.status) ? { status: answer.status, why: (await answer.text()).trim() } : null;
    } catch {
      return null;
    }
  }
}
