import type { ApprovalView } from "../api/instance.types";
import { fleet } from "./fleet.svelte";
import { STANDALONE_ID, server } from "./server.svelte";

/** Pending approvals of all running instances. */
export interface PendingApproval extends ApprovalView { instance: string }

class PendingApprovals {
  list = $state<PendingApproval[]>([]);
  /** Instances that did not respond. */
  unreachable = $state<string[]>([]);
  isLoaded = $state(false);

  async load() {
    // Wait until the instances are loaded.
    if (server.mode === "control" && !fleet.isLoaded) return;
    const ids = server.mode === "standalone" ? [STANDALONE_ID] : fleet.instances.filter((one) => one.status === "running").map((one) => one.id);
    const unreachable: string[] = [];
    const found = await Promise.all(ids.map(async (instance) => {
      const response = await server.instance(instance).approvals().catch(() => null);
      if (!response) unreachable.push(instance);
      return (response?.approvals ?? []).filter((one) => one.state === "pending").map((one): PendingApproval => ({ ...one, instance }));
    }));
    this.list = found.flat().sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
    this.unreachable = unreachable;
    this.isLoaded = true;
  }

  async decide(approval: PendingApproval, decision: "approve" | "deny", reason?: string) {
    await server.instance(approval.instance).decideApproval(approval.id, { decision, reason, fingerprint: approval.fingerprint });
    this.list = this.list.filter((one) => one !== approval);
  }
}

export const pendingApprovals = new PendingApprovals();
