// Light or dark: the system's preference until the user chooses.

const KEY = "numakit-theme";

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export type Theme = "" | "light" | "dark";

/** Applies the theme of the address, or the one that was chosen before; returns it, empty if none was. */
export function applyTheme(address: Theme = ""): Theme {
  const before = stored();
  const chosen = address || (before === "light" || before === "dark" ? before : "");
  if (chosen) document.documentElement.dataset.theme = chosen;
  return chosen;
}

/** Switches and returns the theme. */
export function switchTheme(): Theme {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
  const theme = dark ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
  return theme;
}

/** Calls `changed` when the system's preference changes, until the returned function is called. */
export function followSystem(changed: () => void): () => void {
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", changed);
  return () => preference.removeEventListener("change", changed);
}
