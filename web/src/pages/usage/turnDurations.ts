import type { TurnView } from "../../api/instance.types";

/** Durations of the turns of one agent or one model. */
export interface TurnDurations { group: string; turns: number; median: number; p95: number }

const durationMs = (turn: TurnView) => Date.parse(turn.ended_at ?? "") - Date.parse(turn.started_at ?? "");
/** The percentile of sorted values. */
const percentile = (sorted: number[], part: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)];

/** Durations of the turns that started since a time and have ended, grouped by `name`; slowest first. Turns without a group
    are omitted. */
export function turnDurations(turns: TurnView[], since: number, name: (turn: TurnView) => string | null | undefined): TurnDurations[] {
  const groups = new Map<string, number[]>();
  for (const turn of turns) {
    const group = name(turn);
    if (!group || !turn.started_at || !turn.ended_at || Date.parse(turn.started_at) < since) continue;
    groups.set(group, [...(groups.get(group) ?? []), durationMs(turn)]);
  }
  const rows = [...groups].map(([group, times]) => {
    times.sort((a, b) => a - b);
    return { group, turns: times.length, median: percentile(times, 0.5), p95: percentile(times, 0.95) };
  });
  return rows.sort((a, b) => b.median - a.median);
}
