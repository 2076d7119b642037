import type { Frame } from "../api/frames";
import type { Instance } from "../api/instance";
import { Line } from "../api/line";
import { connection } from "./connection.svelte";
import { rights } from "./rights.svelte";

/** One socket per instance, for all sessions that are looked at. A reader gets every frame of its session once, or is told
    to read everything again. */
export interface Reader {
  frame: (frame: Frame) => void;
  /** Look at what is stored. With a gap, frames were missed and what streamed so far is not to be relied on. */
  reload: (gap: boolean) => void;
  /** What it shows is not what is stored. */
  stale: () => boolean;
}

interface Watched { readers: Set<Reader>; last: number; epoch: string | null }

export class Wire {
  #watched = new Map<string, Watched>();
  #line: Line;
  #next = 0;
  #asked = new Map<number, string>();
  #resting: ReturnType<typeof setTimeout> | undefined;
  #isOpen = false;

  constructor(instance: Instance) {
    const tell = connection.join(`instance ${instance.id}`, () => this.#line);
    this.#line = new Line({
      address: () => instance.socket,
      opened: () => { this.#asked.clear(); for (const key of this.#watched.keys()) this.#subscribe(key); },
      received: (frame) => this.#received(frame),
      changed: (state, retryAt) => { this.#isOpen = state === "open"; tell(state, retryAt); },
      isRefused: () => !rights.may("operate"),
      poll: () => { for (const watched of this.#watched.values()) reload(watched, false); },
    });
  }

  watch(key: string, reader: Reader): () => void {
    const watched = this.#watched.get(key) ?? { readers: new Set(), last: 0, epoch: null };
    watched.readers.add(reader);
    this.#watched.set(key, watched);
    clearTimeout(this.#resting);
    if (this.#watched.size === 1 && !this.#isOpen) this.#line.open();
    else { watched.last = 0; watched.epoch = null; this.#subscribe(key); }
    return () => this.#drop(key, watched, reader);
  }

  #drop(key: string, watched: Watched, reader: Reader) {
    watched.readers.delete(reader);
    if (watched.readers.size) return;
    this.#watched.delete(key);
    this.#line.send({ type: "req", id: this.#next++, method: "unsubscribe", params: { session_key: key } });
    // Whoever goes from one chat to another needs it again at once.
    if (!this.#watched.size) this.#resting = setTimeout(() => this.#line.close(), 3000);
  }

  #subscribe(key: string) {
    const watched = this.#watched.get(key);
    if (!watched) return;
    const id = this.#next++;
    const from = watched.epoch ? { after: watched.last, epoch: watched.epoch } : { after: 0 };
    this.#asked.set(id, key);
    this.#line.send({ type: "req", id, method: "subscribe", params: { session_key: key, ...from } });
  }

  #received(frame: Record<string, unknown>) {
    if (frame.type === "res") { this.#answered(frame); return; }
    const event = frame as unknown as Frame;
    const key = event.session_key ?? "";
    const watched = this.#watched.get(key);
    if (!watched) return;
    if ("seq" in event) watched.last = event.seq;
    if (event.event === "reader.behind") { this.#subscribe(key); return; }
    if (event.event === "replay.gap") { reload(watched, true); return; }
    for (const reader of watched.readers) reader.frame(event);
  }

  #answered(frame: Record<string, unknown>) {
    const key = this.#asked.get(frame.id as number);
    this.#asked.delete(frame.id as number);
    const result = frame.result as { epoch?: string; seq?: number } | undefined;
    const watched = key === undefined ? undefined : this.#watched.get(key);
    if (!watched || !result?.epoch) return;
    // Another life of the server: what was counted there means nothing here.
    const isOther = watched.epoch !== null && watched.epoch !== result.epoch;
    if (isOther) watched.last = result.seq ?? 0;
    const wasNew = watched.epoch === null;
    watched.epoch = result.epoch;
    for (const reader of watched.readers) if (!wasNew || reader.stale()) reader.reload(isOther);
  }
}

function reload(watched: Watched, gap: boolean) {
  for (const reader of watched.readers) reader.reload(gap);
}

const wires = new Map<string, Wire>();

export function wireOf(instance: Instance): Wire {
  const wire = wires.get(instance.base) ?? new Wire(instance);
  wires.set(instance.base, wire);
  return wire;
}
