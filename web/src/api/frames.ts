/** What an instance tells about a session while it happens; the words of its hub. */
interface Speaker { turn_id: string; run_id: string; agent_id: string; name: string }
interface OfTurn { turn_id: string }

export type Frame = { seq?: number; session_key: string } & (
  | { event: "message.accepted"; message_id: string; text: string; waiting: boolean } & OfTurn
  | { event: "turn.started"; agent_id: string; resumes: string[] } & OfTurn
  | { event: "turn.delta" | "turn.reasoning" | "turn.notice"; text: string } & OfTurn
  | { event: "turn.restarted" } & OfTurn
  | { event: "tool.started"; call_id: string; name: string; arguments: unknown } & OfTurn
  | { event: "tool.output"; call_id: string; text: string } & OfTurn
  | { event: "tool.ended"; call_id: string; name: string; is_error: boolean; text: string; sandbox: { line?: string; facts?: unknown } | null } & OfTurn
  | { event: "delegate.started" } & Speaker
  | { event: "delegate.delta"; text: string } & Speaker
  | { event: "delegate.ended"; text: string; is_whole: boolean } & Speaker
  | { event: "approval.asked"; approval_id: string; tool: string; arguments: unknown; question: string } & OfTurn
  | { event: "approval.decided"; approval_id: string; state: string }
  | { event: "turn.ended"; state: string; message_id: string | null; text: string | null; model: string | null; error_code: string | null } & OfTurn
  | { event: "session.changed" | "replay.gap" | "reader.behind" }
);

export type FrameOf<E extends Frame["event"]> = Extract<Frame, { event: E }>;
