import type { TurnView } from "../../api/instance.types";

/** How long turns took, of one agent or one model. */
export interface Latency { group: string; turns: number; middle: number; slow: number }

const took = (turn: TurnView) => Date.parse(turn.ended_at ?? "") - Date.parse(turn.started_at ?? "");
/** The value that so large a part of all does not exceed. */
const at = (sorted: number[], part: number) => sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)];

/** Of turns that began and ended since a time, by what `name` says; the slowest first. Who is not known is left out. */
export function latencies(turns: TurnView[], since: number, name: (turn: TurnView) => string | null | undefined): Latency[] {
  const groups = new Map<string, number[]>();
  for (const turn of turns) {
    const group = name(turn);
    if (!group || !turn.started_at || !turn.ended_at || Date.parse(turn.started_at) < since) continue;
    groups.set(group, [...(groups.get(group) ?? []), took(turn)]);
  }
  const rows = [...groups].map(([group, times]) => {
    times.sort((a, b) => a - b);
    return { group, turns: times.length, middle: at(times, 0.5), slow: at(times, 0.95) };
  });
  return rows.sort((a, b) => b.middle - a.middle);
}
