
const WIDTH = 1200, CHARACTER = 6.7;
const frames = Array.from(document.querySelectorAll("g.f"), (group) => ({
  group,
  x: +group.dataset.x,
  w: +group.dataset.w,
  level: +group.dataset.l,
  text: group.querySelector("text"),
  rects: Array.from(group.querySelectorAll("rect"), (rect) => ({
    rect,
    x: +rect.getAttribute("x"),
    w: +rect.getAttribute("width"),
  })),
}));

function label(frame, x, width) {
  const name = frame.text.dataset.n;
  const room = Math.floor((width - 6) / CHARACTER);
  frame.text.setAttribute("x", x + 3);
  frame.text.textContent = room < 3 ? "" : name.length <= room ? name : name.slice(0, room - 1) + "…";
}

function zoom(to) {
  const scale = WIDTH / to.w;
  for (const frame of frames) {
    const isOuter = frame.level < to.level && frame.x <= to.x + 0.01 && frame.x + frame.w >= to.x + to.w - 0.01;
    const isInside = frame.level >= to.level && frame.x >= to.x - 0.01 && frame.x + frame.w <= to.x + to.w + 0.01;
    frame.group.style.display = isOuter || isInside ? "" : "none";
    frame.group.classList.toggle("outer", isOuter);
    const start = isOuter ? frame.x : to.x;
    const factor = isOuter ? WIDTH / frame.w : scale;
    for (const part of frame.rects) {
      part.rect.setAttribute("x", (part.x - start) * factor);
      part.rect.setAttribute("width", part.w * factor);
    }
    label(frame, (frame.x - start) * factor, frame.w * factor);
  }
}

for (const frame of frames) frame.group.addEventListener("click", () => zoom(frame));
