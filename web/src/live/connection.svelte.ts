import { request, isUnreachable, ApiError, onReachability } from "../api/http";
import type { ReconnectingSocket, SocketState } from "../api/socket";

/** How all live lines of this page are, taken together: the worst of them is what is shown. */
const WORST_FIRST: SocketState[] = ["polling", "reconnecting", "denied", "connecting", "open", "closed"];
/** Who says nothing for so long is away: a network that is gone tells nobody. */
const HEALTH_TIMEOUT_MS = 10_000;

class ConnectionStatus {
  #states = $state<Record<string, { state: SocketState; retryAt: number | null }>>({});
  #sockets = new Map<string, ReconnectingSocket>();

  /** Nobody answers at all: not only the sockets, the calls fail too. */
  isOffline = $state(false);
  /** When somebody answered last. */
  lastContactAt = $state(Date.now());
  #healthCheck: Promise<void> | null = null;

  constructor() {
    // One call that failed says nothing of the others: it is looked into.
    onReachability((isReachable) => { if (isReachable) this.#markOnline(); else void this.checkServer(); });
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.state !== "open") this.retry(); });
  }

  /** For the owner of a line: tells how it is from now on. */
  track(name: string, getSocket: () => ReconnectingSocket) {
    return (state: SocketState, retryAt: number | null) => {
      if (state === "closed") { delete this.#states[name]; this.#sockets.delete(name); return; }
      this.#sockets.set(name, getSocket());
      this.#states[name] = { state, retryAt };
      if (state === "open") this.#markOnline();
      if (retryAt !== null) void this.checkServer();
    };
  }

  get state(): SocketState {
    const states = Object.values(this.#states).map((one) => one.state);
    return WORST_FIRST.find((state) => states.includes(state)) ?? "open";
  }

  get retryAt(): number | null {
    const times = Object.values(this.#states).flatMap((one) => one.retryAt ?? []);
    return times.length ? Math.min(...times) : null;
  }

  /** Asks whether anybody is there; once for all who want to know. */
  checkServer(): Promise<void> { return this.#healthCheck ??= this.#requestHealth().finally(() => { this.#healthCheck = null; }); }

  async #requestHealth() {
    const startedAt = Date.now();
    const isReachable = await request("GET", "health", { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) }).then(() => true, (problem) => problem instanceof ApiError && !isUnreachable(problem));
    // Somebody else may have been answered meanwhile.
    if (!isReachable && this.lastContactAt <= startedAt) this.isOffline = true;
  }

  #markOnline() {
    const wasOffline = this.isOffline;
    [this.isOffline, this.lastContactAt] = [false, Date.now()];
    // Whoever is back is back for all lines; each would wait for its own turn.
    if (wasOffline) this.retry();
  }

  retry() { for (const line of this.#sockets.values()) line.retry(); }
}

export const connection = new ConnectionStatus();
