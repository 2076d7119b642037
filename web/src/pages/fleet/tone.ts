import type { InstanceStatus } from "../../api/control.types";
import type { Tone } from "../../design/Badge.svelte";

const TONES: Record<InstanceStatus, Tone> = { running: "ok", stopped: "calm", crashed: "bad", "stale-pid": "warn", unknown: "warn", error: "bad", archived: "calm" };
export const toneOf = (status: InstanceStatus): Tone => TONES[status] ?? "warn";
