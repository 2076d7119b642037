import type { Frame } from "./instance.types";

/** What an instance tells about a session while it happens; the words of its hub. */
export type { Frame };
export type FrameOf<E extends Frame["event"]> = Extract<Frame, { event: E }>;
/** Those that are about one turn. */
export type TurnFrame = Extract<Frame, { turn_id: string }>;

/** What a tool was kept to, as a line for people. */
export const sandboxSummary = (frame: FrameOf<"tool.ended">): string | null => (frame.sandbox as { line?: string } | null)?.line ?? null;
