import { control, sockets } from "../api/control";
import type { Instance } from "../api/control.types";
import { ReconnectingSocket } from "../api/socket";
import { connection } from "./connection.svelte";
import { STANDALONE_ID, server } from "./server.svelte";

/** All instances, updated live. Empty without a control plane. */
class Fleet {
  instances = $state<Instance[]>([]);
  includeArchived = $state(false);
  isLoaded = $state(false);
  #socket: ReconnectingSocket | null = null;

  start() {
    if (server.mode !== "control" || this.#socket) return;
    const setState = connection.track("fleet", () => this.#socket as ReconnectingSocket);
    this.#socket = new ReconnectingSocket({
      url: sockets.instances,
      onOpen: () => { if (this.includeArchived) this.#sendIncludeArchived(); },
      onMessage: (frame) => this.#handleFrame(frame),
      onStateChange: setState,
      poll: () => void this.load().catch(() => {}),
      ping: () => ({ type: "ping" }),
    });
    this.#socket.open();
  }

  async load() {
    this.instances = await control.instances(this.includeArchived);
    this.isLoaded = true;
  }

  async setIncludeArchived(include: boolean) {
    this.includeArchived = include;
    this.#sendIncludeArchived();
    await this.load();
  }

  /** Finds an instance by id or name. */
  find(idOrName: string): Instance | undefined {
    return this.instances.find((one) => one.id === idOrName) ?? this.instances.find((one) => one.name === idOrName);
  }

  nameOf(id: string): string { return id === STANDALONE_ID ? "" : this.find(id)?.name ?? id; }

  #sendIncludeArchived() { this.#socket?.send({ type: "set_include_archived", value: this.includeArchived }); }

  #handleFrame(frame: Record<string, unknown>) {
    if (frame.type === "snapshot") { this.instances = frame.instances as Instance[]; this.isLoaded = true; return; }
    const changed = frame.instance as Instance | undefined;
    if (!changed) return;
    const isRemoved = frame.type === "instance_deleted" || (changed.archived_at !== null && !this.includeArchived);
    const others = this.instances.filter((one) => one.id !== changed.id);
    if (isRemoved) { this.instances = others; return; }
    const at = this.instances.findIndex((one) => one.id === changed.id);
    this.instances = at < 0 ? [...others, changed] : this.instances.with(at, changed);
  }
}

export const fleet = new Fleet();
