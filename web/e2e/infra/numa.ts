// A running `numa live` or `numa show --page` in its own folder, isolated from other processes of this
// machine.

import { spawn, execFile, type ChildProcess } from "node:child_process";
import { constants, existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { atEnd, endsWithUs, remove, temporary } from "./ending";
import { LIMIT_MS, until } from "./until";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The program to test: the environment variable NUMA, or the one that cargo builds. */
export function program(): string {
  const { CARGO_TARGET_DIR = "target", NUMA = resolve(ROOT, CARGO_TARGET_DIR, "debug/numa") } = process.env;
  if (!existsSync(NUMA)) throw new Error(`there is no ${NUMA}; build it with 'cargo xtask build', or set NUMA to the path of numa`);
  return resolve(NUMA);
}

/** The environment in which numa shares nothing with others: what it keeps is in a folder. */
function environment(folder: string): NodeJS.ProcessEnv {
  const at = (name: string) => join(folder, name);
  const own = { HOME: folder, XDG_RUNTIME_DIR: at("run"), XDG_STATE_HOME: at("state"), NUMAKIT_CACHE: at("cache"), NUMAKIT_REGISTRY: at("registry") };
  return { ...process.env, ...own, XDG_CACHE_HOME: undefined, XDG_CONFIG_HOME: undefined, DISPLAY: "" };
}

/** Runs a numa verb in a folder. */
export function runNuma(folder: string, words: string[], env = environment(folder)): Promise<Answer> {
  return new Promise((done) =>
    execFile(program(), words, { cwd: folder, env, maxBuffer: 64 << 20, timeout: LIMIT_MS }, (error, out, err) =>
      done({ code: error ? Number(error.code ?? 1) : 0, out, err })));
}

export interface How {
  /** `show` with --page. */
  verb?: "live" | "show";
  /** More options, and recordings for `show`. */
  args?: string[];
  /** The command after `--`. */
  command?: string[];
  env?: Record<string, string>;
}

export interface Answer {
  code: number;
  out: string;
  err: string;
}

export class Numa {
  /** The addresses of the controller and of viewers. */
  controller = "";
  viewer = "";
  port = 0;
  /** Lines on standard error since the first start. */
  readonly errors: string[] = [];
  private child: ChildProcess | null = null;

  private constructor(
    /** Its working folder, which `close` removes. */
    readonly folder: string,
    private readonly how: How,
  ) {}

  static async start(how: How = {}): Promise<Numa> {
    const numa = atEnd(new Numa(await temporary("e2e"), how));
    await mkdir(numa.file("run"));
    await numa.run();
    return numa;
  }

  get pid(): number {
    return this.child?.pid ?? 0;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The token in an address. */
  static token(url: string): string {
    return url.slice(url.indexOf("#") + 1);
  }

  /** Starts it, on the same port as before. */
  async run(): Promise<void> {
    const { verb = "live", args = [], command } = this.how;
    const words = [verb, ...(verb === "show" ? ["--page"] : []), "--listen", `127.0.0.1:${this.port}`, "--no-open", ...args, ...(command ? ["--", ...command] : [])];
    const child = spawn(program(), words, { cwd: this.folder, env: this.env(), stdio: ["ignore", "pipe", "pipe"] });
    this.child = endsWithUs(child);
    let out = "";
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      this.errors.push(...lines);
    });
    const address = (name: string) => new RegExp(`^${name}\\s+(https?://\\S+:(\\d+)/\\S*#\\S+)$`, "m").exec(out);
    await until(`the addresses of numa (it printed: ${this.errors.join(" / ")})`, () => {
      if (child.exitCode !== null) throw new Error(`numa ${words.join(" ")} ended with ${child.exitCode}: ${this.errors.join("\n")}`);
      return address("view");
    });
    this.controller = address("control")?.[1] ?? "";
    this.viewer = address("view")?.[1] ?? "";
    this.port = Number(address("view")?.[2]);
  }

  /** Runs another numa verb in its folder. */
  call(...words: string[]): Promise<Answer> {
    return runNuma(this.folder, words, this.env());
  }

  /** Sends a command by `numa ctl`; returns the answer. */
  async ctl(...words: string[]): Promise<string> {
    const { code, out, err } = await this.call("ctl", "--pid", String(this.pid), ...words);
    if (code !== 0) throw new Error(`numa ctl ${words.join(" ")}: ${err}`);
    return out.trim();
  }

  /** Writes a line to its control FIFO; without a reader, this is an error. */
  async fifo(line: string): Promise<void> {
    const flag = constants.O_WRONLY | constants.O_NONBLOCK;
    await writeFile(join(this.folder, "run/numakit", `${this.pid}.fifo`), `${line}\n`, { flag });
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  signal(name: NodeJS.Signals): void {
    this.child?.kill(name);
  }

  get running(): boolean {
    return this.child !== null && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Its exit status; null while it runs, and if a signal killed it. */
  get exitCode(): number | null {
    return this.child?.exitCode ?? null;
  }

  /** Ends it and waits for that. */
  async end(how: NodeJS.Signals = "SIGTERM"): Promise<void> {
    this.signal(how);
    if (how !== "SIGKILL") this.signal("SIGCONT");
    await until("the end of numa", () => !this.running);
  }

  /** Ends it and removes its folder. */
  async close(): Promise<void> {
    if (this.running) await this.end("SIGKILL");
    await remove(this.folder);
  }

  private env(): NodeJS.ProcessEnv {
    return { ...environment(this.folder), ...this.how.env };
  }
}
