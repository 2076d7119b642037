import type { MessageView } from "../api/instance.types";

/** Stored messages as they are shown: a tool's result stands in the card of its call. */
export interface StoredTool { call: string; name: string; arguments: unknown; output: string; state: "running" | "done" | "error"; sandbox: string | null }
export type Outcome = Pick<StoredTool, "output" | "state" | "sandbox">;
export type Entry =
  | { kind: "person"; id: string; at: string; text: string; files: string[]; channel: string }
  | { kind: "reply"; id: string; at: string; agent: string | null; text: string; failed: boolean; cut: boolean; tools: StoredTool[] }
  | { kind: "note"; id: string; at: string; word: "resumes" | "silent" | "stopped" }
  | { kind: "other"; id: string; at: string; origin: string; text: string };

interface Part { type: string; id?: string; call_id?: string; name?: string; arguments?: unknown; is_error?: boolean }

/** `late`: how tools of a turn that still runs ended, by turn and call. */
export function entriesOf(messages: MessageView[], late: Record<string, Outcome> = {}): Entry[] {
  const entries: Entry[] = [];
  const tools = new Map<string, StoredTool>();
  for (const message of messages) {
    const parts = message.parts as unknown as Part[];
    if (message.role === "tool") { finish(tools, message, parts); continue; }
    const entry = entryOf(message, parts);
    entries.push(entry);
    if (entry.kind === "reply") for (const tool of entry.tools) tools.set(`${message.turn_id} ${tool.call}`, tool);
  }
  for (const [id, outcome] of Object.entries(late)) { const tool = tools.get(id); if (tool?.state === "running") Object.assign(tool, outcome); }
  return entries;
}

function finish(tools: Map<string, StoredTool>, message: MessageView, parts: Part[]) {
  const sandbox = (message.meta?.sandbox as { line?: string } | undefined)?.line ?? null;
  for (const part of parts) {
    const tool = tools.get(`${message.turn_id} ${part.call_id}`);
    if (tool) Object.assign(tool, { output: message.text, state: part.is_error ? "error" : "done", sandbox });
  }
}

function entryOf(message: MessageView, parts: Part[]): Entry {
  const { id, created_at: at, text, origin, role, meta, channel } = message;
  if (origin === "user") return { kind: "person", id, at, text, channel, files: parts.filter((part) => part.type === "attachment").map((part) => part.name ?? "") };
  if (role === "user") return text.startsWith("[Backlog]") ? { kind: "note", id, at, word: "resumes" } : { kind: "other", id, at, origin, text };
  if (meta?.silent) return { kind: "note", id, at, word: "silent" };
  if (meta?.error === "stopped") return { kind: "note", id, at, word: "stopped" };
  const tools = parts.filter((part) => part.type === "tool_call").map((part): StoredTool =>
    ({ call: part.id ?? "", name: part.name ?? "", arguments: part.arguments, output: "", state: "running", sandbox: null }));
  return { kind: "reply", id, at, agent: origin.startsWith("agent:") ? origin.slice(6) : null, text, failed: Boolean(meta?.error), cut: meta?.finish_reason === "length", tools };
}
