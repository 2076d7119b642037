import { dialogStack } from "./dialogStack.svelte";

/** Short news. It goes by itself, a problem later than the rest; one of a dialog stays until it is tried again or closed. */
export interface Toast { id: number; tone: "ok" | "error" | "info"; text: string; hint?: string; /** The dialog it is of. */ dialog: string | null }

const DURATIONS_MS = { ok: 5000, info: 5000, error: 15_000 };
const PAUSED_RECHECK_MS = 2000;

class ToastList {
  list = $state<Toast[]>([]);
  /** Somebody reads: nothing goes under their eyes. */
  isPaused = false;
  #next = 0;

  add(tone: Toast["tone"], text: string, hint?: string) {
    // Said again, it is seen again: what stood there may have been read long ago.
    this.list = this.list.filter((one) => one.text !== text || one.tone !== tone || one.hint !== hint);
    const [id, dialog] = [this.#next++, dialogStack.top];
    this.list = [...this.list.slice(-3), { id, tone, text, hint, dialog: dialog }];
    if (tone !== "error" || dialog === null) this.#expire(id, DURATIONS_MS[tone]);
  }

  remove(id: number) {
    this.list = this.list.filter((one) => one.id !== id);
  }

  /** What went wrong there is told of something that is over. */
  clearErrors(dialog: string | null) {
    this.list = this.list.filter((one) => one.tone !== "error" || one.dialog !== dialog);
  }

  /** A dialog closes: what went well is seen on the page. */
  handleDialogClosed(dialog: string) {
    this.clearErrors(dialog);
    this.list = this.list.map((one) => (one.dialog === dialog ? { ...one, dialog: null } : one));
  }

  #expire(id: number, ms: number) {
    setTimeout(() => (this.isPaused ? this.#expire(id, PAUSED_RECHECK_MS) : this.remove(id)), ms);
  }
}

export const toasts = new ToastList();
export const showToast = (text: string) => toasts.add("ok", text);
