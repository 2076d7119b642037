import { lineOf, type FrameOf, type OfTurn } from "../api/frames";
import type { Attached } from "./attached";

/** A turn that runs or waits, made of what streams. When it ends, the stored messages take its place. */
export interface Words { kind: "text"; id: number; text: string; live: boolean }
export interface ToolRun {
  kind: "tool"; id: number; call: string; name: string; arguments: unknown; output: string;
  state: "running" | "done" | "error"; sandbox: string | null;
}
export interface Ask { kind: "ask"; id: number; approval: string; tool: string; arguments: unknown; question: string; requested_by: string; fingerprint?: string }
export interface Note { kind: "note"; id: number; text: string }
/** A model call that failed by chance is made again; shown until the model says something. */
export interface Retry { kind: "retry"; id: number; model: string; attempt: number }
export interface Speech { kind: "delegate"; id: number; run: string; agent: string; name: string; text: string; live: boolean }
export type Item = Words | ToolRun | Ask | Note | Retry | Speech;

export class LiveTurn {
  agent = $state<string | null>(null);
  started = $state(false);
  ended = $state(false);
  resumes = $state(false);
  steered = $state(false);
  waiting = $state<{ id: string; text: string; files: Attached[] }[]>([]);
  items = $state<Item[]>([]);
  /** Texts of its steps that are stored and shown by now. */
  stored = new Set<string>();
  /** It was seen from its beginning; else the first text lacks a part. */
  whole = false;
  #next = 0;
  #pending = new Map<number, string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  take(frame: OfTurn) {
    switch (frame.event) {
      case "turn.started": this.#begin(frame); break;
      case "turn.delta": this.#say(frame.text); break;
      case "turn.restarted": this.unsay(); this.whole = true; break;
      case "turn.retrying": this.#add({ kind: "retry", model: frame.model, attempt: frame.attempt }); break;
      case "turn.notice": this.#add({ kind: "note", text: frame.text }); break;
      case "tool.started": this.#add({ kind: "tool", call: frame.call_id, name: frame.name, arguments: frame.arguments, output: "", state: "running", sandbox: null }); break;
      case "tool.output": this.#tool(frame.call_id, (tool) => { if (tool.state === "running") tool.output += frame.text; }); break;
      case "tool.ended": this.#tool(frame.call_id, (tool) => { tool.output = frame.text; tool.state = frame.is_error ? "error" : "done"; tool.sandbox = lineOf(frame); }); break;
      case "approval.requested": this.ask({ approval: frame.approval_id, tool: frame.tool, arguments: frame.arguments, question: frame.question, requested_by: frame.requested_by }); break;
      case "delegate.started": case "delegate.delta": case "delegate.ended": this.#speech(frame); break;
    }
  }

  ask(asked: Omit<Ask, "kind" | "id">) {
    if (!this.items.some((item) => item.kind === "ask" && item.approval === asked.approval)) this.#add({ kind: "ask", ...asked });
  }

  answered(approval: string) {
    this.items = this.items.filter((item) => item.kind !== "ask" || item.approval !== approval);
  }

  end() {
    this.flush();
    this.ended = true;
    for (const item of this.items) if (item.kind === "text" || item.kind === "delegate") item.live = false;
  }

  /** What arrived since the page was last drawn. */
  flush() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const item of this.items) {
      const more = this.#pending.get(item.id);
      if (more && (item.kind === "text" || item.kind === "delegate")) item.text += more;
    }
    this.#pending.clear();
  }

  #begin(frame: FrameOf<"turn.started">) {
    Object.assign(this, { started: true, whole: true, agent: frame.agent_id, resumes: frame.resumes.length > 0 });
    this.#pending.clear();
    this.items = [];
  }

  #say(text: string) {
    this.started = true;
    this.#dropRetry();
    let last = this.items.at(-1);
    if (last?.kind !== "text" || !last.live) {
      this.#add({ kind: "text", text: this.whole ? "" : "… ", live: true });
      this.whole = true;
      last = this.items.at(-1);
    }
    this.#later(last as Words, text);
  }

  /** What streamed last does not count, or is stored by now. */
  unsay() {
    const last = this.items.at(-1);
    if (last?.kind !== "text") return;
    this.#pending.delete(last.id);
    this.items.pop();
  }

  #speech(frame: FrameOf<"delegate.started" | "delegate.delta" | "delegate.ended">) {
    const find = () => this.items.findLast((item): item is Speech => item.kind === "delegate" && item.run === frame.run_id);
    let speech = find();
    if (frame.event === "delegate.started" && speech?.live) { this.#pending.delete(speech.id); speech.text = ""; return; }
    if (!speech || (frame.event === "delegate.started" && !speech.live)) {
      this.#add({ kind: "delegate", run: frame.run_id, agent: frame.agent_id, name: frame.name, text: "", live: true });
      speech = find();
    }
    if (!speech) return;
    if (frame.event === "delegate.delta") this.#later(speech, frame.text);
    if (frame.event === "delegate.ended") { this.#pending.delete(speech.id); speech.text = frame.text; speech.live = false; }
  }

  #dropRetry() {
    if (this.items.at(-1)?.kind === "retry") this.items.pop();
  }

  #add(item: Omit<Words, "id"> | Omit<ToolRun, "id"> | Omit<Ask, "id"> | Omit<Note, "id"> | Omit<Retry, "id"> | Omit<Speech, "id">) {
    this.flush();
    this.#dropRetry();
    const last = this.items.at(-1);
    if (last?.kind === "text") last.live = false;
    if (last?.kind === "text" && this.stored.has(last.text.trim())) this.items.pop();
    this.items.push({ ...item, id: this.#next++ } as Item);
  }

  #tool(call: string, change: (tool: ToolRun) => void) {
    const tool = this.items.findLast((item): item is ToolRun => item.kind === "tool" && item.call === call);
    if (tool) change(tool);
  }

  /** A long text is drawn less often: drawing it costs more, and nobody reads that fast. */
  #later(item: Words | Speech, text: string) {
    this.#pending.set(item.id, (this.#pending.get(item.id) ?? "") + text);
    this.#timer ??= setTimeout(() => this.flush(), Math.min(16 + item.text.length / 100, 400));
  }
}
