import { control } from "../../api/control";
import { HOUR_MS, HOURS, turnsPerHour } from "./turnsPerHour";

/** So many of the newest turns are looked at, and so many are kept; what is older is not known then. */
const MAX_TURNS_READ = 500;
const MAX_TURNS_KEPT = 10_000;

/** What instances did in the last day, whether they run or not. */
export class FleetActivity {
  /** When turns began, the oldest first. */
  #turnTimes = $state.raw<Record<string, number[]>>({});
  #knownSince: Record<string, number> = {};
  #requestCounts: Record<string, number> = {};

  /** Reads on, if more was asked of models than when it was read last; who asked nothing did nothing. */
  async load(id: string, requests: number) {
    if (requests === (this.#requestCounts[id] ?? 0)) return;
    const start = Date.now() - HOURS * HOUR_MS;
    const known = (this.#turnTimes[id] ?? []).filter((time) => time > start);
    const { tasks, next_cursor } = await control.pastTurns(id, { after: new Date((known.at(-1) ?? start) + 1).toISOString(), limit: MAX_TURNS_READ });
    const found = tasks.map((one) => Date.parse(one.created_at)).reverse();
    const all = next_cursor ? found : [...known, ...found];
    if (next_cursor || all.length > MAX_TURNS_KEPT) this.#knownSince[id] = all.at(-MAX_TURNS_KEPT) ?? all[0];
    this.#turnTimes = { ...this.#turnTimes, [id]: all.slice(-MAX_TURNS_KEPT) };
    this.#requestCounts[id] = requests;
  }

  turnsPerHour(id: string): (number | null)[] { return turnsPerHour(this.#turnTimes[id] ?? [], this.#knownSince[id] ?? 0); }

  /** When the newest turn began. */
  lastTurn(id: string): string | null {
    const time = this.#turnTimes[id]?.at(-1);
    return time === undefined ? null : new Date(time).toISOString();
  }
}
