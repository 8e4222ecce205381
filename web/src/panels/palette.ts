// Colours of lines and of load, for both themes.

// Chosen by search: eight that differ also for eyes that lack a kind of cone, and from the background.
const LIGHT = ["#5f8fe6", "#bf3e16", "#27647d", "#dc6b9b", "#9d973e", "#8d45c9", "#6e273f", "#422a9e"];
const DARK = ["#53aefe", "#be6521", "#3f9285", "#feacaf", "#fbe364", "#a164d3", "#a7b247", "#95f4fe"];

export interface Theme {
  dark: boolean;
  text: string;
  quiet: string;
  grid: string;
  panel: string;
  accent: string;
}

/** The current theme, read from the style sheet. */
export function currentTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    dark: of("--dark") === "1",
    text: of("--text"),
    quiet: of("--quiet"),
    grid: of("--grid"),
    panel: of("--panel"),
    accent: of("--accent"),
  };
}

/** The colour of line `slot` of `count`: one of eight distinct colours, or of the colour wheel. */
export function lineColour(slot: number, count: number, dark: boolean): string {
  const base = dark ? DARK : LIGHT;
  if (count <= base.length) return base[slot % base.length] ?? "#888";
  const hue = Math.round((215 + (360 * slot) / count) % 360);
  return `hsl(${hue} ${dark ? 62 : 58}% ${dark ? 66 : 42}%)`;
}

// From low to high: the background colour, blue, violet, then red or amber. Lightness falls (on dark ground: rises) by
// equal steps, so that the order of loads is visible without hue.
const LOAD_LIGHT = [[235, 239, 242], [162, 210, 239], [119, 166, 236], [128, 103, 219], [147, 24, 130], [106, 4, 32]];
const LOAD_DARK = [[35, 42, 49], [41, 65, 111], [93, 82, 180], [194, 82, 187], [255, 139, 82], [252, 215, 111]];

/** The colour of a load from 0 to 1. */
export function loadColour(load: number, dark: boolean): string {
  return `rgb(${loadParts(load, dark).join(" ")})`;
}

/** Whether text on that load must be light to be readable. */
export function lightText(load: number, dark: boolean): boolean {
  return isDark(loadParts(load, dark));
}

/** The grey of a share from 0 to 1, for what is neither good nor bad. */
export function neutralColour(share: number, dark: boolean): string {
  return `rgb(${greyParts(share, dark).join(" ")})`;
}

/** Whether text on that grey must be light to be readable. */
export function lightGrey(share: number, dark: boolean): boolean {
  return isDark(greyParts(share, dark));
}

function greyParts(share: number, dark: boolean): number[] {
  const [low, high] = dark ? [[40, 47, 55], [176, 184, 193]] : [[235, 238, 242], [104, 112, 122]];
  return mixed(low, high, Math.max(0, Math.min(1, share)));
}

function isDark(colour: number[]): boolean {
  const bright = luminance(colour);
  return contrast(1, bright) > contrast(bright, 0);
}

function mixed(low: number[], high: number[], share: number): number[] {
  return low.map((part, i) => Math.round(part + ((high[i] ?? part) - part) * share));
}

/** Contrast ratio of two luminances: 1 to 21. */
export function contrast(brighter: number, darker: number): number {
  return (brighter + 0.05) / (darker + 0.05);
}

/** Relative luminance of an RGB colour with components up to 255. */
export function luminance(colour: number[]): number {
  const [red = 0, green = 0, blue = 0] = colour.map((part) => (part <= 10.31 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** The red, green and blue of a load from 0 to 1, up to 255. */
export function loadParts(load: number, dark: boolean): number[] {
  const stops = dark ? LOAD_DARK : LOAD_LIGHT;
  const at = Math.max(0, Math.min(0.9999, load)) * (stops.length - 1);
  const [low, high] = [stops[Math.floor(at)] ?? [0, 0, 0], stops[Math.floor(at) + 1] ?? [0, 0, 0]];
  return mixed(low, high, at % 1);
}
