// The scale of load colours.

import { svg } from "../elements";
import { currentTheme, loadColour } from "./palette";

/** A bar with the colours from low to high. */
export function scaleBar(): SVGSVGElement {
  const bar = svg("svg", { class: "scale", viewBox: "0 0 60 8", "aria-hidden": "true" });
  for (let at = 0; at < 20; at++) {
    const part = svg("rect", { x: at * 3, y: 0, width: 3.1, height: 8 });
    part.style.fill = loadColour((at + 0.5) / 20, currentTheme().dark);
    bar.append(part);
  }
  return bar;
}
