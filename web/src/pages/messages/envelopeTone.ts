import type { Tone } from "../../design/Badge.svelte";

const TONES: Record<string, Tone> = { queued: "info", delivered: "info", acknowledged: "ok", failed: "warn", dead_letter: "error" };
export const envelopeTone = (state: string): Tone => TONES[state] ?? "neutral";
