import { control } from "../../api/control";
import { HOUR_MS, HOURS, hoursOf } from "./hours";

/** So many of the newest turns are looked at, and so many are kept; what is older is not known then. */
const MOST = 500;
const KEPT = 10_000;

/** What instances did in the last day, whether they run or not. */
export class Activity {
  /** When turns began, the oldest first. */
  #times = $state.raw<Record<string, number[]>>({});
  #since: Record<string, number> = {};
  #counted: Record<string, number> = {};

  /** Reads on, if more was asked of models than when it was read last; who asked nothing did nothing. */
  async look(id: string, requests: number) {
    if (requests === (this.#counted[id] ?? 0)) return;
    const start = Date.now() - HOURS * HOUR_MS;
    const known = (this.#times[id] ?? []).filter((time) => time > start);
    const { tasks, next_cursor } = await control.turns(id, { after: new Date((known.at(-1) ?? start) + 1).toISOString(), limit: MOST });
    const found = tasks.map((one) => Date.parse(one.created_at)).reverse();
    const all = next_cursor ? found : [...known, ...found];
    if (next_cursor || all.length > KEPT) this.#since[id] = all.at(-KEPT) ?? all[0];
    this.#times = { ...this.#times, [id]: all.slice(-KEPT) };
    this.#counted[id] = requests;
  }

  hours(id: string): (number | null)[] { return hoursOf(this.#times[id] ?? [], this.#since[id] ?? 0); }

  /** When the newest turn began. */
  last(id: string): string | null {
    const time = this.#times[id]?.at(-1);
    return time === undefined ? null : new Date(time).toISOString();
  }
}
