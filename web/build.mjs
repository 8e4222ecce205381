// Bundles the page into dist/ ('node build.mjs'), its tests into dist-tests/ ('tests') and dist-e2e/
// ('e2e'), and the development tools into dist-dev/ ('dev').
import { build } from "esbuild";
import { copyFile, mkdir, readdir, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const what = process.argv[2] ?? "page";
const here = fileURLToPath(new URL(".", import.meta.url));

async function page() {
  await build({
    entryPoints: { app: `${here}src/page.ts` },
    outdir: `${here}dist`,
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    legalComments: "none",
  });
  for (const file of ["index.html", "icon.svg"]) await copyFile(here + file, `${here}dist/${file}`);
}

/** `first`: modules that each program begins with. */
async function programs(folder, ending, first = []) {
  const out = `${here}dist-${folder}`;
  await rm(out, { recursive: true, force: true });
  await mkdir(out, { recursive: true });
  const files = (await readdir(here + folder)).filter((name) => name.endsWith(ending));
  await build({
    entryPoints: files.map((name) => `${here}${folder}/${name}`),
    outdir: out,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node18",
    packages: "external",
    inject: first.map((name) => here + name),
  });
}

if (what === "tests") await programs("tests", ".test.ts");
else if (what === "e2e") await programs("e2e", ".e2e.ts", ["e2e/infra/after.ts"]);
else if (what === "dev") await programs("dev", ".ts");
else if (what === "bench") await programs("bench", ".ts");
else await page();
