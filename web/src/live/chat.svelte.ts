import { sandboxSummary, type Frame, type FrameOf } from "../api/frames";
import { isPermanentError, ApiError } from "../api/http";
import type { InstanceApi } from "../api/instance";
import type { ApprovalView, AttachmentBody, SessionMessageView, SessionView } from "../api/instance.types";
import { attachmentsOfBodies, attachmentsOfParts, type Attachment } from "./attachments";
import type { ToolOutcome, CommandOutputItem } from "./chatEntries";
import { showError } from "./errors";
import { LiveTurn } from "./liveTurn.svelte";
import { chatDraft, type OutgoingMessage, type ChatDraft } from "./chatDraft.svelte";
import { sessionFeed } from "./sessionFeed";

/** One open session: the stored messages and the turns that stream. When a turn ends, its stored messages replace the
    streamed text, so no reply is shown twice. */
export class Chat {
  session = $state.raw<SessionView | null>(null);
  messages = $state.raw<SessionMessageView[]>([]);
  turns = $state<LiveTurn[]>([]);
  /** Outputs of commands. Only this page has them. */
  commandOutputs = $state<CommandOutputItem[]>([]);
  /** Outcomes of tool calls that are stored while their turn is still running. */
  lateOutcomes = $state<Record<string, ToolOutcome>>({});
  error = $state.raw<ApiError | null>(null);
  isLoading = $state(true);
  /** The session that received a message instead of this one, after `/focus`. */
  redirectedTo = $state<string | null>(null);
  /** Number of messages and commands sent from this page. */
  submitCount = $state(0);
  readonly draft: ChatDraft;
  #messageIds = new Set<string>();
  #endedTurnIds = new Set<string>();
  #storedCallIds = new Set<string>();
  #cursor = 0;
  #isRefreshQueued = false;
  #isRefreshing = false;
  #unsubscribe = () => {};
  #isClosed = false;

