import { onDestroy } from "svelte";
import { sockets } from "../api/control";
import { isUnreachable } from "../api/http";
import { ReconnectingSocket } from "../api/socket";
import { connection } from "./connection.svelte";
import { STANDALONE_ID, server } from "./server.svelte";
import { showError } from "./errors";
import { permissions } from "./permissions.svelte";

/** Change notifications for all views that show lists, over one shared socket. An instance reports changes in its sessions.
    A control plane reports the events of one instance or of all. */
export type ChangeSource = { sessionsOf: string } | { eventsOf: string | null };
type ChangeListener = (kind: string) => void;
/** Changes may have been missed. */
const ANY_CHANGE = "*";
const RELOAD_DELAY_MS = 250;
/** For changes that no event reports, and to refresh relative times. */
const FALLBACK_INTERVAL_MS = 30_000;

class ChangeFeed {
  #listeners = new Set<ChangeListener>();
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #socket: ReconnectingSocket;
  #isOpen = false;

  constructor(name: string, source: ChangeSource) {
    const setState = connection.track(`changes of ${name}`, () => this.#socket);
    const isInstanceFeed = "sessionsOf" in source;
    this.#socket = new ReconnectingSocket({
      url: () => (isInstanceFeed ? server.instance(source.sessionsOf).socketUrl : sockets.events(source.eventsOf ?? undefined)),
      onOpen: () => { if (isInstanceFeed) this.#socket.send({ type: "req", id: 0, method: "watch", params: {} }); },
      onMessage: (frame) => this.#notify(changeKind(frame)),
      onStateChange: (state, retryAt) => { this.#isOpen = state !== "closed"; setState(state, retryAt); },
      isDenied: isInstanceFeed ? () => !permissions.allows("operate") : undefined,
      poll: () => this.#notify(ANY_CHANGE),
      ping: isInstanceFeed ? undefined : () => ({ type: "ping" }),
    });
  }

  subscribe(listener: ChangeListener): () => void {
    clearTimeout(this.#closeTimer);
    this.#listeners.add(listener);
    if (!this.#isOpen) this.#socket.open();
    return () => {
      this.#listeners.delete(listener);
      // Stays open for a moment, because the next view often needs it too.
      if (!this.#listeners.size) this.#closeTimer = setTimeout(() => this.#socket.close(), 3000);
    };
  }

  #notify(kind: string | null) {
    if (kind !== null) for (const listener of this.#listeners) listener(kind);
  }
}

/** Control planes and instances both start with a message that names no change. */
function changeKind(frame: Record<string, unknown>): string | null {
  if (frame.type === "snapshot" || frame.type === "res" || frame.event === "reader.behind") return ANY_CHANGE;
  return frame.type === "event" ? String(frame.kind ?? frame.event) : null;
}

const feeds = new Map<string, ChangeFeed>();

function changeFeed(requested: ChangeSource): ChangeFeed {
  // A standalone instance reports everything on its own socket.
  const source = server.mode === "standalone" ? { sessionsOf: STANDALONE_ID } : requested;
  const name = JSON.stringify(source);
  const feed = feeds.get(name) ?? new ChangeFeed(name, source);
  feeds.set(name, feed);
  return feed;
}

/** Runs now, and again shortly after each relevant change, while the view is open and visible. */
export function reloadOnChange(source: ChangeSource, run: () => Promise<unknown>, isRelevant: (kind: string) => boolean = () => true) {
  let [isRunning, isQueued, timer]: [boolean, boolean, ReturnType<typeof setTimeout> | undefined] = [false, false, undefined];
  // An error is shown once, and only before the first successful load. The connection banner reports an unreachable server.
  let suppressErrors = false;
  const handleError = async (error: unknown) => {
    if (!suppressErrors && isUnreachable(error)) await connection.checkServer();
    if (suppressErrors || (connection.isOffline && isUnreachable(error))) return;
    suppressErrors = true;
    showError(error);
  };
  const reload = async () => {
    isQueued = true;
    if (isRunning || document.hidden) return;
    isRunning = true;
    while (isQueued && !document.hidden) {
      isQueued = false;
      await run().then(() => { suppressErrors = true; }, handleError);
    }
    isRunning = false;
  };
  const scheduleReload = () => { timer ??= setTimeout(() => { timer = undefined; void reload(); }, RELOAD_DELAY_MS); };
  const onVisible = () => { if (!document.hidden && isQueued) void reload(); };
  const unsubscribe = changeFeed(source).subscribe((kind) => { if (kind === ANY_CHANGE || isRelevant(kind)) scheduleReload(); });
  const interval = setInterval(reload, FALLBACK_INTERVAL_MS);
  document.addEventListener("visibilitychange", onVisible);
  onDestroy(() => { suppressErrors = true; unsubscribe(); clearTimeout(timer); clearInterval(interval); document.removeEventListener("visibilitychange", onVisible); });
  void reload();
  return reload;
}
