/** Light or dark theme: the user's selection, or else the system's setting. */
export type Theme = "light" | "dark";
const STORAGE_KEY = "polyclaw.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

class ThemeSetting {
  #chosen = $state<Theme | null>(localStorage.getItem(STORAGE_KEY) as Theme | null);
  #system = $state<Theme>(system.matches ? "dark" : "light");

  constructor() {
    system.addEventListener("change", () => { this.#system = system.matches ? "dark" : "light"; this.apply(); });
  }

  get current(): Theme { return this.#chosen ?? this.#system; }

  toggle() {
    this.#chosen = this.current === "dark" ? "light" : "dark";
    localStorage.setItem(STORAGE_KEY, this.#chosen);
    this.apply();
  }

  apply() { document.documentElement.dataset.theme = this.current; }
}

export const theme = new ThemeSetting();
