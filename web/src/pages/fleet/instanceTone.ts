import type { Tone } from "../../design/Badge.svelte";

const TONES: Record<string, Tone> = { running: "ok", stopped: "neutral", unresponsive: "error", crashed: "error", "stale-pid": "warn", unknown: "warn", error: "error", archived: "neutral" };
export const instanceTone = (status: string): Tone => TONES[status] ?? "warn";
