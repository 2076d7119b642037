import { control, sockets, type EnvelopeFilter } from "../api/control";
import type { Envelope } from "../api/control.types";
import { Line } from "../api/line";
import { connection } from "./connection.svelte";

export type Box = "all" | "in" | "out" | "dead";
export type Wanted = Pick<EnvelopeFilter, "type" | "state" | "after">;

/** Messages between instances, the newest first, read again shortly after something happened to one. */
const SOON_MS = 300;

export class Envelopes {
  list = $state.raw<Envelope[]>([]);
  loaded = $state(false);
  box = $state<Box>("all");
  wanted: Wanted = {};
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

  /** The server looks: a page of what fits is a page, however rare it is. */
  #page(cursor: string | null) {
    const instance = this.instance ?? undefined;
    const place = { all: { instance }, in: { to: instance }, out: { from: instance }, dead: { instance, state: "dead_letter" } }[this.box];
    return control.envelopes({ limit: 200, cursor, ...this.wanted, ...place });
  }

  /** Shows another box, or those of it that are looked for; what was shown before is not of it. */
  async open(box: Box, wanted: Wanted) {
    const isSame = box === this.box && JSON.stringify(wanted) === JSON.stringify(this.wanted);
    if (!isSame) [this.box, this.wanted, this.list, this.loaded] = [box, wanted, [], false];
    await this.load();
  }

  async load() {
    const [box, wanted] = [this.box, this.wanted];
    const page = await this.#page(null);
    if (box !== this.box || wanted !== this.wanted) return;
    this.list = page.messages;
    this.#cursor = page.next_cursor ?? null;
    this.loaded = true;
  }

  async more() {
    if (this.#busy || !this.#cursor) return;
    this.#busy = true;
    const wanted = this.wanted;
    try {
      const page = await this.#page(this.#cursor);
      if (wanted !== this.wanted) return;
      const known = new Set(this.list.map((one) => one.id));
      this.list = [...this.list, ...page.messages.filter((one) => !known.has(one.id))];
      this.#cursor = page.next_cursor ?? null;
    } finally { this.#busy = false; }
  }
}
