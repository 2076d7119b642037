import { untrack } from "svelte";

/** What lies over the page, the topmost last. What is under a dialog is out of reach, so news is shown on the topmost. */
class DialogStack {
  #open = $state.raw<string[]>([]);

  get top(): string | null { return this.#open.at(-1) ?? null; }

  // Called by effects, which must not run again because of what they change here.
  add(id: string) { this.#open = [...untrack(() => this.#open), id]; }
  remove(id: string) { this.#open = untrack(() => this.#open).filter((one) => one !== id); }
}

export const dialogStack = new DialogStack();
