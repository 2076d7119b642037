import { lineOf, type Frame, type FrameOf } from "../api/frames";
import { isRefused, Problem } from "../api/http";
import type { Instance } from "../api/instance";
import type { ApprovalView, AttachmentBody, SessionMessageView, SessionView } from "../api/instance.types";
import { sent, stored, type Attached } from "./attached";
import type { Outcome, Said } from "./entries";
import { complain } from "./problem";
import { LiveTurn } from "./turn.svelte";
import { unsentOf, type Outgoing, type Unsent } from "./unsent.svelte";
import { wireOf } from "./wire";

/** One open session: what is stored, plus what streams right now. When a turn ends, its stored messages take the place of
    what was streamed, so no reply is ever seen twice. */
export class Chat {
  session = $state.raw<SessionView | null>(null);
  messages = $state.raw<SessionMessageView[]>([]);
  turns = $state<LiveTurn[]>([]);
  /** What commands answered; kept by this page alone. */
  said = $state<Said[]>([]);
  /** How tools ended whose call is stored and whose turn still runs. */
  late = $state<Record<string, Outcome>>({});
  problem = $state.raw<Problem | null>(null);
  loading = $state(true);
  /** The session that a message went to instead of this one, after `/focus`. */
  elsewhere = $state<string | null>(null);
  /** How often something was sent from here: messages and commands. */
  submitted = $state(0);
  readonly unsent: Unsent;
  #known = new Set<string>();
  #settled = new Set<string>();
  #calls = new Set<string>();
  #cursor = 0;
  #again = false;
  #refreshing = false;
  #leave = () => {};
  #gone = false;

