import type * as T from "./control.types";
import { fetchAllPages, request, requestJson, queryString, socketUrl, type RequestOptions } from "./http";
import type { PageQuery } from "./instance";

const encode = encodeURIComponent;
const get = <R>(path: string) => requestJson<R>("GET", `api${path}`);
/** Adds an idempotency key, so a call that is sent twice runs once. */
const post = <R>(path: string, body: unknown = {}) => requestJson<R>("POST", `api${path}`, { body, headers: { "idempotency-key": crypto.randomUUID() } });

const PAGE_SIZE = 500;

/** Filters for messages between instances. A field that is not set matches everything. */
export interface EnvelopeFilter { from?: string; to?: string; instance?: string; type?: string; state?: string; correlation_id?: string; after?: string; before?: string }

/** The API of the control plane. */
export const control = {
  version: () => get<T.VersionView>("/version"),
  gatewayPath: (id: string) => `api/instances/${encode(id)}/gateway`,

  health: () => get<T.FleetHealth>("/health"),
  instances: (archived: boolean) => fetchAllPages((cursor) => get<T.InstanceList>(`/instances${queryString({ include_archived: archived, limit: PAGE_SIZE, cursor })}`), (page) => page.instances),
  createInstance: (body: T.NewInstance) => post<T.Instance>("/instances", body),
  runAction: (id: string, action: "start" | "stop" | "restart" | "archive" | "unarchive") => post<T.Instance>(`/instances/${encode(id)}/${action}`),
  cloneInstance: (id: string, body: { new_name: string; port?: number }) => post<T.Instance>(`/instances/${encode(id)}/clone`, body),
  deleteInstance: (id: string) => requestJson<void>("DELETE", `api/instances/${encode(id)}`),
  pastTurns: (id: string, filter: PageQuery & { after?: string }) => get<T.PastTurnList>(`/instances/${encode(id)}/tasks${queryString({ ...filter })}`),
  usage: (id: string, window: string) => get<T.InstanceUsageView>(`/instances/${encode(id)}/usage${queryString({ window })}`),

  logs: (id: string, lines: number, cursor?: string | null) =>
    get<T.LogLines>(`/instances/${encode(id)}/logs${queryString({ mode: cursor === undefined ? "tail" : "page", lines, cursor })}`),
  downloadLogs: (id: string) => request("GET", `api/instances/${encode(id)}/logs/download`),

  async config(id: string): Promise<T.ConfigView> {
    const response = await request("GET", `api/instances/${encode(id)}/config`);
    const file = await response.json() as T.ConfigView;
    return { ...file, etag: response.headers.get("etag") ?? file.etag };
  },
  saveConfig: (id: string, toml: string, etag: string, withSecrets: boolean) =>
    requestJson<T.ConfigWriteResult>("PUT", `api/instances/${encode(id)}/config`, saveConfigOptions(toml, etag, withSecrets)),
  validateConfig: (id: string, toml: string, signal?: AbortSignal) => requestJson<T.ConfigValidation>("POST", `api/instances/${encode(id)}/config/validate`, { body: { toml }, signal }),

  rules: () => fetchAllPages((cursor) => get<T.RuleList>(`/routing-rules${queryString({ limit: PAGE_SIZE, cursor })}`), (page) => page.rules),
  createRule: (body: T.NewRuleBody) => post<T.RoutingRule>("/routing-rules", body),
  updateRule: (id: string, body: T.RulePatch) => requestJson<T.RoutingRule>("PATCH", `api/routing-rules/${encode(id)}`, { body }),
  deleteRule: (id: string) => requestJson<void>("DELETE", `api/routing-rules/${encode(id)}`),
  envelopes: (filter: PageQuery & EnvelopeFilter) => get<T.EnvelopeList>(`/messages${queryString({ ...filter })}`),
  envelope: (id: string) => get<T.EnvelopeDetail>(`/messages/${encode(id)}`),
  replayEnvelope: (id: string) => post<T.Envelope>(`/messages/${encode(id)}/replay`),

  setRestartPolicy: (id: string, restart: string) => requestJson<T.Instance>("PATCH", `api/instances/${encode(id)}`, { body: { restart } }),
  importOpenclaw: (body: T.NewImport) => post<T.ImportResult>("/import/openclaw", body),
  tokens: () => get<T.TokenList>("/tokens?limit=1000"),
  createToken: (body: T.NewToken) => requestJson<T.CreatedTokenView>("POST", "api/tokens", { body }),
  logins: () => get<T.BrowserLoginList>("/logins"),
  endLogin: (id: string) => requestJson<void>("DELETE", `api/logins/${encode(id)}`),
  revokeToken: (id: string) => requestJson<void>("DELETE", `api/tokens/${encode(id)}`),

  audit: (page: PageQuery) => get<T.AuditEntryList>(`/audit${queryString({ ...page })}`),
};

function saveConfigOptions(toml: string, etag: string, withSecrets: boolean): RequestOptions {
  const secrets: Record<string, string> = withSecrets ? { "x-allow-secret-write": "true" } : {};
  return { body: { toml }, headers: { "if-match": etag, ...secrets } };
}

export const sockets = {
  instances: () => socketUrl("ws/instances"),
  logs: (id: string, backlog: number) => socketUrl(`ws/instances/${encode(id)}/logs${queryString({ backlog })}`),
  /** Events of one instance, or of all. */
  events: (instance?: string) => socketUrl(`ws/events${queryString({ instance })}`),
  messages: (instance?: string) => socketUrl(`ws/messages${queryString({ instance })}`),
};
