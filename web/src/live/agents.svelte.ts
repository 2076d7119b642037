import type { InstanceApi } from "../api/instance";
import type { AgentView, ModelView, SessionView } from "../api/instance.types";
import { t, tValue } from "../i18n/language.svelte";
import { STANDALONE_ID, server } from "./server.svelte";
import { route } from "./route.svelte";

/** The instance in the address. */
export const currentInstance = (): InstanceApi => server.instance(route.instance ?? STANDALONE_ID);

/** Channels whose session keys contain the name of a conversation. */
const CHAT_PLATFORMS = new Set(["telegram", "discord", "slack", "whatsapp", "matrix", "webhook"]);

/** The agents and models of an instance. */
export class AgentDirectory {
  agents = $state.raw<AgentView[]>([]);
  models = $state.raw<ModelView[]>([]);
  defaultModel = $state<string | null>(null);

  constructor(readonly instance: InstanceApi) {}

  async load() {
    const [{ agents }, models] = await Promise.all([this.instance.agents(), this.instance.models()]);
    this.agents = agents;
    this.models = models.models;
    this.defaultModel = models.default_model ?? null;
  }

  get defaultAgent(): string { return this.agents.find((one) => one.default)?.agent_id ?? this.agents[0]?.agent_id ?? ""; }

  /** Emoji, if there is one, and name of an agent. */
  displayName(id: string | null | undefined): string {
    const { name, emoji } = this.agents.find((one) => one.agent_id === id)?.appearance ?? {};
    return [emoji, name ?? id].filter(Boolean).join(" ");
  }

  /** The title of a session, or else a name derived from its key. */
  sessionTitle({ title, session_key, active_agent_id }: SessionView): string {
    const [, , channel, , ...peer] = session_key.split(":");
    if (title) return title;
    if (channel === "main") return t("sessions.main", { agent: this.displayName(active_agent_id) });
    return peer.length && CHAT_PLATFORMS.has(channel) ? `${tValue("channel", channel)} · ${peer.join(":")}` : t("chat.untitled");
  }

  modelOfAgent(agent: string): string | null {
    const model = this.agents.find((one) => one.agent_id === agent)?.defaults?.model;
    if (!model) return this.defaultModel;
    return typeof model === "string" ? model : `${model.provider}/${model.model}`;
  }

  isDemoModel(model: string | null): boolean { return this.models.some((one) => one.model === model && one.demo); }
}