  constructor(readonly instance: Instance, readonly key: string) {
    this.unsent = unsentOf(instance, key);
    void this.load().then(() => this.#follow());
  }

  close() {
    this.#gone = true;
    this.#leave();
  }

  #follow() {
    if (this.#gone) return;
    this.#leave = wireOf(this.instance).watch(this.key, {
      frame: (frame) => this.#take(frame),
      reload: (gap) => void this.load(gap),
      stale: () => this.problem !== null,
    });
  }

  get running(): LiveTurn | undefined { return this.turns.find((turn) => turn.started && !turn.ended); }

  /** Reads everything anew: at the start, after a lost connection, and while there is none. */
  async load(gap = false) {
    // Of a turn that runs some frames were missed: all it has said so far comes anew, while the rest is asked for.
    if (gap) this.turns = this.turns.filter((turn) => !turn.started || turn.ended);
    try {
      const known = new Set(this.turns.map((turn) => turn.id));
      const found = await this.#transcript();
      const [session, backlog, { approvals }] = await Promise.all([this.instance.session(this.key), this.instance.backlog(this.key), this.instance.approvals()]);
      if (this.#gone) return;
      const running = this.#settled.has(session.running_turn_id ?? "") ? null : session.running_turn_id ?? null;
      const begun = new Set(found.map((message) => message.turn_id));
      this.turns = this.turns.filter((turn) => (turn.id === running ? turn.started : !begun.has(turn.id) && !known.has(turn.id)));
      this.#keep(found);
      this.session = session;
      this.#settled.delete(running ?? "");
      if (running) this.#join(running);
      for (const one of backlog.waiting) this.#accept(one.turn_id, one.id, one.text, stored(one.parts as Parameters<typeof stored>[0]));
      for (const one of approvals) if (one.session_key === this.key) this.#ask(one);
      this.problem = null;
    } catch (problem) {
      this.#failed(problem);
    }
    this.loading = false;
    this.#resend();
  }

  async send(text: string, attachments: AttachmentBody[] = []) {
    const one: Outgoing = { id: crypto.randomUUID(), text, attachments, state: "sending" };
    this.unsent.outgoing.push(one);
    this.submitted += 1;
    await this.#post(one.id);
  }

  /** A command was answered, while the newest turn perhaps still runs. */
  answered(text: string) {
    this.said.push({ after: this.messages.at(-1)?.position ?? 0, turn: this.turns.at(-1)?.id, text });
    this.submitted += 1;
    void this.refresh();
  }

  async retry(id: string) { await this.#post(id); }

  async #post(id: string) {
    const one = this.unsent.outgoing.find((other) => other.id === id);
    if (!one) return;
    one.state = "sending";
    try {
      const receipt = await this.instance.send(this.key, { text: one.text, idempotency_key: one.id, attachments: one.attachments });
      this.unsent.outgoing = this.unsent.outgoing.filter((other) => other.id !== id);
      if (receipt.session_key === this.key) this.#accept(receipt.turn_id, receipt.message_id, one.text, sent(one.attachments));
      else this.elsewhere = receipt.session_key;
    } catch (problem) {
      if (isRefused(problem)) { this.#giveBack(one); complain(problem); return; }
      one.state = "not_sent";
      this.#failed(problem);
    }
  }

  /** What the server refused can be changed and sent again. */
  #giveBack(one: Outgoing) {
    this.unsent.outgoing = this.unsent.outgoing.filter((other) => other.id !== one.id);
    this.unsent.restore(one.text, one.attachments.map((file) => ({ ...file, size: (file.data?.length ?? 0) * 0.75 || (file.text?.length ?? 0) })));
  }

  #resend() {
    if (!this.problem) for (const one of this.unsent.outgoing) if (one.state === "not_sent") void this.#post(one.id);
  }

  #failed(problem: unknown) {
    if (!(problem instanceof Problem)) throw problem;
    if (!this.#gone) this.problem = problem;
  }

  async #transcript(): Promise<SessionMessageView[]> {
    const found: SessionMessageView[] = [];
    for (let after: number | null = this.#cursor; after !== null;) {
      const page = await this.instance.transcript(this.key, after);
      found.push(...page.messages);
      after = page.next_after ?? null;
    }
    return found;
  }

  #take(frame: Frame) {
    if (frame.event === "session.changed") { void this.refresh(); return; }
    if (frame.event === "approval.decided") { for (const turn of this.turns) turn.answered(frame.approval_id); return; }
    if (!("turn_id" in frame)) return;
    if (frame.event === "turn.ended") { this.#ended(frame); return; }
    if (this.#settled.has(frame.turn_id)) return;
    if (frame.event === "message.accepted") this.#accept(frame.turn_id, frame.message_id, frame.text);
    else if ("call_id" in frame && this.#calls.has(`${frame.turn_id} ${frame.call_id}`)) this.#takeStored(frame);
    else this.#turn(frame.turn_id).take(frame);
  }

  /** A call that is stored already has its card, and the text before it is stored with it. */
  #takeStored(frame: FrameOf<"tool.started" | "tool.output" | "tool.ended">) {
    if (frame.event === "tool.started") this.#turn(frame.turn_id).unsay();
    if (frame.event === "tool.ended") this.late[`${frame.turn_id} ${frame.call_id}`] = { output: frame.text, state: frame.is_error ? "error" : "done", sandbox: lineOf(frame) };
  }

  #ended(frame: FrameOf<"turn.ended">) {
    this.#settled.add(frame.turn_id);
    const turn = this.turns.find((one) => one.id === frame.turn_id);
    if (!turn && frame.message_id && this.#known.has(frame.message_id)) return;
    turn?.end();
    if (turn) turn.steered = frame.state === "steered";
    void this.refresh();
  }

  /** After a turn ended. Asked again while it runs, it runs once more. */
  async refresh() {
    this.#again = true;
    if (this.#refreshing) return;
    this.#refreshing = true;
    try {
      while (this.#again && !this.#gone) {
        this.#again = false;
        const ended = new Set(this.turns.filter((turn) => turn.ended).map((turn) => turn.id));
        const found = await this.#transcript();
        const session = await this.instance.session(this.key);
        if (this.#gone) return;
        this.turns = this.turns.filter((turn) => !ended.has(turn.id));
        const running = session.running_turn_id;
        if (running && !this.#settled.has(running)) this.#turn(running);
        this.session = session;
        this.#keep(found);
      }
    } catch (problem) {
      this.#failed(problem);
    } finally { this.#refreshing = false; }
  }

  #turn(id: string): LiveTurn {
    const found = this.turns.find((turn) => turn.id === id);
    if (found) return found;
    this.turns.push(new LiveTurn(id));
    return this.turns[this.turns.length - 1];
  }

  /** Steps of a running turn that are stored are shown as such; what is streamed of them again is left out. */
  #join(id: string) {
    const turn = this.#turn(id);
    turn.started = true;
    turn.stored = new Set(this.messages.filter((message) => message.turn_id === id && message.role === "assistant").map((message) => message.text.trim()));
  }

  /** An accepted message stands with its turn until it is stored, in place of the one still being sent. */
  #accept(turnId: string, id: string, text: string, files: Attached[] = []) {
    if (this.#known.has(id)) return;
    const own = this.unsent.outgoing.find((one) => one.text.trim() === text.trim());
    if (own) this.unsent.outgoing = this.unsent.outgoing.filter((one) => one !== own);
    const turn = this.#turn(turnId);
    if (!turn.waiting.some((one) => one.id === id)) turn.waiting.push({ id, text, files: own ? sent(own.attachments) : files });
  }

  #ask(asked: ApprovalView) {
    this.#turn(asked.turn_id).ask({ approval: asked.id, tool: asked.tool, arguments: asked.arguments, question: asked.question, requested_by: asked.requested_by, fingerprint: asked.fingerprint });
  }

  /** The steps of a turn that streams are on the page already; they come with its end. */
  #keep(found: SessionMessageView[]) {
    const streams = new Set(this.turns.map((turn) => turn.id));
    const fresh: SessionMessageView[] = [];
    for (const message of found) {
      if (!streams.has(message.turn_id)) this.#settled.add(message.turn_id);
      if (this.#known.has(message.id) || (streams.has(message.turn_id) && message.origin !== "user")) continue;
      this.#known.add(message.id);
      fresh.push(message);
      for (const part of message.parts as { type?: string; id?: string; call_id?: string }[]) {
        if (part.type === "tool_call") this.#calls.add(`${message.turn_id} ${part.id}`);
        // What came back is stored now.
        if (part.call_id) delete this.late[`${message.turn_id} ${part.call_id}`];
      }
      for (const turn of this.turns) turn.waiting = turn.waiting.filter((one) => one.id !== message.id);
    }
    if (fresh.length) this.messages = [...this.messages, ...fresh].sort((a, b) => a.position - b.position);
    if (!streams.size) this.#cursor = Math.max(this.#cursor, ...found.map((message) => message.position));
  }
}
