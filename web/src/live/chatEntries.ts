import type { SessionMessageView } from "../api/instance.types";
import { attachmentsOfParts, type Attachment } from "./attachments";

/** Entries of a chat, built from stored messages. The result of a tool is part of the card of its call. */
export interface StoredToolCall { callId: string; name: string; arguments: unknown; output: string; state: "running" | "done" | "error"; sandbox: string | null; delegateReply?: DelegateReply; files?: Attachment[] }
/** The reply of another agent that streamed while the calling agent waited. */
export interface DelegateReply { run: string; agent: string; text: string }
export type ToolOutcome = Pick<StoredToolCall, "output" | "state" | "sandbox">;
export type ChatEntry =
  | { kind: "user"; id: string; at: string; text: string; files: Attachment[]; channel: string }
  | { kind: "reply"; id: string; at: string; agent: string | null; partialText: string; text: string; failed: boolean; isTruncated: boolean; tools: StoredToolCall[] }
  | { kind: "note"; id: string; at: string; note: "resumes" | "silent" | "stopped" | "yields" }
  /** The part of a reply that was generated before the turn was stopped. */
  | { kind: "stopped_reply"; id: string; at: string; agent: string | null; text: string }
  | { kind: "command_output"; id: string; text: string }
  | { kind: "result"; id: string; at: string; run: string; name: string; label: string; text: string; failed: boolean; session: string }
  | { kind: "team_update"; id: string; at: string; team: string }
  | { kind: "other"; id: string; at: string; origin: string; text: string };
/** The output of a command. It is not stored. It follows the message that was the last one when the command was sent, and
    all messages of the turn that was running then. */
export interface CommandOutputItem { after: number; turn?: string; text: string }

interface Part { type: string; id?: string; call_id?: string; name?: string; arguments?: unknown; is_error?: boolean; media?: string }

/** `lateOutcomes`: outcomes of the tool calls of a running turn, by turn and call. */
export function buildChatEntries(messages: SessionMessageView[], lateOutcomes: Record<string, ToolOutcome> = {}, commandOutputs: CommandOutputItem[] = []): ChatEntry[] {
  const entries: ChatEntry[] = [];
  const tools = new Map<string, StoredToolCall>();
  const last = new Map(messages.map((message) => [message.turn_id, message.position]));
  const pendingOutputs = commandOutputs.map((one, n) => ({ ...one, after: Math.max(one.after, last.get(one.turn ?? "") ?? 0), id: `output ${n}` })).sort((a, b) => a.after - b.after);
  const addOutputsBefore = (position: number) => { while (pendingOutputs.length && pendingOutputs[0].after < position) { const { id, text } = pendingOutputs.shift() as typeof pendingOutputs[number]; entries.push({ kind: "command_output", id, text }); } };
  for (const message of messages) {
    const parts = message.parts as unknown as Part[];
    addOutputsBefore(message.position);
    if (message.role === "tool") { attachResult(tools, message, parts); continue; }
    const entry = entryOfMessage(message, parts);
    entries.push(entry.kind === "note" && entry.note === "silent" && hasYielded(entries.at(-1)) ? { ...entry, note: "yields" } : entry);
    if (entry.kind === "reply") for (const tool of entry.tools) tools.set(`${message.turn_id} ${tool.callId}`, tool);
  }
  addOutputsBefore(Infinity);
  for (const [id, outcome] of Object.entries(lateOutcomes)) { const tool = tools.get(id); if (tool?.state === "running") Object.assign(tool, outcome); }
  for (const tool of tools.values()) tool.delegateReply = delegateReplyOf(tool);
  // A result that streamed before is already shown below its call.
  const delegateRuns = new Set([...tools.values()].map((tool) => tool.delegateReply?.run));
  return entries.filter((entry) => entry.kind !== "result" || !delegateRuns.has(entry.run));
}

const hasYielded = (entry: ChatEntry | undefined) => entry?.kind === "reply" && entry.tools.some((tool) => tool.name === "sessions_yield");

function delegateReplyOf({ name, output, state }: StoredToolCall): DelegateReply | undefined {
  if (name !== "delegate_to_agent" || state === "running") return undefined;
  try {
    const result = JSON.parse(output) as { streamed?: boolean; response?: string; partial_response?: string; run_id?: string; agent_id?: string };
    const text = result.response ?? result.partial_response;
    return result.streamed && text && result.run_id ? { run: result.run_id, agent: result.agent_id ?? "", text } : undefined;
  } catch {
    return undefined;
  }
}

function attachResult(tools: Map<string, StoredToolCall>, message: SessionMessageView, parts: Part[]) {
  const sandbox = (message.meta?.sandbox as { line?: string } | undefined)?.line ?? null;
  for (const part of parts) {
    const tool = tools.get(`${message.turn_id} ${part.call_id}`);
    if (tool) Object.assign(tool, { output: message.text, state: part.is_error ? "error" : "done", sandbox, files: attachmentsOfParts(parts) });
  }
}

function entryOfMessage(message: SessionMessageView, parts: Part[]): ChatEntry {
  const { id, created_at: at, text, origin, role, meta, channel } = message;
  if (origin === "user") return { kind: "user", id, at, text, channel, files: attachmentsOfParts(parts) };
  if (role === "user") return entryOfAnnounce(message) ?? (text.startsWith("[Backlog]") ? { kind: "note", id, at, note: "resumes" } : { kind: "other", id, at, origin, text });
  if (meta?.silent) return { kind: "note", id, at, note: "silent" };
  const agent = origin.startsWith("agent:") ? origin.slice(6) : null;
  const partialText = (meta?.said as string | undefined) ?? "";
  if (meta?.error === "stopped") return partialText ? { kind: "stopped_reply", id, at, agent, text: partialText } : { kind: "note", id, at, note: "stopped" };
  const tools = parts.filter((part) => part.type === "tool_call").map((part): StoredToolCall =>
    ({ callId: part.id ?? "", name: part.name ?? "", arguments: part.arguments, output: "", state: "running", sandbox: null }));
  return { kind: "reply", id, at, agent, partialText, text, failed: Boolean(meta?.error), isTruncated: meta?.finish_reason === "length", tools };
}

interface Announce { kind?: string; team?: string; source_agent_name?: string; source_session_key?: string; source_run_id?: string; task?: { label?: string }; result?: { status?: string; summary?: string } }

/** An announce or an update of a team. The model reads one line; people see the result. */
function entryOfAnnounce({ id, created_at: at, origin, meta }: SessionMessageView): ChatEntry | null {
  const announce = (meta ?? {}) as Announce;
  if (announce.kind === "team_news" && announce.team) return { kind: "team_update", id, at, team: announce.team };
  if (announce.kind !== "subagent_announce") return null;
  return {
    kind: "result", id, at, run: announce.source_run_id ?? id, name: announce.source_agent_name || origin, label: announce.task?.label ?? "",
    text: announce.result?.summary ?? "", failed: announce.result?.status !== "ok", session: announce.source_session_key ?? "",
  };
}
