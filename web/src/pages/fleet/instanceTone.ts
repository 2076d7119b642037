import type { Tone } from "../../design/Badge.svelte";

const TONES: Record<string, Tone> = { running: "ok", stopped: "calm", unresponsive: "bad", crashed: "bad", "stale-pid": "warn", unknown: "warn", error: "bad", archived: "calm" };
export const instanceTone = (status: string): Tone => TONES[status] ?? "warn";
