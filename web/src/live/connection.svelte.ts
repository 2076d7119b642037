import { answer, isNobody, Problem, whenAnswered } from "../api/http";
import type { Line, LineState } from "../api/line";

/** How all live lines of this page are, taken together: the worst of them is what is shown. */
const ORDER: LineState[] = ["polling", "waiting", "refused", "opening", "open", "closed"];
/** Who says nothing for so long is away: a network that is gone tells nobody. */
const PATIENCE_MS = 10_000;

class Connection {
  #states = $state<Record<string, { state: LineState; retryAt: number | null }>>({});
  #lines = new Map<string, Line>();

  /** Nobody answers at all: not only the sockets, the calls fail too. */
  away = $state(false);
  /** When somebody answered last. */
  heardAt = $state(Date.now());
  #looking: Promise<void> | null = null;

  constructor() {
    // One call that failed says nothing of the others: it is looked into.
    whenAnswered((isThere) => { if (isThere) this.#heard(); else void this.look(); });
    addEventListener("online", () => this.retry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.state !== "open") this.retry(); });
  }

  /** For the owner of a line: tells how it is from now on. */
  join(name: string, line: () => Line) {
    return (state: LineState, retryAt: number | null) => {
      if (state === "closed") { delete this.#states[name]; this.#lines.delete(name); return; }
      this.#lines.set(name, line());
      this.#states[name] = { state, retryAt };
      if (state === "open") this.#heard();
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

  /** Asks whether anybody is there; once for all who want to know. */
  look(): Promise<void> { return this.#looking ??= this.#ask().finally(() => { this.#looking = null; }); }

  async #ask() {
    const began = Date.now();
    const isThere = await answer("GET", "health", { signal: AbortSignal.timeout(PATIENCE_MS) }).then(() => true, (problem) => problem instanceof Problem && !isNobody(problem));
    // Somebody else may have been answered meanwhile.
    if (!isThere && this.heardAt <= began) this.away = true;
  }

  #heard() {
    const wasAway = this.away;
    [this.away, this.heardAt] = [false, Date.now()];
    // Whoever is back is back for all lines; each would wait for its own turn.
    if (wasAway) this.retry();
  }

  retry() { for (const line of this.#lines.values()) line.retry(); }
}

export const connection = new Connection();
