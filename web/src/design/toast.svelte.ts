import { dialogStack } from "./dialogStack.svelte";

/** A toast disappears by itself, errors later than others. An error in a dialog stays until the user tries again or closes
    the dialog. */
export interface Toast { id: number; tone: "ok" | "error" | "info"; text: string; hint?: string; /** The dialog it belongs to, or null for the page. */ dialog: string | null }

const DURATIONS_MS = { ok: 5000, info: 5000, error: 15_000 };
const PAUSED_RECHECK_MS = 2000;

class ToastList {
  list = $state<Toast[]>([]);
  /** The pointer or the focus is on a toast, so none may disappear. */
  isPaused = false;
  #next = 0;

  add(tone: Toast["tone"], text: string, hint?: string) {
    // A repeated toast is added again, because the user may not notice one that is already there.
    this.list = this.list.filter((one) => one.text !== text || one.tone !== tone || one.hint !== hint);
    const [id, dialog] = [this.#next++, dialogStack.top];
    this.list = [...this.list.slice(-3), { id, tone, text, hint, dialog: dialog }];
    if (tone !== "error" || dialog === null) this.#expire(id, DURATIONS_MS[tone]);
  }

  remove(id: number) {
    this.list = this.list.filter((one) => one.id !== id);
  }

  /** Removes errors that no longer apply. */
  clearErrors(dialog: string | null) {
    this.list = this.list.filter((one) => one.tone !== "error" || one.dialog !== dialog);
  }

  /** When a dialog closes, its success messages move to the page. */
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
