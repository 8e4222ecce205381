// Wheel and touch on charts. Dragging with a mouse is the selection of uPlot.

export interface Gestures {
  /** Zooms around a point at a fraction of the width, 0 to 1. */
  zoom(factor: number, at: number): void;
  /** Moves by a fraction of the range. */
  pan(share: number): void;
  /** A finger touched a chart at a fraction of its width and left. `pixels`: the width. */
  tap(at: number, pixels: number): void;
}

/** A finger that moved farther or stayed longer did not tap. */
const TAP_PIXELS = 8;
const TAP_MS = 500;

/** Listens on all charts in an element. The wheel zooms if the page cannot scroll, or with Ctrl. */
export function listenToGestures(element: HTMLElement, scroller: HTMLElement, to: Gestures): void {
  element.addEventListener("wheel", (event) => {
    const over = chartAt(event.target);
    if (!over) return;
    const box = over.getBoundingClientRect();
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const frame = scroller.closest<HTMLElement>(".main") ?? scroller;
    if (!sideways && !event.ctrlKey && !event.metaKey && frame.scrollHeight > frame.clientHeight + 1) return;
    event.preventDefault();
    const delta = (event.deltaX || event.deltaY) * (event.deltaMode === 1 ? 16 : 1);
    if (sideways) to.pan(delta / box.width);
    else to.zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.04 : 0.0025)), (event.clientX - box.left) / box.width);
  }, { passive: false });
  listenToTouch(element, to);
}

function chartAt(target: EventTarget | null): HTMLElement | null {
  return target instanceof HTMLElement ? target.closest<HTMLElement>(".u-over") : null;
}

interface Finger {
  x: number;
  /** Where and when it came; null once it cannot become a tap. */
  came: { x: number; y: number; time: number } | null;
}

function listenToTouch(element: HTMLElement, to: Gestures): void {
  const fingers = new Map<number, Finger>();
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || !chartAt(event.target)) return;
    const alone = fingers.size === 0;
    for (const other of fingers.values()) other.came = null;
    fingers.set(event.pointerId, { x: event.clientX, came: alone ? { x: event.clientX, y: event.clientY, time: event.timeStamp } : null });
  });
  element.addEventListener("pointermove", (event) => {
    const finger = fingers.get(event.pointerId);
    const over = chartAt(event.target);
    if (!finger || !over) return;
    const { came } = finger;
    if (came && Math.hypot(event.clientX - came.x, event.clientY - came.y) < TAP_PIXELS) return;
    finger.came = null;
    const box = over.getBoundingClientRect();
    if (fingers.size === 1) {
      to.pan((finger.x - event.clientX) / box.width);
    } else {
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1].x ?? finger.x;
      const [was, is] = [Math.abs(finger.x - other), Math.abs(event.clientX - other)];
      if (was > 8 && is > 8) to.zoom(was / is, ((event.clientX + other) / 2 - box.left) / box.width);
    }
    finger.x = event.clientX;
  });
  element.addEventListener("pointerup", (event) => {
    const came = fingers.get(event.pointerId)?.came;
    const over = chartAt(event.target);
    if (!came || !over || event.timeStamp - came.time > TAP_MS) return;
    const box = over.getBoundingClientRect();
    to.tap((event.clientX - box.left) / box.width, box.width);
  });
  // The browser would send a mouse's events after those of the finger, which set the cursor again.
  element.addEventListener("touchend", (event) => chartAt(event.target) && event.cancelable && event.preventDefault(), { passive: false });
  const lifted = (event: PointerEvent) => void fingers.delete(event.pointerId);
  for (const name of ["pointerup", "pointercancel", "pointerleave"] as const) element.addEventListener(name, lifted);
}
