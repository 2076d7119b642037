import type { MemberView, TeamDetail } from "../../api/instance.types";
import type { Tone } from "../../design/Badge.svelte";

/** The turns of a team since a person last wrote to its lead. */
export interface TurnBudget { used: number; limit: number; is_waiting: boolean }

/** The turn budget if it is used up, otherwise null. */
export function exhaustedTurnBudget({ turns }: Pick<TeamDetail, "turns">): TurnBudget | null {
  const budget = turns as unknown as TurnBudget | undefined;
  return budget && budget.used >= budget.limit ? budget : null;
}

/** The state of a member. An idle member that waits for the approval of its plan has its own state. */
export const memberState = ({ status, plan }: MemberView): string => (status === "idle" && plan === "submitted" ? "plan_submitted" : status);

type TeamState = "shutdown" | "shutting_down" | "turns_exhausted" | "active" | "empty" | "plan_submitted" | "idle";

const TONES: Partial<Record<TeamState, Tone>> = { active: "ok", idle: "neutral", empty: "neutral", shutdown: "neutral" };

/** The state of a team with its color. A team that is not shut down may be idle. */
export function teamState(team: TeamDetail): { state: TeamState; tone: Tone } {
  const word = stateOf(team);
  return { state: word, tone: TONES[word] ?? "warn" };
}

function stateOf(team: TeamDetail): TeamState {
  if (team.status !== "active") return team.status as TeamState;
  const present = team.members.filter((one) => one.status === "working" || one.status === "idle");
  if (exhaustedTurnBudget(team)) return "turns_exhausted";
  if (team.lead_status === "working" || present.some((one) => one.status === "working")) return "active";
  if (present.some((one) => one.plan === "submitted")) return "plan_submitted";
  return present.length ? "idle" : "empty";
}