  constructor(readonly instance: InstanceApi, readonly key: string) {
    this.draft = chatDraft(instance, key);
    void this.load().then(() => this.#subscribe());
  }

  close() {
    this.#isClosed = true;
    this.#unsubscribe();
  }

  #subscribe() {
    if (this.#isClosed) return;
    this.#unsubscribe = sessionFeed(this.instance).subscribe(this.key, {
      onFrame: (frame) => this.#handleFrame(frame),
      reload: (gap) => void this.load(gap),
      isStale: () => this.error !== null,
    });
  }

  get running(): LiveTurn | undefined { return this.turns.find((turn) => turn.started && !turn.ended); }

  /** Loads everything: at the start, after a lost connection, and regularly while there is none. */
  async load(hasGap = false) {
    // Frames of the running turn were missed. The server sends its text again while the rest is loaded.
    if (hasGap) this.turns = this.turns.filter((turn) => !turn.started || turn.ended);
    try {
      const previousTurnIds = new Set(this.turns.map((turn) => turn.id));
      const found = await this.#fetchTranscript();
      const [session, backlog, { approvals }] = await Promise.all([this.instance.session(this.key), this.instance.sessionBacklog(this.key), this.instance.approvals()]);
      if (this.#isClosed) return;
      const running = this.#endedTurnIds.has(session.running_turn_id ?? "") ? null : session.running_turn_id ?? null;
      const storedTurnIds = new Set(found.map((message) => message.turn_id));
      this.turns = this.turns.filter((turn) => (turn.id === running ? turn.started : !storedTurnIds.has(turn.id) && !previousTurnIds.has(turn.id)));
      this.#addStoredMessages(found);
      this.session = session;
      this.#endedTurnIds.delete(running ?? "");
      if (running) this.#joinRunningTurn(running);
      for (const one of backlog.waiting) this.#addWaitingMessage(one.turn_id, one.id, one.text, attachmentsOfParts(one.parts as Parameters<typeof attachmentsOfParts>[0]));
      for (const one of approvals) if (one.session_key === this.key) this.#addApproval(one);
      this.error = null;
    } catch (error) {
      this.#setError(error);
    }
    this.isLoading = false;
    this.#resendOutgoing();
  }

  async send(text: string, attachments: AttachmentBody[] = []) {
    const one: OutgoingMessage = { id: crypto.randomUUID(), text, attachments, state: "sending" };
    this.draft.outgoing.push(one);
    this.submitCount += 1;
    await this.#sendOutgoing(one.id);
  }

  /** A command was answered, possibly while the latest turn is still running. */
  addCommandOutput(text: string) {
    this.commandOutputs.push({ after: this.messages.at(-1)?.position ?? 0, turn: this.turns.at(-1)?.id, text });
    this.submitCount += 1;
    void this.refresh();
  }

  async retry(id: string) { await this.#sendOutgoing(id); }

  async #sendOutgoing(id: string) {
    const one = this.draft.outgoing.find((other) => other.id === id);
    if (!one) return;
    one.state = "sending";
    try {
      const receipt = await this.instance.sendMessage(this.key, { text: one.text, idempotency_key: one.id, attachments: one.attachments });
      this.draft.outgoing = this.draft.outgoing.filter((other) => other.id !== id);
      if (receipt.session_key === this.key) this.#addWaitingMessage(receipt.turn_id, receipt.message_id, one.text, attachmentsOfBodies(one.attachments));
      else this.redirectedTo = receipt.session_key;
    } catch (error) {
      if (isPermanentError(error)) { this.#returnToDraft(one); showError(error); return; }
      one.state = "not_sent";
      this.#setError(error);
    }
  }

  /** The user can edit a rejected message and send it again. */
  #returnToDraft(one: OutgoingMessage) {
    this.draft.outgoing = this.draft.outgoing.filter((other) => other.id !== one.id);
    this.draft.restore(one.text, one.attachments.map((file) => ({ ...file, size: (file.data?.length ?? 0) * 0.75 || (file.text?.length ?? 0) })));
  }

  #resendOutgoing() {
    if (!this.error) for (const one of this.draft.outgoing) if (one.state === "not_sent") void this.#sendOutgoing(one.id);
  }

  #setError(error: unknown) {
    if (!(error instanceof ApiError)) throw error;
    if (!this.#isClosed) this.error = error;
  }

  async #fetchTranscript(): Promise<SessionMessageView[]> {
    const found: SessionMessageView[] = [];
    for (let after: number | null = this.#cursor; after !== null;) {
      const page = await this.instance.transcript(this.key, after);
      found.push(...page.messages);
      after = page.next_after ?? null;
    }
    return found;
  }

  #handleFrame(frame: Frame) {
    if (frame.event === "session.changed") { void this.refresh(); return; }
    if (frame.event === "approval.decided") { for (const turn of this.turns) turn.removeApproval(frame.approval_id); return; }
    if (!("turn_id" in frame)) return;
    if (frame.event === "turn.ended") { this.#handleTurnEnded(frame); return; }
    if (this.#endedTurnIds.has(frame.turn_id)) return;
    if (frame.event === "message.accepted") this.#addWaitingMessage(frame.turn_id, frame.message_id, frame.text);
    else if ("call_id" in frame && this.#storedCallIds.has(`${frame.turn_id} ${frame.call_id}`)) this.#handleStoredCall(frame);
    else this.#turnById(frame.turn_id).handleFrame(frame);
  }

  /** A stored call already has a card, and the text before it is stored too. */
  #handleStoredCall(frame: FrameOf<"tool.started" | "tool.output" | "tool.ended">) {
    if (frame.event === "tool.started") this.#turnById(frame.turn_id).dropLiveText();
    if (frame.event === "tool.ended") this.lateOutcomes[`${frame.turn_id} ${frame.call_id}`] = { output: frame.text, state: frame.is_error ? "error" : "done", sandbox: sandboxSummary(frame) };
  }

  #handleTurnEnded(frame: FrameOf<"turn.ended">) {
    this.#endedTurnIds.add(frame.turn_id);
    const turn = this.turns.find((one) => one.id === frame.turn_id);
    if (!turn && frame.message_id && this.#messageIds.has(frame.message_id)) return;
    turn?.end();
    if (turn) turn.steered = frame.state === "steered";
    void this.refresh();
  }

  /** Loads the stored messages after a turn has ended. A call during a refresh causes another one. */
  async refresh() {
    this.#isRefreshQueued = true;
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      while (this.#isRefreshQueued && !this.#isClosed) {
        this.#isRefreshQueued = false;
        const ended = new Set(this.turns.filter((turn) => turn.ended).map((turn) => turn.id));
        const found = await this.#fetchTranscript();
        const session = await this.instance.session(this.key);
        if (this.#isClosed) return;
        this.turns = this.turns.filter((turn) => !ended.has(turn.id));
        const running = session.running_turn_id;
        if (running && !this.#endedTurnIds.has(running)) this.#turnById(running);
        this.session = session;
        this.#addStoredMessages(found);
      }
    } catch (error) {
      this.#setError(error);
    } finally { this.#isRefreshing = false; }
  }

  #turnById(id: string): LiveTurn {
    const found = this.turns.find((turn) => turn.id === id);
    if (found) return found;
    this.turns.push(new LiveTurn(id));
    return this.turns[this.turns.length - 1];
  }

  /** Stored steps of a running turn are shown as stored; the same text is skipped when it streams again. */
  #joinRunningTurn(id: string) {
    const turn = this.#turnById(id);
    turn.started = true;
    turn.storedTexts = new Set(this.messages.filter((message) => message.turn_id === id && message.role === "assistant").map((message) => message.text.trim()));
  }

  /** An accepted message is shown with its turn until it is stored, and replaces the one that is being sent. */
  #addWaitingMessage(turnId: string, id: string, text: string, files: Attachment[] = []) {
    if (this.#messageIds.has(id)) return;
    const own = this.draft.outgoing.find((one) => one.text.trim() === text.trim());
    if (own) this.draft.outgoing = this.draft.outgoing.filter((one) => one !== own);
    const turn = this.#turnById(turnId);
    if (!turn.waiting.some((one) => one.id === id)) turn.waiting.push({ id, text, files: own ? attachmentsOfBodies(own.attachments) : files });
  }

  #addApproval(approval: ApprovalView) {
    this.#turnById(approval.turn_id).addApproval({ approvalId: approval.id, tool: approval.tool, arguments: approval.arguments, question: approval.question, requested_by: approval.requested_by, fingerprint: approval.fingerprint });
  }

  /** Steps of a streaming turn are already on the page. They are added when the turn ends. */
  #addStoredMessages(found: SessionMessageView[]) {
    const streamingTurnIds = new Set(this.turns.map((turn) => turn.id));
    const added: SessionMessageView[] = [];
    for (const message of found) {
      if (!streamingTurnIds.has(message.turn_id)) this.#endedTurnIds.add(message.turn_id);
      if (this.#messageIds.has(message.id) || (streamingTurnIds.has(message.turn_id) && message.origin !== "user")) continue;
      this.#messageIds.add(message.id);
      added.push(message);
      for (const part of message.parts as { type?: string; id?: string; call_id?: string }[]) {
        if (part.type === "tool_call") this.#storedCallIds.add(`${message.turn_id} ${part.id}`);
        // The result is stored now.
        if (part.call_id) delete this.lateOutcomes[`${message.turn_id} ${part.call_id}`];
      }
      for (const turn of this.turns) turn.waiting = turn.waiting.filter((one) => one.id !== message.id);
    }
    if (added.length) this.messages = [...this.messages, ...added].sort((a, b) => a.position - b.position);
    if (!streamingTurnIds.size) this.#cursor = Math.max(this.#cursor, ...found.map((message) => message.position));
  }
}
