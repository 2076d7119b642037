import type { Instance } from "../api/instance";
import type { AgentView, ModelView } from "../api/instance.types";
import { LONE, place } from "./place.svelte";
import { route } from "./route.svelte";

/** The instance the address names. */
export const here = (): Instance => place.instance(route.instance ?? LONE);

/** Who can answer on an instance, and with which models. */
export class Cast {
  agents = $state.raw<AgentView[]>([]);
  models = $state.raw<ModelView[]>([]);
  defaultModel = $state<string | null>(null);

  constructor(readonly instance: Instance) {}

  async load() {
    const [{ agents }, models] = await Promise.all([this.instance.agents(), this.instance.models()]);
    this.agents = agents;
    this.models = models.models;
    this.defaultModel = models.default_model ?? null;
  }

  get defaultAgent(): string { return this.agents.find((one) => one.default)?.agent_id ?? this.agents[0]?.agent_id ?? ""; }

  /** How an agent shows itself: its emoji, if it has one, and its name. */
  face(id: string | null | undefined): string {
    const { name, emoji } = this.agents.find((one) => one.agent_id === id)?.shown ?? {};
    return [emoji, name ?? id].filter(Boolean).join(" ");
  }

  modelOf(agent: string): string | null {
    const model = this.agents.find((one) => one.agent_id === agent)?.defaults?.model;
    if (!model) return this.defaultModel;
    return typeof model === "string" ? model : `${model.provider}/${model.model}`;
  }

  isDemo(model: string | null): boolean { return this.models.some((one) => one.model === model && one.demo); }
}
