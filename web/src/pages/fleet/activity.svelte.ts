import { control } from "../../api/control";
import { HOUR_MS, HOURS, turnsPerHour } from "./turnsPerHour";

/** Limits on the turns that are read and kept. Older activity is unknown then. */
const MAX_TURNS_READ = 500;
const MAX_TURNS_KEPT = 10_000;

/** Activity of instances in the last day, whether they are running or not. */
export class FleetActivity {
  /** Start times of turns, oldest first. */
  #turnTimes = $state.raw<Record<string, number[]>>({});
  #knownSince: Record<string, number> = {};
  #requestCounts: Record<string, number> = {};

  /** Loads new turns if the number of model requests has changed since the last call. */
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

  /** Start time of the newest turn. */
  lastTurn(id: string): string | null {
    const time = this.#turnTimes[id]?.at(-1);
    return time === undefined ? null : new Date(time).toISOString();
  }
}
