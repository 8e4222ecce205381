// Clients of `numa live` that only receive: `node dist-bench/clients.js ADDRESS COUNT`. Prints
// `ready`, and when its input ends, results as `name value` lines.

import { Visitor } from "./visitor";

const [address = "", count = "2"] = process.argv.slice(2);
const visitors: Visitor[] = [];
let series = 0;
for (let n = 0; n < Number(count); n++) {
  const [visitor, hello] = await Visitor.enter(address);
  const source = hello.sources[0];
  if (!source) throw new Error("the server has no source");
  series = visitor.followDefaults(source, hello.state);
  visitors.push(visitor);
}
console.log("ready");
const started = Date.now();
const bytesBefore = visitors.map((visitor) => visitor.bytes);
process.stdin.resume();
await new Promise((resolve) => process.stdin.on("end", resolve));
const seconds = (Date.now() - started) / 1000;
const each = (value: (visitor: Visitor, at: number) => number) => visitors.reduce((sum, visitor, at) => sum + value(visitor, at), 0) / visitors.length;
const figures = {
  watched: series,
  frames_per_second: each((visitor) => visitor.frames) / seconds,
  bytes_per_second: each((visitor, at) => visitor.bytes - (bytesBefore[at] ?? 0)) / seconds,
  hello_bytes: each((visitor) => visitor.helloBytes),
  history_bytes: visitors[0]?.state?.history.bytes ?? NaN,
  samples: visitors[0]?.state?.samples ?? NaN,
  lost: visitors[0]?.state?.lost ?? NaN,
};
for (const [name, value] of Object.entries(figures)) console.log(name, value);
visitors.forEach((visitor) => visitor.leave());
process.exit(0);
