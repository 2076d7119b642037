import { loginProtocols } from "./login";

/** A WebSocket that comes back: after 1, 2, 4, 8, 16 and then every 30 seconds, each a little sooner or later, so that many
    pages do not call at once. After three failures its owner is told to ask by itself meanwhile; where there may be none, at
    once and for good. */
export const PAUSES_S = [1, 2, 4, 8, 16, 30];
export const FAILURES_BEFORE_POLLING = 3;
const POLL_MS = 5000;
/** A server says nothing for at most this long, or it is gone. */
const PING_MS = 30_000;

export type LineState = "opening" | "open" | "waiting" | "polling" | "refused" | "closed";

export interface LineOwner {
  address: () => string;
  opened?: () => void;
  received: (frame: Record<string, unknown>) => void;
  changed?: (state: LineState, retryAt: number | null) => void;
  /** Asked every few seconds while there is no socket. */
  poll?: () => void;
  /** Whether there may be none: what is seen is asked for instead. */
  isRefused?: () => boolean;
  /** Sent now and then, where the server wants to hear something. */
  ping?: () => unknown;
}

export const pause = (failures: number, random = Math.random()): number =>
  PAUSES_S[Math.min(failures, PAUSES_S.length) - 1] * 1000 * (0.8 + 0.4 * random);

export class Line {
  #socket: WebSocket | null = null;
  #failures = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #polling: ReturnType<typeof setInterval> | undefined;
  #pinging: ReturnType<typeof setInterval> | undefined;
  #closed = false;
  #refused = false;

  constructor(readonly owner: LineOwner) {}

  open() {
    this.#closed = this.#refused = false;
    clearTimeout(this.#timer);
    // Not at once: whoever opens it is not done with itself yet.
    if (this.owner.isRefused?.()) { queueMicrotask(() => this.#barred()); return; }
    if (this.#failures === 0) this.#tell("opening");
    this.#socket?.close();
    const socket = this.#socket = new WebSocket(this.owner.address(), loginProtocols());
    socket.onopen = () => { if (socket === this.#socket) this.#opened(); };
    socket.onmessage = (event) => { if (socket === this.#socket) this.owner.received(JSON.parse(String(event.data))); };
    socket.onclose = () => { if (socket === this.#socket) this.#lost(); };
  }

  send(frame: unknown): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** Tries at once: somebody asked, or the server is back. One that is being opened is waited for. */
  retry() {
    const isGoingOn = this.#socket !== null && this.#socket.readyState <= WebSocket.OPEN;
    if (!this.#closed && !this.#refused && !isGoingOn) this.open();
  }

  close() {
    this.#closed = true;
    this.#quiet();
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
    this.#tell("closed");
  }

  #opened() {
    this.#failures = 0;
    this.#quiet();
    const { ping } = this.owner;
    if (ping) this.#pinging = setInterval(() => this.send(ping()), PING_MS);
    this.#tell("open");
    this.owner.opened?.();
  }

  #lost() {
    if (this.#closed) return;
    clearInterval(this.#pinging);
    this.#failures += 1;
    const wait = pause(this.#failures);
    const isPolling = this.#failures >= FAILURES_BEFORE_POLLING && this.owner.poll !== undefined;
    if (isPolling) this.#poll();
    this.#tell(isPolling ? "polling" : "waiting", Date.now() + wait);
    this.#timer = setTimeout(() => this.open(), wait);
  }

  #barred() {
    if (this.#closed) return;
    this.#refused = true;
    this.#poll();
    this.#tell("refused");
  }

  #poll() {
    if (this.#polling) return;
    this.owner.poll?.();
    this.#polling = setInterval(() => this.owner.poll?.(), POLL_MS);
  }

  #quiet() {
    clearInterval(this.#polling);
    clearInterval(this.#pinging);
    this.#polling = this.#pinging = undefined;
  }

  #tell(state: LineState, retryAt: number | null = null) {
    this.owner.changed?.(state, retryAt);
  }
}
