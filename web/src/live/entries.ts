import type { SessionMessageView } from "../api/instance.types";
import { stored, type Attached } from "./attached";

/** Stored messages as they are shown: a tool's result stands in the card of its call. */
export interface StoredTool { call: string; name: string; arguments: unknown; output: string; state: "running" | "done" | "error"; sandbox: string | null; heard?: Heard; files?: Attached[] }
/** What another agent said while the one that asked it waited. */
export interface Heard { run: string; agent: string; text: string }
export type Outcome = Pick<StoredTool, "output" | "state" | "sandbox">;
export type Entry =
  | { kind: "person"; id: string; at: string; text: string; files: Attached[]; channel: string }
  | { kind: "reply"; id: string; at: string; agent: string | null; heard: string; text: string; failed: boolean; cut: boolean; tools: StoredTool[] }
  | { kind: "note"; id: string; at: string; word: "resumes" | "silent" | "stopped" | "yields" }
  /** What was said until somebody stopped it. */
  | { kind: "cut"; id: string; at: string; agent: string | null; text: string }
  | { kind: "said"; id: string; text: string }
  | { kind: "result"; id: string; at: string; run: string; name: string; label: string; text: string; failed: boolean; session: string }
  | { kind: "news"; id: string; at: string; team: string }
  | { kind: "other"; id: string; at: string; origin: string; text: string };
/** What a command answered. It is not stored; it stands behind the message that was the last when it was asked, and behind
    all of the turn that ran then. */
export interface Said { after: number; turn?: string; text: string }

interface Part { type: string; id?: string; call_id?: string; name?: string; arguments?: unknown; is_error?: boolean; media?: string }

/** `late`: how tools of a turn that still runs ended, by turn and call. */
export function entriesOf(messages: SessionMessageView[], late: Record<string, Outcome> = {}, said: Said[] = []): Entry[] {
  const entries: Entry[] = [];
  const tools = new Map<string, StoredTool>();
  const last = new Map(messages.map((message) => [message.turn_id, message.position]));
  const waiting = said.map((one, n) => ({ ...one, after: Math.max(one.after, last.get(one.turn ?? "") ?? 0), id: `said ${n}` })).sort((a, b) => a.after - b.after);
  const sayUntil = (position: number) => { while (waiting.length && waiting[0].after < position) { const { id, text } = waiting.shift() as typeof waiting[number]; entries.push({ kind: "said", id, text }); } };
  for (const message of messages) {
    const parts = message.parts as unknown as Part[];
    sayUntil(message.position);
    if (message.role === "tool") { finish(tools, message, parts); continue; }
    const entry = entryOf(message, parts);
    entries.push(entry.kind === "note" && entry.word === "silent" && hasYielded(entries.at(-1)) ? { ...entry, word: "yields" } : entry);
    if (entry.kind === "reply") for (const tool of entry.tools) tools.set(`${message.turn_id} ${tool.call}`, tool);
  }
  sayUntil(Infinity);
  for (const [id, outcome] of Object.entries(late)) { const tool = tools.get(id); if (tool?.state === "running") Object.assign(tool, outcome); }
  for (const tool of tools.values()) tool.heard = heardBy(tool);
  // A result that was heard as it was spoken stands under the call already.
  const heard = new Set([...tools.values()].map((tool) => tool.heard?.run));
  return entries.filter((entry) => entry.kind !== "result" || !heard.has(entry.run));
}

const hasYielded = (entry: Entry | undefined) => entry?.kind === "reply" && entry.tools.some((tool) => tool.name === "sessions_yield");

function heardBy({ name, output, state }: StoredTool): Heard | undefined {
  if (name !== "delegate_to_agent" || state === "running") return undefined;
  try {
    const told = JSON.parse(output) as { streamed?: boolean; response?: string; partial_response?: string; run_id?: string; agent_id?: string };
    const text = told.response ?? told.partial_response;
    return told.streamed && text && told.run_id ? { run: told.run_id, agent: told.agent_id ?? "", text } : undefined;
  } catch {
    return undefined;
  }
}

function finish(tools: Map<string, StoredTool>, message: SessionMessageView, parts: Part[]) {
  const sandbox = (message.meta?.sandbox as { line?: string } | undefined)?.line ?? null;
  for (const part of parts) {
    const tool = tools.get(`${message.turn_id} ${part.call_id}`);
    if (tool) Object.assign(tool, { output: message.text, state: part.is_error ? "error" : "done", sandbox, files: stored(parts) });
  }
}

function entryOf(message: SessionMessageView, parts: Part[]): Entry {
  const { id, created_at: at, text, origin, role, meta, channel } = message;
  if (origin === "user") return { kind: "person", id, at, text, channel, files: stored(parts) };
  if (role === "user") return toldOf(message) ?? (text.startsWith("[Backlog]") ? { kind: "note", id, at, word: "resumes" } : { kind: "other", id, at, origin, text });
  if (meta?.silent) return { kind: "note", id, at, word: "silent" };
  const agent = origin.startsWith("agent:") ? origin.slice(6) : null;
  const heard = (meta?.said as string | undefined) ?? "";
  if (meta?.error === "stopped") return heard ? { kind: "cut", id, at, agent, text: heard } : { kind: "note", id, at, word: "stopped" };
  const tools = parts.filter((part) => part.type === "tool_call").map((part): StoredTool =>
    ({ call: part.id ?? "", name: part.name ?? "", arguments: part.arguments, output: "", state: "running", sandbox: null }));
  return { kind: "reply", id, at, agent, heard, text, failed: Boolean(meta?.error), cut: meta?.finish_reason === "length", tools };
}

interface Announce { kind?: string; team?: string; source_agent_name?: string; source_session_key?: string; source_run_id?: string; task?: { label?: string }; result?: { status?: string; summary?: string } }

/** What comes of work that was given to others: the model reads a line, people the result. */
function toldOf({ id, created_at: at, origin, meta }: SessionMessageView): Entry | null {
  const told = (meta ?? {}) as Announce;
  if (told.kind === "team_news" && told.team) return { kind: "news", id, at, team: told.team };
  if (told.kind !== "subagent_announce") return null;
  return {
    kind: "result", id, at, run: told.source_run_id ?? id, name: told.source_agent_name || origin, label: told.task?.label ?? "",
    text: told.result?.summary ?? "", failed: told.result?.status !== "ok", session: told.source_session_key ?? "",
  };
}
