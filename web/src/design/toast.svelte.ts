/** Short news in the corner. A problem stays until it is read; the rest goes by itself. */
export interface Toast { id: number; tone: "ok" | "bad" | "info"; text: string; hint?: string }

const LASTS_MS = 5000;

class Toasts {
  list = $state<Toast[]>([]);
  #next = 0;

  add(tone: Toast["tone"], text: string, hint?: string) {
    const same = this.list.find((one) => one.text === text && one.tone === tone);
    if (same) return;
    const id = this.#next++;
    this.list = [...this.list.slice(-3), { id, tone, text, hint }];
    if (tone !== "bad") setTimeout(() => this.drop(id), LASTS_MS);
  }

  drop(id: number) {
    this.list = this.list.filter((one) => one.id !== id);
  }
}

export const toasts = new Toasts();
export const tell = (text: string) => toasts.add("ok", text);
