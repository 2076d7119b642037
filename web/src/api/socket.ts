import { loginProtocols } from "./login";

/** A WebSocket that comes back: after 1, 2, 4, 8, 16 and then every 30 seconds, each a little sooner or later, so that many
    pages do not call at once. After three failures its owner is told to ask by itself meanwhile; where there may be none, at
    once and for good. */
export const RECONNECT_DELAYS_S = [1, 2, 4, 8, 16, 30];
export const FAILURES_BEFORE_POLLING = 3;
const POLL_MS = 5000;
/** A server says nothing for at most this long, or it is gone. */
const PING_MS = 30_000;

export type SocketState = "connecting" | "open" | "reconnecting" | "polling" | "denied" | "closed";

export interface SocketHandlers {
  url: () => string;
  onOpen?: () => void;
  onMessage: (frame: Record<string, unknown>) => void;
  onStateChange?: (state: SocketState, retryAt: number | null) => void;
  /** Asked every few seconds while there is no socket. */
  poll?: () => void;
  /** Whether there may be none: what is seen is asked for instead. */
  isDenied?: () => boolean;
  /** Sent now and then, where the server wants to hear something. */
  ping?: () => unknown;
}

export const reconnectDelay = (failures: number, random = Math.random()): number =>
  RECONNECT_DELAYS_S[Math.min(failures, RECONNECT_DELAYS_S.length) - 1] * 1000 * (0.8 + 0.4 * random);

export class ReconnectingSocket {
  #socket: WebSocket | null = null;
  #failures = 0;
  #reconnectTimer: ReturnType<typeof setTimeout> | undefined;
  #pollTimer: ReturnType<typeof setInterval> | undefined;
  #pingTimer: ReturnType<typeof setInterval> | undefined;
  #isClosed = false;
  #isDenied = false;

  constructor(readonly handlers: SocketHandlers) {}

  open() {
    this.#isClosed = this.#isDenied = false;
    clearTimeout(this.#reconnectTimer);
    // Not at once: whoever opens it is not done with itself yet.
    if (this.handlers.isDenied?.()) { queueMicrotask(() => this.#handleDenied()); return; }
    if (this.#failures === 0) this.#reportState("connecting");
    this.#socket?.close();
    const socket = this.#socket = new WebSocket(this.handlers.url(), loginProtocols());
    socket.onopen = () => { if (socket === this.#socket) this.#handleOpen(); };
    socket.onmessage = (event) => { if (socket === this.#socket) this.handlers.onMessage(JSON.parse(String(event.data))); };
    socket.onclose = () => { if (socket === this.#socket) this.#handleClose(); };
  }

  send(frame: unknown): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Tries at once: somebody asked, or the server is back. One that is being opened is waited for. */
  retry() {
    const isActive = this.#socket !== null && this.#socket.readyState <= WebSocket.OPEN;
    if (!this.#isClosed && !this.#isDenied && !isActive) this.open();
  }

  close() {
    this.#isClosed = true;
    this.#stopTimers();
    clearTimeout(this.#reconnectTimer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#reportState("closed");
  }

  #handleOpen() {
    this.#failures = 0;
    this.#stopTimers();
    const { ping } = this.handlers;
    if (ping) this.#pingTimer = setInterval(() => this.send(ping()), PING_MS);
    this.#reportState("open");
    this.handlers.onOpen?.();
  }

  #handleClose() {
    if (this.#isClosed) return;
    clearInterval(this.#pingTimer);
    this.#failures += 1;
    const delay = reconnectDelay(this.#failures);
    const isPolling = this.#failures >= FAILURES_BEFORE_POLLING && this.handlers.poll !== undefined;
    if (isPolling) this.#startPolling();
    this.#reportState(isPolling ? "polling" : "reconnecting", Date.now() + delay);
    this.#reconnectTimer = setTimeout(() => this.open(), delay);
  }

  #handleDenied() {
    if (this.#isClosed) return;
    this.#isDenied = true;
    this.#startPolling();
    this.#reportState("denied");
  }

  #startPolling() {
    if (this.#pollTimer) return;
    this.handlers.poll?.();
    this.#pollTimer = setInterval(() => this.handlers.poll?.(), POLL_MS);
  }

  #stopTimers() {
    clearInterval(this.#pollTimer);
    clearInterval(this.#pingTimer);
    this.#pollTimer = this.#pingTimer = undefined;
  }

  #reportState(state: SocketState, retryAt: number | null = null) {
    this.handlers.onStateChange?.(state, retryAt);
  }
}
