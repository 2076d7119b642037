import type { Instance } from "../api/instance";
import type { TeamTaskView, TeamDetail } from "../api/instance.types";

/** A page is what one look at a team costs; the rest is read when it is not what is known. */
const PAGE = 500;
/** Looks after which all is read again: two changes may leave the numbers as they were. */
const LOOKS = 10;
const NUMBERS = ["pending", "blocked", "in_progress", "completed", "failed"] as const;
export type Numbers = Record<(typeof NUMBERS)[number], number>;

/** How many tasks there are of each kind, as the server counts them. */
export function numbersOf({ counts }: Pick<TeamDetail, "counts">): Numbers {
  return Object.fromEntries(NUMBERS.map((name) => [name, Number(counts[name] ?? 0)])) as Numbers;
}
export const allOf = (numbers: Numbers): number => NUMBERS.reduce((sum, name) => sum + numbers[name], 0);

const kindOf = (task: TeamTaskView) => (task.status === "pending" && task.blocked_by.length ? "blocked" : task.status === "claimed" ? "in_progress" : task.status);

/** Whether these are the tasks that the server counts. */
export function isWhole(tasks: TeamTaskView[], numbers: Numbers): boolean {
  return NUMBERS.every((name) => tasks.filter((task) => kindOf(task) === name).length === numbers[name]);
}

/** What was read now, over what was known before; the newest first. */
export function merged(fresh: TeamTaskView[], known: TeamTaskView[]): TeamTaskView[] {
  const byId = new Map([...known, ...fresh].map((task) => [task.task_id, task]));
  return [...byId.values()].sort((a, b) => b.task_id - a.task_id);
}

/** A team and all its tasks, of which there may be thousands: read page by page, those that have not ended first. */
export class Ledger {
  team = $state.raw<TeamDetail | null>(null);
  tasks = $state.raw<TeamTaskView[]>([]);
  #looks = 0;
  #gone = false;

  constructor(readonly instance: Instance) {}

  close() { this.#gone = true; }

  leave() { [this.team, this.tasks, this.#looks] = [null, [], 0]; }

  async load(name: string) {
    if (this.team?.name !== name) this.leave();
    const [team, page] = await Promise.all([this.instance.team(name), this.instance.tasks(name, { limit: PAGE })]);
    this.team = team;
    this.tasks = merged(page.tasks, page.next_cursor ? this.tasks : []);
    const isDue = this.#looks++ % LOOKS === 0;
    if (page.next_cursor && (isDue || !isWhole(this.tasks, numbersOf(team)))) await this.#readOn(name, page.next_cursor, page.tasks);
  }

  /** What is known of tasks that are gone goes with them, once all that are there were read. */
  async #readOn(name: string, from: string, first: TeamTaskView[]) {
    let read = first;
    for (let cursor: string | null = from; cursor;) {
      const page = await this.instance.tasks(name, { limit: PAGE, cursor });
      if (this.#gone || this.team?.name !== name) return;
      read = merged(page.tasks, read);
      cursor = page.next_cursor ?? null;
      this.tasks = cursor ? merged(read, this.tasks) : read;
    }
  }
}
