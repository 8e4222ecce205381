// Recordings that are embedded in the page's own file. They are queried like a server.

import type { Connection, Listener } from "./connection";
import { EmbeddedRecording, type Block } from "./embedded-recording";
import type { ContainedComparison, Contents, FromServer, ObservationState, ToServer } from "./wire";

const FORMAT = 1;
const BLOCKS = 'script[type="application/octet-stream"]';

const STATE: Omit<ObservationState, "history"> = { interval_ns: 0, paused: false, ended: false, recording: null, samples: 0, lost: 0, realtime: false, clients: 1, sensors: [] };
const LIMITS = { message_bytes: 0, series: 4096, values: 2_000_000, watches: 64, clients: 1, label_bytes: 0, recording_bytes: 0 };

/** Decodes base64 and gzip. */
export async function unpack(text: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The recordings in this file; null if the page comes from a server. */
export function embeddedIn(document: Document, listener: Listener): Embedded | null {
  const texts = [...document.querySelectorAll(BLOCKS)].map((element) => element.textContent ?? "");
  if (texts.length === 0) return null;
  return new Embedded(listener, (at) => {
    const text = texts[at];
    if (text === undefined) return Promise.reject(new Error("part of the file is missing"));
    // Each block is read only once.
    texts[at] = "";
    return unpack(text);
  });
}

export class Embedded implements Connection {
  readonly served = false;
  private sources: EmbeddedRecording[] = [];
  private comparisons: ContainedComparison[] = [];

  constructor(
    private readonly listener: Listener,
    private readonly block: Block,
  ) {}

  async start(): Promise<void> {
    try {
      const contents = JSON.parse(new TextDecoder().decode(await this.block(0))) as Contents;
      if (contents.format !== FORMAT) throw new Error(`unsupported format version ${contents.format}`);
      this.comparisons = contents.comparisons;
      this.sources = contents.sources.map((source) => new EmbeddedRecording(source, this.block));
    } catch (error) {
      return this.listener.linkChanged({ is: "ended", why: `This file cannot be read: ${reason(error)}` });
    }
    this.listener.linkChanged({ is: "standalone", steps: this.sources.map((source) => source.stepMs) });
    this.greet();
  }

  /** Answers asynchronously, like a server. There are no commands without one. */
  send(message: ToServer): boolean {
    if (message.type === "findings") return this.findings(message.id, message.source);
    if (message.type === "compare") return this.compare(message.id, message.first.source, message.second.source);
    if (message.type !== "watch" && message.type !== "fetch") return message.type === "unwatch";
    void this.answer(message);
    return true;
  }

  /** The file does not change. */
  retry(): void {}

  private greet(): void {
    const [first] = this.sources;
    const history = { from_ns: first?.contained.from_ns ?? 0, to_ns: first?.contained.to_ns ?? 0, full_from_ns: first?.contained.from_ns ?? 0, bytes: 0, budget: 0 };
    const sources = this.sources.map((source) => source.contained.info);
    const messages: FromServer[] = [
      { type: "hello", protocol: 1, role: "viewer", instance: "file", sources, opening: [], state: { ...STATE, history }, limits: LIMITS },
      ...this.sources.map(({ contained }) => ({ type: "labels" as const, source: contained.info.id, labels: contained.labels, all: true })),
    ];
    for (const message of messages) this.listener.message(message);
  }

  /** The findings of the whole recording: those of other ranges would need the rules. */
  private findings(id: number, source: number): boolean {
    const contained = this.sources[source]?.contained;
    if (contained) queueMicrotask(() => this.listener.message({ type: "findings", id, source, found: contained.found }));
    return contained !== undefined;
  }

  /** The comparison of all of two recordings. */
  private compare(id: number, first: number, second: number): boolean {
    const one = this.comparisons.find((pair) => pair.first === first && pair.second === second);
    if (one) queueMicrotask(() => this.listener.message({ type: "compared", id, compared: one.compared }));
    return one !== undefined;
  }

  private async answer(message: Extract<ToServer, { type: "watch" | "fetch" }>): Promise<void> {
    const source = this.sources[message.source];
    if (!source) return;
    try {
      const frame = message.type === "fetch"
        ? await source.range(message.id, message.series, message.from_ns, message.to_ns, message.buckets)
        : await source.grid(message.id, message.series, message.from_ns, message.step_ns);
      this.listener.frame(frame);
    } catch (error) {
      this.listener.message({ type: "notice", text: `Part of this file cannot be read: ${reason(error)}` });
    }
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
