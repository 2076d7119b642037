import { control, sockets, type EnvelopeFilter } from "../api/control";
import type { Envelope } from "../api/control.types";
import { ReconnectingSocket } from "../api/socket";
import { connection } from "./connection.svelte";

export type EnvelopeBox = "all" | "in" | "out" | "dead";
export type EnvelopeQuery = Pick<EnvelopeFilter, "type" | "state" | "after">;

/** Messages between instances, newest first. The list is reloaded shortly after each change. */
const RELOAD_DELAY_MS = 300;

export class EnvelopeStore {
  list = $state.raw<Envelope[]>([]);
  isLoaded = $state(false);
  box = $state<EnvelopeBox>("all");
  query: EnvelopeQuery = {};
  /** Number of changes, for views that show details of a message. */
  changeCount = $state(0);
  #cursor: string | null = null;
  #isLoadingMore = false;
  #reloadTimer: ReturnType<typeof setTimeout> | undefined;
  #socket: ReconnectingSocket;

  constructor(readonly instance: string | null) {
    const setState = connection.track("messages", () => this.#socket);
    this.#socket = new ReconnectingSocket({
      url: () => sockets.messages(instance ?? undefined),
      onMessage: () => this.#scheduleLoad(),
      onStateChange: setState,
      poll: () => void this.load().catch(() => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#socket.open();
  }

  close() { clearTimeout(this.#reloadTimer); this.#socket.close(); }

  #scheduleLoad() {
    this.#reloadTimer ??= setTimeout(() => { this.#reloadTimer = undefined; this.changeCount += 1; void this.load().catch(() => {}); }, RELOAD_DELAY_MS);
  }

  /** The server filters, so every page is full even if few messages match. */
  #page(cursor: string | null) {
    const instance = this.instance ?? undefined;
    const boxFilter = { all: { instance }, in: { to: instance }, out: { from: instance }, dead: { instance, state: "dead_letter" } }[this.box];
    return control.envelopes({ limit: 200, cursor, ...this.query, ...boxFilter });
  }

  /** Shows another box or another query. */
  async open(box: EnvelopeBox, query: EnvelopeQuery) {
    const isSame = box === this.box && JSON.stringify(query) === JSON.stringify(this.query);
    if (!isSame) [this.box, this.query, this.list, this.isLoaded] = [box, query, [], false];
    await this.load();
  }

  async load() {
    const [box, query] = [this.box, this.query];
    const page = await this.#page(null);
    if (box !== this.box || query !== this.query) return;
    this.list = page.messages;
    this.#cursor = page.next_cursor ?? null;
    this.isLoaded = true;
  }

  async loadMore() {
    if (this.#isLoadingMore || !this.#cursor) return;
    this.#isLoadingMore = true;
    const query = this.query;
    try {
      const page = await this.#page(this.#cursor);
      if (query !== this.query) return;
      const known = new Set(this.list.map((one) => one.id));
      this.list = [...this.list, ...page.messages.filter((one) => !known.has(one.id))];
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#isLoadingMore = false; }
  }
}
