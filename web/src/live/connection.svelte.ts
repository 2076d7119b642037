import { answer, whenAnswered } from "../api/http";
import type { Line, LineState } from "../api/line";

/** How all live lines of this page are, taken together: the worst of them is what is shown. */
const ORDER: LineState[] = ["polling", "waiting", "opening", "open", "closed"];

class Connection {
  #states = $state<Record<string, { state: LineState; retryAt: number | null }>>({});
  #lines = new Map<string, Line>();

  /** Nobody answers at all: not only the sockets, the calls fail too. */
  away = $state(false);
  /** When somebody answered last. */
  heardAt = $state(Date.now());
  #looking = false;

  constructor() {
    whenAnswered((isThere) => this.#heard(isThere));
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.state !== "open") this.retry(); });
  }

  /** For the owner of a line: tells how it is from now on. */
  join(name: string, line: () => Line) {
    return (state: LineState, retryAt: number | null) => {
      if (state === "closed") { delete this.#states[name]; this.#lines.delete(name); return; }
      this.#lines.set(name, line());
      this.#states[name] = { state, retryAt };
      if (state === "open") this.#heard(true);
      if (retryAt !== null) void this.look();
    };
  }

  get state(): LineState {
    const states = Object.values(this.#states).map((one) => one.state);
    return ORDER.find((state) => states.includes(state)) ?? "open";
  }

  get retryAt(): number | null {
    const times = Object.values(this.#states).flatMap((one) => one.retryAt ?? []);
    return times.length ? Math.min(...times) : null;
  }

  /** Asks whether anybody is there. */
  async look() {
    if (this.#looking) return;
    this.#looking = true;
    await answer("GET", "health").catch(() => {});
    this.#looking = false;
  }

  #heard(isThere: boolean) {
    this.away = !isThere;
    if (isThere) this.heardAt = Date.now();
  }

  retry() { for (const line of this.#lines.values()) line.retry(); }
}

export const connection = new Connection();
