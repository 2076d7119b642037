import { onDestroy } from "svelte";
import { sockets } from "../api/control";
import { isUnreachable } from "../api/http";
import { ReconnectingSocket } from "../api/socket";
import { connection } from "./connection.svelte";
import { STANDALONE_ID, server } from "./server.svelte";
import { showError } from "./errors";
import { permissions } from "./permissions.svelte";

/** What happens: one socket for all views that show lists, which read them again. An instance tells what goes on in its
    sessions; a control plane what instances record, one of them or all. */
export type ChangeSource = { sessionsOf: string } | { eventsOf: string | null };
type ChangeListener = (kind: string) => void;
/** Something may have happened that was not heard. */
const ANY_CHANGE = "*";
const RELOAD_DELAY_MS = 250;
/** For what no event tells, and so that times stay true. */
const FALLBACK_INTERVAL_MS = 30_000;

class ChangeFeed {
  #listeners = new Set<ChangeListener>();
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #socket: ReconnectingSocket;
  #isOpen = false;

  constructor(name: string, source: ChangeSource) {
    const setState = connection.track(`news of ${name}`, () => this.#socket);
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
      // Whoever goes from one view to another needs it again at once.
      if (!this.#listeners.size) this.#closeTimer = setTimeout(() => this.#socket.close(), 3000);
    };
  }

  #notify(kind: string | null) {
    if (kind !== null) for (const listener of this.#listeners) listener(kind);
  }
}

/** Both begin with what is not said. */
function changeKind(frame: Record<string, unknown>): string | null {
  if (frame.type === "snapshot" || frame.type === "res" || frame.event === "reader.behind") return ANY_CHANGE;
  return frame.type === "event" ? String(frame.kind ?? frame.event) : null;
}

const feeds = new Map<string, ChangeFeed>();

function changeFeed(requested: ChangeSource): ChangeFeed {
  // An instance alone tells all there is.
  const source = server.mode === "standalone" ? { sessionsOf: STANDALONE_ID } : requested;
  const name = JSON.stringify(source);
  const feed = feeds.get(name) ?? new ChangeFeed(name, source);
  feeds.set(name, feed);
  return feed;
}

/** Runs now, and again shortly after something happened that is wanted, while a view is open and in sight. */
export function reloadOnChange(source: ChangeSource, run: () => Promise<unknown>, isRelevant: (kind: string) => boolean = () => true) {
  let [isRunning, isQueued, timer]: [boolean, boolean, ReturnType<typeof setTimeout> | undefined] = [false, false, undefined];
  // A view that has nothing says why, once; one that has something is read again later. That nobody is there is said anyway.
  let isErrorShown = false;
  const handleError = async (problem: unknown) => {
    if (!isErrorShown && isUnreachable(problem)) await connection.checkServer();
    if (isErrorShown || (connection.isOffline && isUnreachable(problem))) return;
    isErrorShown = true;
    showError(problem);
  };
  const reload = async () => {
    isQueued = true;
    if (isRunning || document.hidden) return;
    isRunning = true;
    while (isQueued && !document.hidden) {
      isQueued = false;
      await run().then(() => { isErrorShown = true; }, handleError);
    }
    isRunning = false;
  };
  const scheduleReload = () => { timer ??= setTimeout(() => { timer = undefined; void reload(); }, RELOAD_DELAY_MS); };
  const onVisible = () => { if (!document.hidden && isQueued) void reload(); };
  const unsubscribe = changeFeed(source).subscribe((kind) => { if (kind === ANY_CHANGE || isRelevant(kind)) scheduleReload(); });
  const interval = setInterval(reload, FALLBACK_INTERVAL_MS);
  document.addEventListener("visibilitychange", onVisible);
  onDestroy(() => { isErrorShown = true; unsubscribe(); clearTimeout(timer); clearInterval(interval); document.removeEventListener("visibilitychange", onVisible); });
  void reload();
  return reload;
}
