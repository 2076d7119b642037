import type { ApprovalView } from "../api/instance.types";
import { fleet } from "./fleet.svelte";
import { LONE, place } from "./place.svelte";

/** What waits for a person's yes or no, over all instances that run. */
export interface PendingApproval extends ApprovalView { instance: string }

class Pending {
  list = $state<PendingApproval[]>([]);
  /** Instances that did not answer. */
  silent = $state<string[]>([]);
  loaded = $state(false);

  async load() {
    // Before the instances are known there is nobody to ask, and nothing to say.
    if (place.mode === "control" && !fleet.loaded) return;
    const ids = place.mode === "lone" ? [LONE] : fleet.list.filter((one) => one.status === "running").map((one) => one.id);
    const silent: string[] = [];
    const found = await Promise.all(ids.map(async (instance) => {
      const answer = await place.instance(instance).approvals().catch(() => null);
      if (!answer) silent.push(instance);
      return (answer?.approvals ?? []).filter((one) => one.state === "pending").map((one): PendingApproval => ({ ...one, instance }));
    }));
    this.list = found.flat().sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
    this.silent = silent;
    this.loaded = true;
  }

  async decide(question: PendingApproval, decision: "approve" | "deny", reason?: string) {
    await place.instance(question.instance).decide(question.id, { decision, reason, fingerprint: question.fingerprint });
    this.list = this.list.filter((one) => one !== question);
  }
}

export const pending = new Pending();
