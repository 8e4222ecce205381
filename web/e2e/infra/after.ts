// The last step of every file: build.mjs puts this into each of them.

import { after } from "node:test";
import { closeBrowser } from "./browser";
import { closeAll } from "./ending";

after(async () => {
  try {
    await closeAll();
  } finally {
    await closeBrowser();
  }
});
