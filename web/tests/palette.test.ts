// Whether colours can be distinguished, also by eyes that lack one kind of cone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { contrast, lineColour, loadColour, luminance } from "../src/panels/palette";

type Colour = [number, number, number];

/** Machado, Oliveira and Fernandes 2009, severity 1; on linear RGB. */
const EYES: Record<string, number[][]> = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
/** Minimum distance in OKLab of two lines; 0.02 is just noticeable side by side. */
const APART = 0.1;
/** Of WCAG, for parts of graphics. */
const VISIBLE = 3;
const PANELS = { light: [255, 255, 255], dark: [22, 27, 33] };

function parse(text: string): Colour {
  const parts = text.startsWith("#") ? [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)) : text.match(/\d+/g)!.map(Number);
  return [parts[0]!, parts[1]!, parts[2]!];
}

function seen(colour: Colour, eyes: string): Colour {
  const linear = colour.map((part) => (part <= 10.31 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return EYES[eyes]!.map((row) => Math.min(1, Math.max(0, row.reduce((sum, factor, at) => sum + factor * linear[at]!, 0)))) as Colour;
}

/** OKLab of linear RGB. */
function oklab([r, g, b]: Colour): Colour {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

const apart = (a: Colour, b: Colour) => Math.hypot(...a.map((part, at) => part - b[at]!));

for (const theme of ["light", "dark"] as const) {
  const dark = theme === "dark";
  for (const eyes of Object.keys(EYES)) {
    test(`lines of nodes differ, ${theme}, ${eyes}`, () => {
      const colours = Array.from({ length: 8 }, (_, node) => oklab(seen(parse(lineColour(node, 8, dark)), eyes)));
      colours.forEach((one, at) => colours.slice(0, at).forEach((other, before) => assert.ok(apart(one, other) >= APART, `nodes ${before} and ${at}: ${apart(one, other).toFixed(3)}`)));
    });

    test(`a higher load is always darker, or on dark ground lighter, ${theme}, ${eyes}`, () => {
      const steps = Array.from({ length: 21 }, (_, at) => oklab(seen(parse(loadColour(at / 20, dark)), eyes)));
      const lightness = steps.map(([light]) => (dark ? light : -light));
      lightness.slice(1).forEach((light, at) => assert.ok(light - lightness[at]! > 0.012, `${at * 5} % to ${at * 5 + 5} %: ${(light - lightness[at]!).toFixed(3)}`));
    });
  }

  test(`lines are visible on their panel, ${theme}`, () => {
    const ground = luminance(PANELS[theme]);
    for (let node = 0; node < 8; node++) {
      const [low, high] = [luminance(parse(lineColour(node, 8, dark))), ground].sort((a, b) => a - b) as [number, number];
      assert.ok(contrast(high, low) >= VISIBLE, `node ${node}: ${contrast(high, low).toFixed(2)}`);
    }
  });
}
