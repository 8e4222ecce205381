// The processes from the server, which measures them only while a client looks.

import type { Connection } from "../connection";
import type { Ids } from "../timeline";
import type { ProcessList } from "../wire-processes";

export class ProcessFeed {
  private show: ((list: ProcessList) => void) | null = null;

  constructor(
    private readonly connection: Connection,
    private readonly ids: Ids,
  ) {}

  /** From now on, every list goes to `show`; null: nobody looks. */
  look(show: ((list: ProcessList) => void) | null): void {
    const before = this.show;
    this.show = show;
    if ((before === null) !== (show === null)) this.ask();
  }

  take(list: ProcessList): void {
    this.show?.(list);
  }

  /** A new connection knows nothing of this client. */
  reconnected(): void {
    if (this.show) this.ask();
  }

  private ask(): void {
    this.connection.send({ type: "processes", id: this.ids.next(), on: this.show !== null });
  }
}
