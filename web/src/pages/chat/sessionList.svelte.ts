import type { InstanceApi } from "../../api/instance";
import type { SessionView } from "../../api/instance.types";

const PAGE_SIZE = 100;

/** The newest page, then what is known of older ones. Whatever happens in a session brings it to the front, so what is not
    on the page and not older than it is gone. */
export function mergeSessions(page: SessionView[], known: SessionView[]): SessionView[] {
  const [keys, oldest] = [new Set(page.map((one) => one.session_key)), page.at(-1)?.updated_at ?? ""];
  return [...page, ...known.filter((one) => !keys.has(one.session_key) && one.updated_at <= oldest)];
}

/** Sessions, the newest first, as many as were scrolled to. */
export class SessionList {
  sessions = $state.raw<SessionView[]>([]);
  isLoaded = $state(false);
  #cursor = $state<string | null>(null);
  #isBusy = false;

  constructor(readonly instance: InstanceApi) {}

  /** There are older ones that were not read. */
  get hasMore(): boolean { return this.#cursor !== null; }

  async load() {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      const page = await this.instance.sessions({ limit: PAGE_SIZE });
      const isFirst = !this.isLoaded;
      this.sessions = mergeSessions(page.sessions, page.next_cursor ? this.sessions : []);
      if (isFirst || !page.next_cursor) this.#cursor = page.next_cursor ?? null;
      this.isLoaded = true;
    } finally { this.#isBusy = false; }
  }

  /** They are gone, or soon will be. */
  remove(keys: string[]) { this.sessions = this.sessions.filter((one) => !keys.includes(one.session_key)); }

  async loadMore() {
    if (this.#isBusy || !this.#cursor) return;
    this.#isBusy = true;
    try {
      const page = await this.instance.sessions({ limit: PAGE_SIZE * 2, cursor: this.#cursor });
      const known = new Set(this.sessions.map((one) => one.session_key));
      this.sessions = [...this.sessions, ...page.sessions.filter((one) => !known.has(one.session_key))];
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#isBusy = false; }
  }
}
