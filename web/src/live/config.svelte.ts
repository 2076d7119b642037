import { control } from "../api/control";
import type { ConfigErrorView, ConfigView, ConfigWriteResult } from "../api/control.types";
import { Problem } from "../api/http";

/** The config of an instance while somebody edits it. It is saved only onto the version that was read. */
const PAUSE_MS = 400;

/** Edits that somebody left unsaved, with the version they were made on. They last as long as the page. */
const kept = new Map<string, { file: ConfigView; text: string }>();

export class Draft {
  file = $state.raw<ConfigView | null>(null);
  text = $state("");
  errors = $state.raw<ConfigErrorView[]>([]);
  checking = $state(false);
  /** What is stored now, if somebody else saved meanwhile. */
  conflict = $state.raw<ConfigView | null>(null);
  /** Secrets that the change would write; a person must say so. */
  secrets = $state.raw<string | null>(null);
  written = $state.raw<ConfigWriteResult | null>(null);
  /** These are edits that were left unsaved before. */
  resumed = $state(false);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #check: AbortController | undefined;

  constructor(readonly id: string) {}

  get changed() { return this.file !== null && this.text !== this.file.toml; }

  /** What was left unsaved, or what is stored. */
  async open() {
    const left = kept.get(this.id);
    kept.delete(this.id);
    if (!left) return this.load();
    [this.file, this.resumed] = [left.file, true];
    this.edit(left.text);
  }

  /** Whether there was something to keep. */
  leave(): boolean {
    if (this.file && this.changed) kept.set(this.id, { file: this.file, text: this.text });
    return kept.has(this.id);
  }

  async load() {
    this.resumed = false;
    this.file = await control.config(this.id);
    this.text = this.file.toml;
    this.errors = [];
    this.conflict = null;
  }

  edit(text: string) {
    this.text = text;
    this.checking = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#validate(text), PAUSE_MS);
  }

  async #validate(text: string) {
    this.#check?.abort();
    const check = this.#check = new AbortController();
    try {
      const found = await control.validate(this.id, text, check.signal);
      if (check.signal.aborted) return;
      this.errors = found.valid ? [] : found.errors;
      this.checking = false;
    } catch (problem) {
      if (check.signal.aborted) return;
      this.checking = false;
      this.errors = problem instanceof Problem ? [{ path: "", message: problem.message }] : [];
    }
  }

  /** Whether it is saved. A conflict and a secret are questions, not errors. */
  async save(withSecrets = false): Promise<boolean> {
    if (!this.file) return false;
    this.written = null;
    try {
      this.written = await control.saveConfig(this.id, this.text, this.file.etag, withSecrets);
      this.secrets = null;
      await this.load();
      return true;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (problem.status === 412) { this.conflict = await control.config(this.id); return false; }
      if (problem.code === "secret_write") { this.secrets = problem.message; return false; }
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
