/** Light or dark: what the person chose here, else what their system says. */
export type Theme = "light" | "dark";
const STORED = "polyclaw.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

class Look {
  #chosen = $state<Theme | null>(localStorage.getItem(STORED) as Theme | null);
  #system = $state<Theme>(system.matches ? "dark" : "light");

  constructor() {
    system.addEventListener("change", () => { this.#system = system.matches ? "dark" : "light"; this.show(); });
  }

  get name(): Theme { return this.#chosen ?? this.#system; }

  toggle() {
    this.#chosen = this.name === "dark" ? "light" : "dark";
    localStorage.setItem(STORED, this.#chosen);
    this.show();
  }

  show() { document.documentElement.dataset.theme = this.name; }
}

export const look = new Look();
