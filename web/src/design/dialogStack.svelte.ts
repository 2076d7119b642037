import { untrack } from "svelte";

/** The open dialogs, the topmost last. Toasts are shown in the topmost dialog, because everything below it is inert. */
class DialogStack {
  #open = $state.raw<string[]>([]);

  get top(): string | null { return this.#open.at(-1) ?? null; }

  // Called by effects, which must not depend on the state that they change here.
  add(id: string) { this.#open = [...untrack(() => this.#open), id]; }
  remove(id: string) { this.#open = untrack(() => this.#open).filter((one) => one !== id); }
}

export const dialogStack = new DialogStack();
