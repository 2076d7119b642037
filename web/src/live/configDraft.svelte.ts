import { control } from "../api/control";
import type { ConfigErrorView, ConfigView, ConfigWriteResult } from "../api/control.types";
import { ApiError } from "../api/http";

/** The config of an instance while it is being edited. It can only be saved over the version that was loaded. */
const VALIDATE_DELAY_MS = 400;

/** Unsaved edits with the version they are based on. They are kept until the page is closed. */
const stashedDrafts = new Map<string, { file: ConfigView; text: string }>();

export class ConfigDraft {
  file = $state.raw<ConfigView | null>(null);
  text = $state("");
  errors = $state.raw<ConfigErrorView[]>([]);
  isChecking = $state(false);
  /** The stored version, if someone else saved in the meantime. */
  conflict = $state.raw<ConfigView | null>(null);
  /** The server's message about secrets in the change. Saving requires a confirmation. */
  secretWarning = $state.raw<string | null>(null);
  writeResult = $state.raw<ConfigWriteResult | null>(null);
  /** The text contains edits that were left unsaved earlier. */
  isRestored = $state(false);
  #validateTimer: ReturnType<typeof setTimeout> | undefined;
  #validation: AbortController | undefined;

  constructor(readonly id: string) {}

  get isChanged() { return this.file !== null && this.text !== this.file.toml; }

  /** Restores unsaved edits, or else loads the stored version. */
  async open() {
    const stashed = stashedDrafts.get(this.id);
    stashedDrafts.delete(this.id);
    if (!stashed) return this.load();
    [this.file, this.isRestored] = [stashed.file, true];
    this.edit(stashed.text);
  }

  /** Keeps unsaved edits for later. Returns whether there were any. */
  stash(): boolean {
    if (this.file && this.isChanged) stashedDrafts.set(this.id, { file: this.file, text: this.text });
    return stashedDrafts.has(this.id);
  }

  async load() {
    this.isRestored = false;
    this.file = await control.config(this.id);
    this.text = this.file.toml;
    this.errors = [];
    this.conflict = null;
  }

  edit(text: string) {
    this.text = text;
    this.isChecking = true;
    clearTimeout(this.#validateTimer);
    this.#validateTimer = setTimeout(() => void this.#validate(text), VALIDATE_DELAY_MS);
  }

  async #validate(text: string) {
    this.#validation?.abort();
    const validation = this.#validation = new AbortController();
    try {
      const result = await control.validateConfig(this.id, text, validation.signal);
      if (validation.signal.aborted) return;
      this.errors = result.valid ? [] : result.errors;
      this.isChecking = false;
    } catch (error) {
      if (validation.signal.aborted) return;
      this.isChecking = false;
      this.errors = error instanceof ApiError ? [{ path: "", message: error.message }] : [];
    }
  }

  /** Returns whether the config was saved. Conflicts and secrets need a decision of the user and are not errors. */
  async save(withSecrets = false): Promise<boolean> {
    if (!this.file) return false;
    this.writeResult = null;
    try {
      this.writeResult = await control.saveConfig(this.id, this.text, this.file.etag, withSecrets);
      this.secretWarning = null;
      await this.load();
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 412) { this.conflict = await control.config(this.id); return false; }
      if (error.code === "secret_write") { this.secretWarning = error.message; return false; }
      throw error;
    }
  }

  /** Rebases the edits onto the stored version. */
  keepMine() {
    if (this.conflict) this.file = this.conflict;
    this.conflict = null;
  }

  takeTheirs() {
    if (this.conflict) { this.file = this.conflict; this.text = this.conflict.toml; }
    this.conflict = null;
    this.errors = [];
  }
}
