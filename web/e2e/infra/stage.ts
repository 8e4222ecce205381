// Shared by the tests of a file: numa and its pages. An unexpected error in a page fails the test
// during which it occurs.

import { afterEach, before } from "node:test";
import { Client } from "./browser";
import { Numa, type How } from "./numa";

export class Stage {
  private running: Numa | null = null;
  private readonly clients: Client[] = [];

  get numa(): Numa {
    if (!this.running) throw new Error("numa did not start");
    return this.running;
  }

  /** The page that was opened first. */
  get one(): Client {
    return this.client(0);
  }

  /** The page that was opened second, in another context. */
  get two(): Client {
    return this.client(1);
  }

  private client(at: number): Client {
    const client = this.clients[at];
    if (!client) throw new Error("the page did not open");
    return client;
  }

  async start(how: How, pages: number): Promise<void> {
    this.running = await Numa.start(how);
    for (let at = 0; at < pages; at++) this.clients.push(await Client.open(this.numa.controller));
  }

  check(): void {
    for (const client of this.clients) client.check();
  }
}

/** numa and that number of controller pages for the tests of this file. */
export function stage(how: How = {}, pages = 1): Stage {
  const stage = new Stage();
  before(() => stage.start(how, pages));
  afterEach(() => stage.check());
  return stage;
}
