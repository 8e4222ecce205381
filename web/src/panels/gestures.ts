// Wheel and touch on charts. Dragging with a mouse is the selection of uPlot.

export interface Gestures {
  /** Zooms around a point at a fraction of the width, 0 to 1. */
  zoom(factor: number, at: number): void;
  /** Moves by a fraction of the range. */
  pan(share: number): void;
}

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

function listenToTouch(element: HTMLElement, to: Gestures): void {
  const fingers = new Map<number, number>();
  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && chartAt(event.target)) fingers.set(event.pointerId, event.clientX);
  });
  element.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    const over = chartAt(event.target);
    if (before === undefined || !over) return;
    const box = over.getBoundingClientRect();
    if (fingers.size === 1) {
      to.pan((before - event.clientX) / box.width);
    } else {
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1] ?? before;
      const [was, is] = [Math.abs(before - other), Math.abs(event.clientX - other)];
      if (was > 8 && is > 8) to.zoom(was / is, ((event.clientX + other) / 2 - box.left) / box.width);
    }
    fingers.set(event.pointerId, event.clientX);
  });
  const lifted = (event: PointerEvent) => void fingers.delete(event.pointerId);
  for (const name of ["pointerup", "pointercancel", "pointerleave"] as const) element.addEventListener(name, lifted);
}
