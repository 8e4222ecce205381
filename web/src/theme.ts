// Light or dark: the system's preference until the user chooses.

const KEY = "numakit-theme";

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Applies the chosen theme. */
export function applyTheme(): void {
  const chosen = stored();
  if (chosen) document.documentElement.dataset.theme = chosen;
}

export function switchTheme(): void {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem(KEY, dark ? "light" : "dark");
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

/** Calls `changed` when the system's preference changes, until the returned function is called. */
export function followSystem(changed: () => void): () => void {
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", changed);
  return () => preference.removeEventListener("change", changed);
}
