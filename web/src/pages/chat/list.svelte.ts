import type { Instance } from "../../api/instance";
import type { SessionView } from "../../api/instance.types";

const PAGE = 100;

/** The newest page, then what is known of older ones. Whatever happens in a session brings it to the front, so what is not
    on the page and not older than it is gone. */
export function merged(page: SessionView[], known: SessionView[]): SessionView[] {
  const [keys, oldest] = [new Set(page.map((one) => one.session_key)), page.at(-1)?.updated_at ?? ""];
  return [...page, ...known.filter((one) => !keys.has(one.session_key) && one.updated_at <= oldest)];
}

/** Sessions, the newest first, as many as were scrolled to. */
export class SessionList {
  all = $state.raw<SessionView[]>([]);
  loaded = $state(false);
  #cursor = $state<string | null>(null);
  #busy = false;

  constructor(readonly instance: Instance) {}

  /** There are older ones that were not read. */
  get hasMore(): boolean { return this.#cursor !== null; }

  async load() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      const page = await this.instance.sessions({ limit: PAGE });
      const isFirst = !this.loaded;
      this.all = merged(page.sessions, page.next_cursor ? this.all : []);
      if (isFirst || !page.next_cursor) this.#cursor = page.next_cursor ?? null;
      this.loaded = true;
    } finally { this.#busy = false; }
  }

  /** They are gone, or soon will be. */
  drop(keys: string[]) { this.all = this.all.filter((one) => !keys.includes(one.session_key)); }

  async more() {
    if (this.#busy || !this.#cursor) return;
    this.#busy = true;
    try {
      const page = await this.instance.sessions({ limit: PAGE * 2, cursor: this.#cursor });
      const known = new Set(this.all.map((one) => one.session_key));
      this.all = [...this.all, ...page.sessions.filter((one) => !known.has(one.session_key))];
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#busy = false; }
  }
}
