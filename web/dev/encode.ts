// Writes binary frames as the server does, for the tests of the decoder and the fake server.

import type { FrameColumn, FrameHeader } from "../src/wire";

export type Columns = Map<number, { min: Float32Array; max: Float32Array; mean: Float32Array }>;

export function encodeFrame(about: Omit<FrameHeader, "columns">, columns: Columns): Uint8Array {
  const parts: FrameColumn[] = [];
  const bodies: Uint8Array[] = [];
  let at = 0;
  for (const [series, track] of columns) {
    const flat = track.min.every((low, row) => Object.is(low, track.max[row]));
    for (const what of flat ? (["min"] as const) : (["min", "max", "mean"] as const)) {
      const values = track[what];
      const first = values[0] ?? NaN;
      if (values.every((v) => Object.is(v, first))) {
        parts.push({ series, what, type: "const", base: Number.isNaN(first) ? null : first, scale: 1, at });
        continue;
      }
      parts.push({ series, what, type: "f32", base: 0, scale: 1, at });
      bodies.push(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
      at += values.byteLength;
    }
  }
  return frameOf({ ...about, columns: parts }, bodies);
}

/** Joins the header and the columns. */
export function frameOf(header: FrameHeader, bodies: Uint8Array[]): Uint8Array {
  const text = new TextEncoder().encode(JSON.stringify(header));
  const start = Math.ceil((4 + text.length) / 8) * 8;
  const out = new Uint8Array(start + bodies.reduce((sum, body) => sum + body.length, 0));
  new DataView(out.buffer).setUint32(0, text.length, true);
  out.set(text, 4);
  let at = start;
  for (const body of bodies) {
    out.set(body, at);
    at += body.length;
  }
  return out;
}
