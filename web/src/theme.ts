// Light or dark: as the system says, until somebody chooses.

const KEY = "numakit-theme";

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Puts the chosen theme in force. */
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
    // Without storage the choice lasts as long as the page.
  }
}
