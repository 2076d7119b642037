import { control } from "../api/control";
import type { ConfigErrorView, ConfigView, ConfigWriteResult } from "../api/control.types";
import { ApiError } from "../api/http";

/** The config of an instance while somebody edits it. It is saved only onto the version that was read. */
const VALIDATE_DELAY_MS = 400;

/** Edits that somebody left unsaved, with the version they were made on. They last as long as the page. */
const stashedDrafts = new Map<string, { file: ConfigView; text: string }>();

export class ConfigDraft {
  file = $state.raw<ConfigView | null>(null);
  text = $state("");
  errors = $state.raw<ConfigErrorView[]>([]);
  isChecking = $state(false);
  /** What is stored now, if somebody else saved meanwhile. */
  conflict = $state.raw<ConfigView | null>(null);
  /** Secrets that the change would write; a person must say so. */
  secretWarning = $state.raw<string | null>(null);
  writeResult = $state.raw<ConfigWriteResult | null>(null);
  /** These are edits that were left unsaved before. */
  isRestored = $state(false);
  #validateTimer: ReturnType<typeof setTimeout> | undefined;
  #validation: AbortController | undefined;

  constructor(readonly id: string) {}

  get isChanged() { return this.file !== null && this.text !== this.file.toml; }

  /** What was left unsaved, or what is stored. */
  async open() {
    const stashed = stashedDrafts.get(this.id);
    stashedDrafts.delete(this.id);
    if (!stashed) return this.load();
    [this.file, this.isRestored] = [stashed.file, true];
    this.edit(stashed.text);
  }

  /** Whether there was something to keep. */
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
    } catch (problem) {
      if (validation.signal.aborted) return;
      this.isChecking = false;
      this.errors = problem instanceof ApiError ? [{ path: "", message: problem.message }] : [];
    }
  }

  /** Whether it is saved. A conflict and a secret are questions, not errors. */
  async save(withSecrets = false): Promise<boolean> {
    if (!this.file) return false;
    this.writeResult = null;
    try {
      this.writeResult = await control.saveConfig(this.id, this.text, this.file.etag, withSecrets);
      this.secretWarning = null;
      await this.load();
      return true;
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem;
      if (problem.status === 412) { this.conflict = await control.config(this.id); return false; }
      if (problem.code === "secret_write") { this.secretWarning = problem.message; return false; }
      throw problem;
    }
  }

  /** Mine, onto what is stored now. */
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
