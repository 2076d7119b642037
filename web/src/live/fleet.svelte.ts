import { control, sockets } from "../api/control";
import type { Instance } from "../api/control.types";
import { Line } from "../api/line";
import { connection } from "./connection.svelte";
import { LONE, place } from "./place.svelte";

/** All instances, live. Without a control plane it is the one that serves this page. */
class Fleet {
  list = $state<Instance[]>([]);
  withArchived = $state(false);
  loaded = $state(false);
  #line: Line | null = null;

  start() {
    if (place.mode !== "control" || this.#line) return;
    const tell = connection.join("fleet", () => this.#line as Line);
    this.#line = new Line({
      address: sockets.instances,
      opened: () => { if (this.withArchived) this.#sendArchived(); },
      received: (frame) => this.#take(frame),
      changed: tell,
      poll: () => void this.load().catch(() => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#line.open();
  }

  async load() {
    this.list = await control.instances(this.withArchived);
    this.loaded = true;
  }

  async showArchived(wanted: boolean) {
    this.withArchived = wanted;
    this.#sendArchived();
    await this.load();
  }

  /** By id or by name. */
  find(word: string): Instance | undefined {
    return this.list.find((one) => one.id === word) ?? this.list.find((one) => one.name === word);
  }

  name(id: string): string { return id === LONE ? "" : this.find(id)?.name ?? id; }

  #sendArchived() { this.#line?.send({ type: "set_include_archived", value: this.withArchived }); }

  #take(frame: Record<string, unknown>) {
    if (frame.type === "snapshot") { this.list = frame.instances as Instance[]; this.loaded = true; return; }
    const told = frame.instance as Instance | undefined;
    if (!told) return;
    const isGone = frame.type === "instance_deleted" || (told.archived_at !== null && !this.withArchived);
    const others = this.list.filter((one) => one.id !== told.id);
    if (isGone) { this.list = others; return; }
    const at = this.list.findIndex((one) => one.id === told.id);
    this.list = at < 0 ? [...others, told] : this.list.with(at, told);
  }
}

export const fleet = new Fleet();
