import type { InstanceApi } from "../api/instance";
import type { TeamTaskView, TeamDetail } from "../api/instance.types";

/** A page is what one look at a team costs; the rest is read when it is not what is known. */
const PAGE_SIZE = 500;
/** Looks after which all is read again: two changes may leave the numbers as they were. */
const FULL_RELOAD_EVERY = 10;
const COUNTED_STATES = ["pending", "blocked", "in_progress", "completed", "failed"] as const;
export type TaskCounts = Record<(typeof COUNTED_STATES)[number], number>;

/** How many tasks there are of each kind, as the server counts them. */
export function taskCounts({ counts }: Pick<TeamDetail, "counts">): TaskCounts {
  return Object.fromEntries(COUNTED_STATES.map((name) => [name, Number(counts[name] ?? 0)])) as TaskCounts;
}
export const totalTasks = (numbers: TaskCounts): number => COUNTED_STATES.reduce((sum, name) => sum + numbers[name], 0);

const countedState = (task: TeamTaskView) => (task.status === "pending" && task.blocked_by.length ? "blocked" : task.status === "claimed" ? "in_progress" : task.status);

/** Whether these are the tasks that the server counts. */
export function isComplete(tasks: TeamTaskView[], numbers: TaskCounts): boolean {
  return COUNTED_STATES.every((name) => tasks.filter((task) => countedState(task) === name).length === numbers[name]);
}

/** What was read now, over what was known before; the newest first. */
export function mergeTasks(fresh: TeamTaskView[], known: TeamTaskView[]): TeamTaskView[] {
  const byId = new Map([...known, ...fresh].map((task) => [task.task_id, task]));
  return [...byId.values()].sort((a, b) => b.task_id - a.task_id);
}

/** A team and all its tasks, of which there may be thousands: read page by page, those that have not ended first. */
export class TeamTasks {
  team = $state.raw<TeamDetail | null>(null);
  tasks = $state.raw<TeamTaskView[]>([]);
  #loads = 0;
  #isClosed = false;

  constructor(readonly instance: InstanceApi) {}

  close() { this.#isClosed = true; }

  clear() { [this.team, this.tasks, this.#loads] = [null, [], 0]; }

  async load(name: string) {
    if (this.team?.name !== name) this.clear();
    const [team, page] = await Promise.all([this.instance.team(name), this.instance.teamTasks(name, { limit: PAGE_SIZE })]);
    this.team = team;
    this.tasks = mergeTasks(page.tasks, page.next_cursor ? this.tasks : []);
    const isDue = this.#loads++ % FULL_RELOAD_EVERY === 0;
    if (page.next_cursor && (isDue || !isComplete(this.tasks, taskCounts(team)))) await this.#loadRemaining(name, page.next_cursor, page.tasks);
  }

  /** What is known of tasks that are gone goes with them, once all that are there were read. */
  async #loadRemaining(name: string, from: string, first: TeamTaskView[]) {
    let read = first;
    for (let cursor: string | null = from; cursor;) {
      const page = await this.instance.teamTasks(name, { limit: PAGE_SIZE, cursor });
      if (this.#isClosed || this.team?.name !== name) return;
      read = mergeTasks(page.tasks, read);
      cursor = page.next_cursor ?? null;
      this.tasks = cursor ? mergeTasks(read, this.tasks) : read;
    }
  }
}
