import type { Frame } from "../api/frames";
import type { InstanceApi } from "../api/instance";
import { ReconnectingSocket } from "../api/socket";
import { connection } from "./connection.svelte";
import { permissions } from "./permissions.svelte";

/** Frames of all open sessions of an instance over one socket. A listener gets every frame once, or is asked to reload. */
export interface SessionListener {
  onFrame: (frame: Frame) => void;
  /** Reload the stored data. With a gap, frames were missed and the streamed text is incomplete. */
  reload: (gap: boolean) => void;
  /** Whether the last load failed. */
  isStale: () => boolean;
}

interface WatchedSession { listeners: Set<SessionListener>; lastSeq: number; epoch: string | null }

export class SessionFeed {
  #watched = new Map<string, WatchedSession>();
  #socket: ReconnectingSocket;
  #nextRequestId = 0;
  #pendingRequests = new Map<number, string>();
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #isOpen = false;

  constructor(instance: InstanceApi) {
    const setState = connection.track(`instance ${instance.id}`, () => this.#socket);
    this.#socket = new ReconnectingSocket({
      url: () => instance.socketUrl,
      onOpen: () => { this.#pendingRequests.clear(); for (const key of this.#watched.keys()) this.#sendSubscribe(key); },
      onMessage: (frame) => this.#handleMessage(frame),
      onStateChange: (state, retryAt) => { this.#isOpen = state === "open"; setState(state, retryAt); },
      isDenied: () => !permissions.allows("operate"),
      poll: () => { for (const watched of this.#watched.values()) reload(watched, false); },
    });
  }

  subscribe(key: string, listener: SessionListener): () => void {
    const watched = this.#watched.get(key) ?? { listeners: new Set(), lastSeq: 0, epoch: null };
    watched.listeners.add(listener);
    this.#watched.set(key, watched);
    clearTimeout(this.#closeTimer);
    if (this.#watched.size === 1 && !this.#isOpen) this.#socket.open();
    else { watched.lastSeq = 0; watched.epoch = null; this.#sendSubscribe(key); }
    return () => this.#unsubscribe(key, watched, listener);
  }

  #unsubscribe(key: string, watched: WatchedSession, listener: SessionListener) {
    watched.listeners.delete(listener);
    if (watched.listeners.size) return;
    this.#watched.delete(key);
    this.#socket.send({ type: "req", id: this.#nextRequestId++, method: "unsubscribe", params: { session_key: key } });
    // Stays open for a moment, because the next chat needs it too.
    if (!this.#watched.size) this.#closeTimer = setTimeout(() => this.#socket.close(), 3000);
  }

  #sendSubscribe(key: string) {
    const watched = this.#watched.get(key);
    if (!watched) return;
    const id = this.#nextRequestId++;
    const from = watched.epoch ? { after: watched.lastSeq, epoch: watched.epoch } : { after: 0 };
    this.#pendingRequests.set(id, key);
    this.#socket.send({ type: "req", id, method: "subscribe", params: { session_key: key, ...from } });
  }

  #handleMessage(frame: Record<string, unknown>) {
    if (frame.type === "res") { this.#handleResponse(frame); return; }
    const event = frame as unknown as Frame;
    const key = event.session_key ?? "";
    const watched = this.#watched.get(key);
    if (!watched) return;
    if ("seq" in event) watched.lastSeq = event.seq;
    if (event.event === "reader.behind") { this.#sendSubscribe(key); return; }
    if (event.event === "replay.gap") { reload(watched, true); return; }
    for (const listener of watched.listeners) listener.onFrame(event);
  }

  #handleResponse(frame: Record<string, unknown>) {
    const key = this.#pendingRequests.get(frame.id as number);
    this.#pendingRequests.delete(frame.id as number);
    const result = frame.result as { epoch?: string; seq?: number } | undefined;
    const watched = key === undefined ? undefined : this.#watched.get(key);
    if (!watched || !result?.epoch) return;
    // The server was restarted, so the old sequence numbers are invalid.
    const isNewEpoch = watched.epoch !== null && watched.epoch !== result.epoch;
    if (isNewEpoch) watched.lastSeq = result.seq ?? 0;
    const wasNew = watched.epoch === null;
    watched.epoch = result.epoch;
    for (const listener of watched.listeners) if (!wasNew || listener.isStale()) listener.reload(isNewEpoch);
  }
}

function reload(watched: WatchedSession, gap: boolean) {
  for (const listener of watched.listeners) listener.reload(gap);
}

const feeds = new Map<string, SessionFeed>();

export function sessionFeed(instance: InstanceApi): SessionFeed {
  const feed = feeds.get(instance.base) ?? new SessionFeed(instance);
  feeds.set(instance.base, feed);
  return feed;
}
