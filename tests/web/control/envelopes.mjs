// Messages between instances, their rules and what became of them.
import { randomUUID } from "node:crypto";
import { Refusal } from "./answers.mjs";

export class Envelopes {
  all = [];
  rules = [];

  constructor(told) { this.told = told; }

  addRule({ from, to, type, max_retries = 5, ttl_secs = 3600, auto_start = false }) {
    if (this.rules.some((one) => one.from === from && one.to === to && one.type === type)) throw new Refusal(409, "rule_exists", "that rule is there already");
    const rule = { id: randomUUID(), from, to, type, max_retries, ttl_secs, auto_start, created_at: new Date().toISOString() };
    this.rules.push(rule);
    return rule;
  }

  removeRule(id) {
    if (!this.rules.some((one) => one.id === id)) throw new Refusal(404, "unknown_rule", "there is no such rule");
    this.rules = this.rules.filter((one) => one.id !== id);
  }

  send({ from, to, type, payload, correlation_id = null, state = "queued", at = new Date().toISOString() }) {
    const envelope = { id: randomUUID(), from, to, type, payload, correlation_id, state, hop_count: 0, attempts: 0, created_at: at, error: null, events: [] };
    this.all.unshift(envelope);
    this.#note(envelope, "created", at);
    this.#note(envelope, "queued", at);
    return envelope;
  }

  move(envelope, state, kind, detail) {
    envelope.state = state;
    if (kind === "delivery_attempted" || kind === "failed") envelope.attempts += 1;
    if (state === "dead_letter") envelope.error = detail ?? null;
    this.#note(envelope, kind, new Date().toISOString(), detail);
  }

  #note(envelope, kind, at, detail = null) {
    envelope.events.push({ message_id: envelope.id, kind, at, detail });
    this.told({ type: "message_event", message_id: envelope.id, kind, state: envelope.state, at, correlation_id: envelope.correlation_id }, envelope);
  }

  find(id) {
    const found = this.all.find((one) => one.id === id);
    if (!found) throw new Refusal(404, "unknown_message", "there is no such message");
    return found;
  }

  replay(id) {
    const envelope = this.find(id);
    if (envelope.state !== "dead_letter") throw new Refusal(409, "not_now", "only a dead letter can be sent again");
    envelope.error = null;
    this.move(envelope, "queued", "replayed");
    return envelope;
  }

  list(query) {
    const [instance, direction, correlation, state] = ["instance", "direction", "correlation_id", "state"].map((name) => query.get(name));
    return this.all.filter((one) => (!correlation || one.correlation_id === correlation) && (!state || one.state === state)
      && (!direction || (direction === "in" ? one.to : one.from) === instance)).map(({ events: _, payload: __, ...rest }) => rest);
  }
}
