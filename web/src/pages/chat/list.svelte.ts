import type { Instance } from "../../api/instance";
import type { SessionView } from "../../api/instance.types";

const PAGE = 100;

/** Sessions, the newest first, as many as were scrolled to. */
export class SessionList {
  all = $state.raw<SessionView[]>([]);
  loaded = $state(false);
  #cursor: string | null = null;
  #wanted = PAGE;
  #busy = false;

  constructor(readonly instance: Instance) {}

  async load() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      const found: SessionView[] = [];
      let cursor: string | null = null;
      do {
        const page = await this.instance.sessions({ limit: Math.min(1000, this.#wanted), cursor });
        found.push(...page.sessions);
        cursor = page.next_cursor ?? null;
      } while (cursor && found.length < this.#wanted);
      this.all = found;
      this.#cursor = cursor;
      this.loaded = true;
    } finally { this.#busy = false; }
  }

  get hasMore() { return this.#cursor !== null; }

  async more() {
    if (this.#busy || !this.#cursor) return;
    this.#busy = true;
    try {
      const page = await this.instance.sessions({ limit: PAGE * 2, cursor: this.#cursor });
      const known = new Set(this.all.map((one) => one.session_key));
      this.all = [...this.all, ...page.sessions.filter((one) => !known.has(one.session_key))];
      this.#wanted = this.all.length;
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#busy = false; }
  }
}
