import type { Frame } from "./instance.types";

/** Live notifications of a session, as the instance's hub sends them. */
export type { Frame };
export type FrameOf<E extends Frame["event"]> = Extract<Frame, { event: E }>;
/** Frames that belong to one turn. */
export type TurnFrame = Extract<Frame, { turn_id: string }>;

/** The sandbox restrictions of a tool call in one line, for display. */
export const sandboxSummary = (frame: FrameOf<"tool.ended">): string | null => (frame.sandbox as { line?: string } | null)?.line ?? null;
