import { sandboxSummary, type FrameOf, type TurnFrame } from "../api/frames";
import type { Attachment } from "./attachments";

/** A running or queued turn, built from streamed frames. When it ends, its stored messages replace it. */
export interface TextItem { kind: "text"; id: number; text: string; live: boolean }
export interface ToolItem {
  kind: "tool"; id: number; callId: string; name: string; arguments: unknown; output: string;
  state: "running" | "done" | "error"; sandbox: string | null;
}
export interface ApprovalItem { kind: "approval"; id: number; approvalId: string; tool: string; arguments: unknown; question: string; requested_by: string; fingerprint?: string }
export interface NoticeItem { kind: "notice"; id: number; text: string }
/** A failed model call is retried. Shown until the model responds. */
export interface RetryItem { kind: "retry"; id: number; model: string; attempt: number }
export interface DelegateItem { kind: "delegate"; id: number; run: string; agent: string; name: string; text: string; live: boolean }
export type TurnItem = TextItem | ToolItem | ApprovalItem | NoticeItem | RetryItem | DelegateItem;

export class LiveTurn {
  agent = $state<string | null>(null);
  started = $state(false);
  ended = $state(false);
  resumes = $state(false);
  steered = $state(false);
  waiting = $state<{ id: string; text: string; files: Attachment[] }[]>([]);
  items = $state<TurnItem[]>([]);
  /** Texts of steps that are already stored and shown. */
  storedTexts = new Set<string>();
  /** Streamed from its start; otherwise the start of the first text is missing. */
  isFromStart = false;
  #next = 0;
  #bufferedText = new Map<number, string>();
  #flushTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly id: string) {}

  handleFrame(frame: TurnFrame) {
    switch (frame.event) {
      case "turn.started": this.#start(frame); break;
      case "turn.delta": this.#appendText(frame.text); break;
      case "turn.restarted": this.dropLiveText(); this.isFromStart = true; break;
      case "turn.retrying": this.#add({ kind: "retry", model: frame.model, attempt: frame.attempt }); break;
      case "turn.notice": this.#add({ kind: "notice", text: frame.text }); break;
      case "tool.started": this.#add({ kind: "tool", callId: frame.call_id, name: frame.name, arguments: frame.arguments, output: "", state: "running", sandbox: null }); break;
      case "tool.output": this.#updateTool(frame.call_id, (tool) => { if (tool.state === "running") tool.output += frame.text; }); break;
      case "tool.ended": this.#updateTool(frame.call_id, (tool) => { tool.output = frame.text; tool.state = frame.is_error ? "error" : "done"; tool.sandbox = sandboxSummary(frame); }); break;
      case "approval.requested": this.addApproval({ approvalId: frame.approval_id, tool: frame.tool, arguments: frame.arguments, question: frame.question, requested_by: frame.requested_by }); break;
      case "delegate.started": case "delegate.delta": case "delegate.ended": this.#handleDelegate(frame); break;
    }
  }

  addApproval(approval: Omit<ApprovalItem, "kind" | "id">) {
    if (!this.items.some((item) => item.kind === "approval" && item.approvalId === approval.approvalId)) this.#add({ kind: "approval", ...approval });
  }

  removeApproval(approval: string) {
    this.items = this.items.filter((item) => item.kind !== "approval" || item.approvalId !== approval);
  }

  end() {
    this.flush();
    this.ended = true;
    for (const item of this.items) if (item.kind === "text" || item.kind === "delegate") item.live = false;
  }

  /** Adds the text that arrived since the last rendering. */
  flush() {
    clearTimeout(this.#flushTimer);
    this.#flushTimer = undefined;
    for (const item of this.items) {
      const more = this.#bufferedText.get(item.id);
      if (more && (item.kind === "text" || item.kind === "delegate")) item.text += more;
    }
    this.#bufferedText.clear();
  }

  #start(frame: FrameOf<"turn.started">) {
    Object.assign(this, { started: true, isFromStart: true, agent: frame.agent_id, resumes: frame.resumes.length > 0 });
    this.#bufferedText.clear();
    this.items = [];
  }

  #appendText(text: string) {
    this.started = true;
    this.#dropRetry();
    let last = this.items.at(-1);
    if (last?.kind !== "text" || !last.live) {
      this.#add({ kind: "text", text: this.isFromStart ? "" : "… ", live: true });
      this.isFromStart = true;
      last = this.items.at(-1);
    }
    this.#bufferText(last as TextItem, text);
  }

  /** Removes the last text: it was discarded or is stored by now. */
  dropLiveText() {
    const last = this.items.at(-1);
    if (last?.kind !== "text") return;
    this.#bufferedText.delete(last.id);
    this.items.pop();
  }

  #handleDelegate(frame: FrameOf<"delegate.started" | "delegate.delta" | "delegate.ended">) {
    const find = () => this.items.findLast((item): item is DelegateItem => item.kind === "delegate" && item.run === frame.run_id);
    let item = find();
    if (frame.event === "delegate.started" && item?.live) { this.#bufferedText.delete(item.id); item.text = ""; return; }
    if (!item || (frame.event === "delegate.started" && !item.live)) {
      this.#add({ kind: "delegate", run: frame.run_id, agent: frame.agent_id, name: frame.name, text: "", live: true });
      item = find();
    }
    if (!item) return;
    if (frame.event === "delegate.delta") this.#bufferText(item, frame.text);
    if (frame.event === "delegate.ended") { this.#bufferedText.delete(item.id); item.text = frame.text; item.live = false; }
  }

  #dropRetry() {
    if (this.items.at(-1)?.kind === "retry") this.items.pop();
  }

  #add(item: Omit<TextItem, "id"> | Omit<ToolItem, "id"> | Omit<ApprovalItem, "id"> | Omit<NoticeItem, "id"> | Omit<RetryItem, "id"> | Omit<DelegateItem, "id">) {
    this.flush();
    this.#dropRetry();
    const last = this.items.at(-1);
    if (last?.kind === "text") last.live = false;
    if (last?.kind === "text" && this.storedTexts.has(last.text.trim())) this.items.pop();
    this.items.push({ ...item, id: this.#next++ } as TurnItem);
  }

  #updateTool(call: string, change: (tool: ToolItem) => void) {
    const tool = this.items.findLast((item): item is ToolItem => item.kind === "tool" && item.callId === call);
    if (tool) change(tool);
  }

  /** Long texts are rendered less often, because each rendering takes longer. */
  #bufferText(item: TextItem | DelegateItem, text: string) {
    this.#bufferedText.set(item.id, (this.#bufferedText.get(item.id) ?? "") + text);
    this.#flushTimer ??= setTimeout(() => this.flush(), Math.min(16 + item.text.length / 100, 400));
  }
}
