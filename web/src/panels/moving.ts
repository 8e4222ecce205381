// Panels are moved by their title and resized by their corner, with the mouse or with keys.

/** Columns and rows of the board that a panel covers. */
export type Size = [columns: number, rows: number];

export const MAX_SPAN = 4;
/** A shorter way is a click. */
const DRAG_PIXELS = 6;

export interface MovingEvents {
  /** The panels are in another order on the board. */
  moved(): void;
  /** Back to the order before. */
  cancelled(): void;
  /** One place earlier or later. */
  step(by: number): void;
  size(): Size;
  resize(size: Size): void;
}

/** Makes a panel movable; `columns` is the number of columns of the board now. */
export function makeMovable(panel: HTMLElement, title: HTMLElement, grip: HTMLElement, columns: () => number, to: MovingEvents): void {
  title.addEventListener("pointerdown", (event) => {
    // A finger on a title scrolls the page.
    if (event.button === 0 && event.pointerType !== "touch") drag(panel, event, to);
  });
  grip.addEventListener("pointerdown", (event) => {
    if (event.button === 0) stretch(panel, event, columns(), to);
  });
  title.addEventListener("keydown", (event) => {
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!arrow || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    // Elsewhere, arrows move in time.
    event.stopPropagation();
    const [right = 0, down = 0] = arrow;
    const [wide, tall] = to.size();
    if (event.shiftKey) to.resize(within([wide + right, tall + down]));
    else to.step(right + down);
  });
}

/** A size that a board can have. */
export function within([columns, rows]: Size): Size {
  const one = (count: number) => Math.max(1, Math.min(MAX_SPAN, Math.round(count)));
  return [one(columns), one(rows)];
}

function drag(panel: HTMLElement, from: PointerEvent, to: MovingEvents): void {
  let moves = false;
  const move = (event: PointerEvent) => {
    if (!moves && Math.hypot(event.clientX - from.clientX, event.clientY - from.clientY) < DRAG_PIXELS) return;
    moves = true;
    panel.classList.add("moving");
    const other = document.elementFromPoint(event.clientX, event.clientY)?.closest<HTMLElement>(".board > .panel");
    if (!other || other === panel) return;
    const isLater = (panel.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
    if (isLater) other.after(panel);
    else other.before(panel);
  };
  follow(move, (isCancelled) => {
    panel.classList.remove("moving");
    if (isCancelled) to.cancelled();
    else if (moves) to.moved();
  });
}

function stretch(panel: HTMLElement, from: PointerEvent, columns: number, to: MovingEvents): void {
  from.preventDefault();
  const before = to.size();
  const [wide, tall] = [Math.min(before[0], columns), before[1]];
  const unit = [panel.offsetWidth / wide, panel.offsetHeight / tall] as const;
  const move = (event: PointerEvent) =>
    to.resize(within([wide + (event.clientX - from.clientX) / unit[0], tall + (event.clientY - from.clientY) / unit[1]]));
  follow(move, (isCancelled) => isCancelled && to.resize(before));
}

/** Follows the pointer until it is released; Escape cancels. Moving an element in the document would end a capture. */
function follow(move: (event: PointerEvent) => void, end: (isCancelled: boolean) => void): void {
  const listening = new AbortController();
  const { signal } = listening;
  const stop = (isCancelled: boolean) => {
    listening.abort();
    end(isCancelled);
  };
  window.addEventListener("pointermove", move, { signal });
  window.addEventListener("pointerup", () => stop(false), { signal });
  window.addEventListener("pointercancel", () => stop(true), { signal });
  window.addEventListener("keydown", (event) => event.key === "Escape" && stop(true), { signal, capture: true });
}
