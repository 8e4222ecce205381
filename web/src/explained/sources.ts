// Where the page gets results from: its own file, or the server.

import { unpack } from "../embedded";
import { resultsIn, type NamedResult } from "./result";

const BLOCK = 'script[type="application/x-numa-results"]';

/** The results in this file; null if it has none. */
export function embeddedResults(document: Document): Promise<NamedResult[]> | null {
  const block = document.querySelector(BLOCK);
  if (!block) return null;
  return unpack(block.textContent ?? "").then((data) => resultsIn(JSON.parse(new TextDecoder().decode(data))));
}

/** The results that the server shows; none if it shows recordings or live samples. */
export async function servedResults(): Promise<NamedResult[]> {
  const answer = await fetch("results");
  if (!answer.ok) throw new Error((await answer.text()) || `the server returned HTTP status ${answer.status}`);
  return resultsIn(await answer.json());
}
