// Creates elements. Text is always inserted as text, never as markup.

type Content = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

function fill(element: Element, attributes: Attributes, contents: Content[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as (event: Event) => void);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const content of contents) if (content) element.append(content);
}

/** An HTML element. Attributes that are functions become listeners for the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...contents: Content[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, contents);
  return element;
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...contents: Content[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, contents);
  return element;
}

/** The URL of the page's icon: a file, or embedded in the page. */
export function pageIcon(): string {
  return document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.href ?? "";
}

/** A line icon of 16 x 16 from the `d` attribute of its path. */
export function icon(d: string): SVGSVGElement {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d }));
}

export const ICONS = {
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  freeze: "M8 1.5v13M2.4 4.8l11.2 6.4M13.6 4.8L2.4 11.2M6 2.5l2 2 2-2M6 13.5l2-2 2 2",
  newest: "M4 3l7 5-7 5zM13 3v10",
  record: "M8 4a4 4 0 1 0 .01 0z",
  label: "M3 3h6l4 5-4 5H3z",
  share: "M6 9a3 3 0 0 0 4 0l3-3a2.8 2.8 0 0 0-4-4L8 3M10 7a3 3 0 0 0-4 0l-3 3a2.8 2.8 0 0 0 4 4l1-1",
  theme: "M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12",
  help: "M6 6a2 2 0 1 1 2.6 2c-.4.2-.6.5-.6 1.2M8 12v.2M8 1.5a6.5 6.5 0 1 0 .01 0z",
  guide: "M3 2.5h8a2 2 0 0 1 2 2v9H5a2 2 0 0 1-2-2zM3 11.5a2 2 0 0 1 2-2h8",
  close: "M4 4l8 8M12 4l-8 8",
  lines: "M2 12l3-5 3 3 3-6 3 3",
  stack: "M2 13h12M2 13V9l4-2 4 1 4-3v8M2 9V6l4-2 4 1 4-3",
  multiples: "M2 3h5v4H2zM9 3h5v4H9zM2 9h5v4H2zM9 9h5v4H9z",
  heat: "M2 3h12v10H2zM2 6.3h12M2 9.6h12M6 3v10M10 3v10M2.5 4.5h3M6.5 8h3M10.5 11.3h3",
  sort: "M3 3h10M3 6.5h7M3 10h4M3 13h2",
  table: "M2 3h12v10H2zM2 7h12M2 10h12M6 3v10",
  download: "M8 2v8M5 7l3 3 3-3M3 13h10",
  open: "M2 4h4l2 2h6v7H2z",
  menu: "M2 4h12M2 8h12M2 12h12",
  warning: "M8 2l6.5 11.5h-13zM8 6.5v3.2M8 11.6v.1",
  check: "M8 1.5a6.5 6.5 0 1 0 .01 0zM5 8.2l2.2 2.2L11 6",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  back: "M7 4L3 8l4 4M3 8h7a3.5 3.5 0 0 1 3 4",
  down: "M4 6l4 4 4-4",
  event: "M8 3.5l4.5 4.5L8 12.5 3.5 8z",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  out: "M7 7m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0M10 10l4 4M5 7h4",
} as const;

/** A button with an icon and an accessible name. */
export function iconButton(name: keyof typeof ICONS, title: string, click: () => void, text = ""): HTMLButtonElement {
  return h("button", { type: "button", class: text ? "button" : "button bare", title, "aria-label": title, click },
    icon(ICONS[name]), text ? h("span", {}, text) : null);
}

/** A link to the guide, which the server of the page has below it. */
export function guideLink(): HTMLAnchorElement {
  return h("a", { class: "button bare", href: "guide/", target: "_blank", rel: "noopener", title: "Guide", "aria-label": "Guide" }, icon(ICONS.guide));
}
