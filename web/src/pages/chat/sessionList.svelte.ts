import type { InstanceApi } from "../../api/instance";
import type { SessionView } from "../../api/instance.types";

const PAGE_SIZE = 100;

/** Merges the newest page with older sessions. Every change moves a session to the front, so a session that is neither on
    the page nor older than the page was deleted. */
export function mergeSessions(page: SessionView[], known: SessionView[]): SessionView[] {
  const [keys, oldest] = [new Set(page.map((one) => one.session_key)), page.at(-1)?.updated_at ?? ""];
  return [...page, ...known.filter((one) => !keys.has(one.session_key) && one.updated_at <= oldest)];
}

/** Sessions, newest first, as many as the user has scrolled to. */
export class SessionList {
  sessions = $state.raw<SessionView[]>([]);
  isLoaded = $state(false);
  #cursor = $state<string | null>(null);
  #isBusy = false;

  constructor(readonly instance: InstanceApi) {}

  /** There are older sessions that are not loaded. */
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

  /** Removes sessions that are deleted or being deleted. */
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
