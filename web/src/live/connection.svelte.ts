import { request, isUnreachable, ApiError, onReachability } from "../api/http";
import type { ReconnectingSocket, SocketState } from "../api/socket";

/** The combined state of all sockets of this page. The worst one is shown. */
const WORST_FIRST: SocketState[] = ["polling", "reconnecting", "denied", "connecting", "open", "closed"];
/** A server that does not respond within this time is unreachable: a lost network reports no error. */
const HEALTH_TIMEOUT_MS = 10_000;

class ConnectionStatus {
  #states = $state<Record<string, { state: SocketState; retryAt: number | null }>>({});
  #sockets = new Map<string, ReconnectingSocket>();

  /** The server cannot be reached by HTTP either. */
  isOffline = $state(false);
  /** Time of the last response. */
  lastContactAt = $state(Date.now());
  #healthCheck: Promise<void> | null = null;

  constructor() {
    // A single failed request proves nothing, so the server is checked.
    onReachability((isReachable) => { if (isReachable) this.#markOnline(); else void this.checkServer(); });
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.state !== "open") this.retry(); });
  }

  /** Registers a socket. Returns a function that reports its state. */
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

  /** Checks whether the server can be reached. Concurrent calls share one request. */
  checkServer(): Promise<void> { return this.#healthCheck ??= this.#requestHealth().finally(() => { this.#healthCheck = null; }); }

  async #requestHealth() {
    const startedAt = Date.now();
    const isReachable = await request("GET", "health", { signal: AbortSignal.timeout(HEALTH_TIMEOUT_MS) }).then(() => true, (error) => error instanceof ApiError && !isUnreachable(error));
    // Another request may have succeeded in the meantime.
    if (!isReachable && this.lastContactAt <= startedAt) this.isOffline = true;
  }

  #markOnline() {
    const wasOffline = this.isOffline;
    [this.isOffline, this.lastContactAt] = [false, Date.now()];
    // Reconnect all sockets now instead of waiting for the backoff of each.
    if (wasOffline) this.retry();
  }

  retry() { for (const socket of this.#sockets.values()) socket.retry(); }
}

export const connection = new ConnectionStatus();
