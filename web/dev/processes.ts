// Made-up processes of the fake machine.

import type { ProcessInfo, ProcessList } from "../src/wire-processes";

const NAMES = ["postgres", "python3", "systemd-journal", "nginx", "redis-server", "java", "sshd", "bash"];

/** The processes of a machine with that number of nodes at a time in ms. */
export function processList(nodes: number, ms: number): ProcessList {
  const wave = (n: number) => (1 + Math.sin(ms / 9000 + n * 1.7)) / 2;
  const memory = (n: number): [number, number][] =>
    Array.from({ length: Math.min(nodes, 1 + (n % 5)) }, (_, at): [number, number] => [(n * 3 + at) % nodes, Math.round(2 ** 30 * (0.2 + wave(n + at)) * (n < 4 ? 8 : 0.1))]);
  const processes = Array.from({ length: 80 }, (_, n): ProcessInfo => {
    const on = memory(n);
    const denied = n % 9 === 8;
    return {
      pid: 1200 + 37 * n, parent: n === 1 ? 1200 : 1, user: n < 3 ? "ada" : n % 2 ? "root" : "postgres", name: n < 2 ? "stream" : NAMES[n % NAMES.length] ?? "",
      threads: n < 2 ? 16 * nodes : 1 + (n % 7), observed: n < 2, cpu: n < 4 ? 100 * nodes * wave(n) : 3 * wave(n) * Number(n < 30), remote: denied || nodes < 2 ? null : 60 * wave(n + 3),
      resident: on.reduce((sum, [, bytes]) => sum + bytes, 0), memory: denied ? null : on, why: denied ? "denied" : null,
      faults: n < 40 ? 4000 * wave(n) : 0, major: n === 2 ? 3.2 : 0, moved: n < 2 ? 120 * wave(n) : 0,
    };
  });
  return { time_ns: ms * 1e6, seconds: 2, nodes: Array.from({ length: nodes }, (_, n) => n), processes, left_out: 0, fix: "run as root, or as the user of the process", why: null };
}
