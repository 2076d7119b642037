import { loginProtocols } from "./login";

/** A WebSocket that reconnects after 1, 2, 4, 8, 16 and then every 30 seconds, with jitter so that many pages do not
    reconnect simultaneously. After three failures it calls `poll` until it is connected again. If `isDenied` returns true,
    it never connects and always polls. */
export const RECONNECT_DELAYS_S = [1, 2, 4, 8, 16, 30];
export const FAILURES_BEFORE_POLLING = 3;
const POLL_MS = 5000;
/** Interval of pings, for servers that require them. */
const PING_MS = 30_000;

export type SocketState = "connecting" | "open" | "reconnecting" | "polling" | "denied" | "closed";

export interface SocketHandlers {
  url: () => string;
  onOpen?: () => void;
  onMessage: (frame: Record<string, unknown>) => void;
  onStateChange?: (state: SocketState, retryAt: number | null) => void;
  /** Called every few seconds while there is no socket. */
  poll?: () => void;
  /** Whether the login may not open this socket. If so, `poll` is used instead. */
  isDenied?: () => boolean;
  /** Returns a message that is sent regularly, for servers that require one. */
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
    // Deferred, because the caller of `open` may still be in its constructor.
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

  /** Reconnects immediately, on request or when the server is reachable again. Does nothing while a socket is connecting. */
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
