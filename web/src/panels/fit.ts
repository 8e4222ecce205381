// How many columns of panels: the number with which all fit into the window without scrolling, if there is one.

/** Smaller panels have no room for their charts. */
const LEAST_WIDTH = 270;
const LEAST_HEIGHT = 158;
/** Width by height of a panel that is good to read. */
const GOOD_SHAPE = 1.7;
/** How much worse each place more of the first panel makes a shape. */
const EMPTY_PLACE = 0.05;

/** The number of columns for panels in a box; 0: as the style sheet says, since they do not fit. */
export function columnsFor(panels: number, width: number, height: number): number {
  let [best, least] = [0, Infinity];
  for (let columns = 1; columns <= Math.min(panels, Math.floor(width / LEAST_WIDTH)); columns++) {
    const rows = Math.ceil(panels / columns);
    if (rows * LEAST_HEIGHT > height) continue;
    const shape = width / columns / (height / rows);
    const worse = Math.abs(Math.log(shape / GOOD_SHAPE)) + EMPTY_PLACE * (rows * columns - panels);
    if (worse < least) [best, least] = [columns, worse];
  }
  return best;
}

/** How many columns the first panel has, so that no place in the last row is empty. */
export function firstSpan(panels: number, columns: number): number {
  return columns > 0 ? 1 + (columns - (panels % columns)) % columns : 1;
}
