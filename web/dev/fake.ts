// Serves generated data, to use the page without a real server: `npm run fake [-- PORT NODES [two|many|fine]]`.

import { FakeServer } from "./server";

const [port = "7078", nodes = "4", what = ""] = process.argv.slice(2);
const fake = await FakeServer.start({ port: Number(port), nodes: Number(nodes), two: what === "two", fine: what === "fine", more: what === "many" ? Math.ceil(32_000 / Number(nodes)) : 0 });
console.log(`${fake.url}#token=made-up-token-of-no-worth`);
