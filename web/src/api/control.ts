import type * as T from "./control.types";
import { all, answer, call, query, socketAddress, type Options } from "./http";
import type { Page } from "./instance";

const at = encodeURIComponent;
const get = <R>(path: string) => call<R>("GET", `api${path}`);
/** Sent twice, a call with such a key is done once. */
const post = <R>(path: string, body: unknown = {}) => call<R>("POST", `api${path}`, { body, headers: { "idempotency-key": crypto.randomUUID() } });

const PAGE = 500;

/** Which messages between instances are meant; what is not said is any. */
export interface EnvelopeFilter { from?: string; to?: string; instance?: string; type?: string; state?: string; correlation_id?: string; after?: string; before?: string }

/** The API of the control plane. */
export const control = {
  version: () => get<T.VersionView>("/version"),
  gateway: (id: string) => `api/instances/${at(id)}/gateway`,

  health: () => get<T.FleetHealth>("/health"),
  instances: (archived: boolean) => all((cursor) => get<T.InstanceList>(`/instances${query({ include_archived: archived, limit: PAGE, cursor })}`), (page) => page.instances),
  create: (body: T.NewInstance) => post<T.Instance>("/instances", body),
  act: (id: string, action: "start" | "stop" | "restart" | "archive" | "unarchive") => post<T.Instance>(`/instances/${at(id)}/${action}`),
  clone: (id: string, body: { new_name: string; port?: number }) => post<T.Instance>(`/instances/${at(id)}/clone`, body),
  remove: (id: string) => call<void>("DELETE", `api/instances/${at(id)}`),
  turns: (id: string, filter: Page & { after?: string }) => get<T.PastTurnList>(`/instances/${at(id)}/tasks${query({ ...filter })}`),
  usage: (id: string, window: string) => get<T.InstanceUsageView>(`/instances/${at(id)}/usage${query({ window })}`),

  logs: (id: string, lines: number, cursor?: string | null) =>
    get<T.LogLines>(`/instances/${at(id)}/logs${query({ mode: cursor === undefined ? "tail" : "page", lines, cursor })}`),
  downloadLogs: (id: string) => answer("GET", `api/instances/${at(id)}/logs/download`),

  async config(id: string): Promise<T.ConfigView> {
    const response = await answer("GET", `api/instances/${at(id)}/config`);
    const file = await response.json() as T.ConfigView;
    return { ...file, etag: response.headers.get("etag") ?? file.etag };
  },
  saveConfig: (id: string, toml: string, etag: string, withSecrets: boolean) =>
    call<T.ConfigWriteResult>("PUT", `api/instances/${at(id)}/config`, saving(toml, etag, withSecrets)),
  validate: (id: string, toml: string, signal?: AbortSignal) => call<T.ConfigValidation>("POST", `api/instances/${at(id)}/config/validate`, { body: { toml }, signal }),

  rules: () => all((cursor) => get<T.RuleList>(`/routing-rules${query({ limit: PAGE, cursor })}`), (page) => page.rules),
  createRule: (body: T.NewRuleBody) => post<T.RoutingRule>("/routing-rules", body),
  changeRule: (id: string, body: T.RulePatch) => call<T.RoutingRule>("PATCH", `api/routing-rules/${at(id)}`, { body }),
  removeRule: (id: string) => call<void>("DELETE", `api/routing-rules/${at(id)}`),
  envelopes: (filter: Page & EnvelopeFilter) => get<T.EnvelopeList>(`/messages${query({ ...filter })}`),
  envelope: (id: string) => get<T.EnvelopeDetail>(`/messages/${at(id)}`),
  replay: (id: string) => post<T.Envelope>(`/messages/${at(id)}/replay`),

  setRestart: (id: string, restart: string) => call<T.Instance>("PATCH", `api/instances/${at(id)}`, { body: { restart } }),
  importOpenclaw: (body: T.NewImport) => post<T.ImportResult>("/import/openclaw", body),
  tokens: () => get<T.TokenList>("/tokens?limit=1000"),
  createToken: (body: T.NewToken) => call<T.CreatedTokenView>("POST", "api/tokens", { body }),
  logins: () => get<T.BrowserLoginList>("/logins"),
  endLogin: (id: string) => call<void>("DELETE", `api/logins/${at(id)}`),
  revokeToken: (id: string) => call<void>("DELETE", `api/tokens/${at(id)}`),

  audit: (page: Page) => get<T.AuditEntryList>(`/audit${query({ ...page })}`),
};

function saving(toml: string, etag: string, withSecrets: boolean): Options {
  const secrets: Record<string, string> = withSecrets ? { "x-allow-secret-write": "true" } : {};
  return { body: { toml }, headers: { "if-match": etag, ...secrets } };
}

export const sockets = {
  instances: () => socketAddress("ws/instances"),
  logs: (id: string, backlog: number) => socketAddress(`ws/instances/${at(id)}/logs${query({ backlog })}`),
  /** What happens in one instance, or in all. */
  events: (instance?: string) => socketAddress(`ws/events${query({ instance })}`),
  messages: (instance?: string) => socketAddress(`ws/messages${query({ instance })}`),
};
