import type { Component } from "svelte";
import type { IconName } from "../design/Icon.svelte";
import type { MessageKey } from "../i18n/language.svelte";
import { server } from "../live/server.svelte";
import { permissions, type Scope } from "../live/permissions.svelte";
import { GLOBAL_VIEWS, INSTANCE_VIEWS, type GlobalView, type InstanceView } from "../live/route.svelte";

/** All views. Each is loaded when it is first opened. */
export interface ViewDefinition { name: string; icon: IconName; label: MessageKey; load: () => Promise<{ default: Component<Record<string, never>> }>; needsControl?: boolean; /** The instance itself serves the data, so it must be running. */ needsRunning?: boolean; /** The scope that the login needs. */ requiredScope?: Scope }

export const instanceViews: Record<InstanceView, ViewDefinition> = {
  overview: { name: "overview", icon: "overview", label: "nav.overview", load: () => import("../pages/Overview.svelte") },
  chat: { name: "chat", icon: "chat", label: "nav.chat", load: () => import("../pages/Chat.svelte"), needsRunning: true },
  sessions: { name: "sessions", icon: "sessions", label: "nav.sessions", load: () => import("../pages/Sessions.svelte"), needsRunning: true },
  agents: { name: "agents", icon: "agents", label: "nav.agents", load: () => import("../pages/Agents.svelte"), needsRunning: true },
  teams: { name: "teams", icon: "teams", label: "nav.teams", load: () => import("../pages/Teams.svelte"), needsRunning: true },
  messages: { name: "messages", icon: "mail", label: "nav.messages", load: () => import("../pages/Messages.svelte"), needsControl: true },
  logs: { name: "logs", icon: "logs", label: "nav.logs", load: () => import("../pages/Logs.svelte"), needsControl: true },
  config: { name: "config", icon: "config", label: "nav.config", load: () => import("../pages/Config.svelte"), needsControl: true },
  usage: { name: "usage", icon: "usage", label: "nav.usage", load: () => import("../pages/Usage.svelte"), needsRunning: true },
  events: { name: "events", icon: "events", label: "nav.events", load: () => import("../pages/Events.svelte"), needsRunning: true },
};

export const globalViews: Record<GlobalView, ViewDefinition> = {
  fleet: { name: "fleet", icon: "fleet", label: "nav.fleet", load: () => import("../pages/Fleet.svelte"), needsControl: true },
  approvals: { name: "approvals", icon: "approvals", label: "nav.approvals", load: () => import("../pages/Approvals.svelte") },
  messages: { name: "messages", icon: "messages", label: "nav.all_messages", load: () => import("../pages/Messages.svelte"), needsControl: true },
  access: { name: "access", icon: "key", label: "nav.access", load: () => import("../pages/Access.svelte"), needsControl: true, requiredScope: "admin" },
  audit: { name: "audit", icon: "audit", label: "nav.audit", load: () => import("../pages/Audit.svelte"), needsControl: true, requiredScope: "admin" },
};

const isReachable = (view: ViewDefinition) => (server.mode === "control" || !view.needsControl) && permissions.allows(view.requiredScope ?? "read");
export const visibleGlobalViews = () => GLOBAL_VIEWS.map((name) => globalViews[name]).filter(isReachable);
export const visibleInstanceViews = () => INSTANCE_VIEWS.map((name) => instanceViews[name]).filter(isReachable);
