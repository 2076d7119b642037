import type { Tone } from "../../design/Badge.svelte";

export const TASK_STATES = ["pending", "claimed", "in_progress", "completed", "failed"] as const;
const TONES: Record<string, Tone> = { pending: "neutral", claimed: "accent", in_progress: "info", completed: "ok", failed: "error" };
export const taskTone = (status: string): Tone => TONES[status] ?? "neutral";
