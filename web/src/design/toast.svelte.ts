import { layers } from "./layer.svelte";

/** Short news. It goes by itself, a problem later than the rest; one of a dialog stays until it is tried again or closed. */
export interface Toast { id: number; tone: "ok" | "bad" | "info"; text: string; hint?: string; /** The dialog it is of. */ layer: string | null }

const LASTS_MS = { ok: 5000, info: 5000, bad: 15_000 };
const LOOK_AGAIN_MS = 2000;

class Toasts {
  list = $state<Toast[]>([]);
  /** Somebody reads: nothing goes under their eyes. */
  held = false;
  #next = 0;

  add(tone: Toast["tone"], text: string, hint?: string) {
    // Said again, it is seen again: what stood there may have been read long ago.
    this.list = this.list.filter((one) => one.text !== text || one.tone !== tone || one.hint !== hint);
    const [id, layer] = [this.#next++, layers.top];
    this.list = [...this.list.slice(-3), { id, tone, text, hint, layer }];
    if (tone !== "bad" || layer === null) this.#expire(id, LASTS_MS[tone]);
  }

  drop(id: number) {
    this.list = this.list.filter((one) => one.id !== id);
  }

  /** What went wrong there is told of something that is over. */
  forget(layer: string | null) {
    this.list = this.list.filter((one) => one.tone !== "bad" || one.layer !== layer);
  }

  /** A dialog closes: what went well is seen on the page. */
  left(layer: string) {
    this.forget(layer);
    this.list = this.list.map((one) => (one.layer === layer ? { ...one, layer: null } : one));
  }

  #expire(id: number, ms: number) {
    setTimeout(() => (this.held ? this.#expire(id, LOOK_AGAIN_MS) : this.drop(id)), ms);
  }
}

export const toasts = new Toasts();
export const tell = (text: string) => toasts.add("ok", text);
