import { control, sockets } from "../api/control";
import type { Envelope } from "../api/control.types";
import { Line } from "../api/line";
import { connection } from "./connection.svelte";

export type Box = "all" | "in" | "out" | "dead";

/** Messages between instances, the newest first, read again shortly after something happened to one. */
const SOON_MS = 300;

export class Envelopes {
  list = $state.raw<Envelope[]>([]);
  loaded = $state(false);
  box = $state<Box>("all");
  /** Counts what happened, for whoever shows more than the list. */
  news = $state(0);
  #cursor: string | null = null;
  #busy = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #line: Line;

  constructor(readonly instance: string | null) {
    const tell = connection.join("messages", () => this.#line);
    this.#line = new Line({
      address: () => sockets.messages(instance ?? undefined),
      received: () => this.#soon(),
      changed: tell,
      poll: () => void this.load().catch(() => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#line.open();
  }

  close() { clearTimeout(this.#timer); this.#line.close(); }

  #soon() {
    this.#timer ??= setTimeout(() => { this.#timer = undefined; this.news += 1; void this.load().catch(() => {}); }, SOON_MS);
  }

  #page(cursor: string | null) {
    const page = { limit: 200, cursor };
    if (this.box === "dead") return control.deadLetters(page);
    if (this.instance && this.box !== "all") return control.envelopesOf(this.instance, this.box, page);
    return control.envelopes(page);
  }

  /** Shows another box; what was shown before is not of it. */
  async open(box: Box) {
    if (box !== this.box) [this.box, this.list, this.loaded] = [box, [], false];
    await this.load();
  }

  async load() {
    const box = this.box;
    const page = await this.#page(null);
    if (box !== this.box) return;
    const isOfInstance = (one: Envelope) => !this.instance || [one.from, one.to].includes(this.instance);
    this.list = page.messages.filter(isOfInstance);
    this.#cursor = page.next_cursor ?? null;
    this.loaded = true;
  }

  async more() {
    if (this.#busy || !this.#cursor) return;
    this.#busy = true;
    try {
      const page = await this.#page(this.#cursor);
      const known = new Set(this.list.map((one) => one.id));
      this.list = [...this.list, ...page.messages.filter((one) => !known.has(one.id))];
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#busy = false; }
  }
}
