import type { InstanceApi } from "../api/instance";
import type { TeamTaskView, TeamDetail } from "../api/instance.types";

/** Tasks per request. Each reload reads one page, and the others only if the counts differ. */
const PAGE_SIZE = 500;
/** Every n-th reload reads all pages, because two changes can leave the counts unchanged. */
const FULL_RELOAD_EVERY = 10;
const COUNTED_STATES = ["pending", "blocked", "in_progress", "completed", "failed"] as const;
export type TaskCounts = Record<(typeof COUNTED_STATES)[number], number>;

/** Number of tasks in each state, as the server counts them. */
export function taskCounts({ counts }: Pick<TeamDetail, "counts">): TaskCounts {
  return Object.fromEntries(COUNTED_STATES.map((name) => [name, Number(counts[name] ?? 0)])) as TaskCounts;
}
export const totalTasks = (numbers: TaskCounts): number => COUNTED_STATES.reduce((sum, name) => sum + numbers[name], 0);

const countedState = (task: TeamTaskView) => (task.status === "pending" && task.blocked_by.length ? "blocked" : task.status === "claimed" ? "in_progress" : task.status);

/** Whether the loaded tasks match the server's counts. */
export function isComplete(tasks: TeamTaskView[], numbers: TaskCounts): boolean {
  return COUNTED_STATES.every((name) => tasks.filter((task) => countedState(task) === name).length === numbers[name]);
}

/** Replaces known tasks with newer versions; newest first. */
export function mergeTasks(fresh: TeamTaskView[], known: TeamTaskView[]): TeamTaskView[] {
  const byId = new Map([...known, ...fresh].map((task) => [task.task_id, task]));
  return [...byId.values()].sort((a, b) => b.task_id - a.task_id);
}

/** A team and all its tasks, possibly thousands. They are read page by page, unfinished ones first. */
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

  /** Deleted tasks are removed after the last page was read. */
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
