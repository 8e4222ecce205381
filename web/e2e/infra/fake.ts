// The fake server, until the end of the file.

import { FakeServer, type Made } from "../../dev/server";
import { atEnd } from "./ending";

export async function fakeServer(made: Made): Promise<FakeServer> {
  return atEnd(await FakeServer.start(made));
}
