// Written by scripts/types.mjs from the OpenAPI document of a control plane. Do not edit.

export type AuditChainView = {
  /** The sequence number of the first bad entry. Null if the chain is intact. */
  broken_at?: number | null;
  /** The number of verified entries. */
  entries: number;
  /** The hash of the last entry. A copy kept elsewhere shows whether entries at the end were removed. */
  head: string;
  /** Whether the chain is intact. */
  intact: boolean;
  /** What is wrong with it. Null if the chain is intact. */
  reason?: string | null;
};

export type AuditEntry = {
  /** What was done, such as `instance.start`. */
  action: string;
  /** The hash of the object after the change, if known. */
  after?: string | null;
  /** When the change was made. */
  at: string;
  /** The hash of the object before the change, if known. */
  before?: string | null;
  /** Details, such as the name of the instance. */
  detail: string;
  /** A hash over this entry and the hash of the previous one, which covers all earlier entries. */
  hash: string;
  /** The sequence number of the entry. */
  seq: number;
  /** The id of the changed object. */
  target: string;
  /** Who made the change: `operator`, `token:<id>`, `instance:<id>` or `supervisor`. */
  who: string;
};

export type AuditEntryList = {
  /** The entries of this page, newest first. */
  entries: AuditEntry[];
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
};

export type BootstrapFileView = {
  /** The size in bytes. */
  bytes: number;
  /** The path relative to the workspace, or absolute. */
  file: string;
};

/** A browser login. */
export type BrowserLogin = {
  /** The user agent of the browser. */
  client: string;
  /** When the browser logged in. */
  created_at: string;
  /** Whether this call is made with this login. */
  current: boolean;
  /** When the login expires. */
  expires_at: string;
  /** The id of the login. */
  id: string;
  /** The id of the token that created the login. Null for the server's own token. */
  token?: string | null;
  /** When the login was last used, to within ten minutes. */
  used_at: string;
};

export type BrowserLoginList = {
  /** The active logins. */
  logins: BrowserLogin[];
};

export type BuildView = {
  /** The version of the control plane, which is also the program it starts instances with. */
  control_plane: string;
  /** The version of the running instance. Null if it is not running. */
  instance?: string | null;
};

export type ConfigChangeView = {
  /** The new value, or null if it is removed. Secrets are masked. */
  after: unknown;
  /** The current value, or null if it is not set. Secrets are masked. */
  before: unknown;
  /** The path of the value. */
  path: string;
};

export type ConfigDiff = {
  /** The values that would change. */
  changes: ConfigChangeView[];
  /** The number of values that would stay the same. */
  unchanged_count: number;
};

/** A complete config, or a patch of the current one. */
export type ConfigDraft = {
  /** The complete config as a JSON object. */
  config?: Record<string, unknown> | null;
  /** A JSON merge patch of the current config. */
  patch?: Record<string, unknown> | null;
  /** The complete config as TOML text. */
  toml?: string | null;
};

export type ConfigErrorView = {
  /** How to fix it. */
  hint?: string | null;
  /** The line in the file, if known. */
  line?: number | null;
  /** What is wrong. */
  message: string;
  /** The path of the setting. */
  path: string;
};

export type ConfigValidation = {
  /** Everything that is wrong with it. */
  errors: ConfigErrorView[];
  /** Whether the config is valid. */
  valid: boolean;
};

export type ConfigView = {
  /** The config as a JSON object with secrets masked. */
  config: Record<string, unknown>;
  /** Why the file cannot be parsed. None of it is shown then; it can only be replaced as a whole. */
  error?: string | null;
  /** The version of the config, for `If-Match`. */
  etag: string;
  /** Every masked secret. */
  secrets: SecretView[];
  /** The config file with secrets masked. Leaving a mask in place keeps the stored secret. */
  toml: string;
};

export type ConfigWriteResult = {
  /** The new version of the config. */
  etag: string;
  /** `saved`: the instance is not running and starts with this config. `reloaded`: the running instance uses it. `restart_required`: the listed sections take effect at the next start, all others are in use. */
  outcome: string;
  /** Sections that take effect at the next start. */
  restart_required: string[];
};

export type CreatedTokenView = Token & {
  /** The token itself, shown only once. Null if this call repeats one with the same `Idempotency-Key`. */
  secret?: string | null;
};

/** A message in a list, without its payload. */
export type Envelope = {
  /** How often delivery was attempted. */
  attempts: number;
  /** An id shared by a message and everything that follows from it. */
  correlation_id?: string | null;
  /** When the message was sent. */
  created_at: string;
  /** Why the last delivery failed. */
  error?: string | null;
  /** When delivery is given up. */
  expires_at: string;
  /** The id of the sending instance. */
  from: string;
  /** The current name of the sender. Null if it was deleted. */
  from_name?: string | null;
  /** How many instances the message has passed through. */
  hop_count: number;
  /** The id of the message. */
  id: string;
  /** The sender's idempotency key. */
  idempotency_key?: string | null;
  /** How often delivery is retried before it is given up. */
  max_retries: number;
  /** Whether secrets were removed from the payload. */
  redacted: boolean;
  /** `queued`, `delivered`, `acknowledged`, `failed` (will be retried) or `dead_letter`. */
  state: string;
  /** The id of the receiving instance. */
  to: string;
  /** The current name of the recipient. Null if it was deleted. */
  to_name?: string | null;
  /** The trace of the turn that sent the message. It continues in the receiving instance. */
  trace_id?: string | null;
  /** The type, such as `task.handoff`. */
  type: string;
  /** When the message was last changed. */
  updated_at: string;
};

export type EnvelopeDetail = Envelope & {
  /** The events of the message in order. */
  events: EnvelopeEventView[];
  /** The content of the message. */
  payload: Record<string, unknown>;
};

/** An event of a message. It never contains the payload. */
export type EnvelopeEventView = {
  /** When the event happened. */
  at: string;
  /** The correlation id of the message. */
  correlation_id?: string | null;
  /** Details, such as the reason of a failure. */
  detail?: string | null;
  /** The id of the sending instance. */
  from: string;
  /** The current name of the sender. Null if it was deleted. */
  from_name?: string | null;
  /** `created`, `queued`, `delivery_attempted`, `delivered`, `acknowledged`, `failed`, `dead_lettered` or `replayed`. */
  kind: string;
  /** The id of the message. */
  message_id: string;
  /** The type of the message. */
  message_type: string;
  /** The state of the message after the event. */
  state: string;
  /** The id of the receiving instance. */
  to: string;
  /** The current name of the recipient. Null if it was deleted. */
  to_name?: string | null;
};

export type EnvelopeList = {
  /** The messages of this page. */
  messages: Envelope[];
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
};

export type EnvelopeReceipt = {
  /** Whether the key was used before. The response then describes the first message. */
  deduplicated: boolean;
  /** When the message expires. Null for a repeated message. */
  expires_at?: string | null;
  /** The hop count after acceptance. Null for a repeated message. */
  hop_count?: number | null;
  /** The id of the message. */
  id: string;
  /** Whether secrets were removed from the payload. Null for a repeated message. */
  redacted?: boolean | null;
  /** The state of the message. */
  state: string;
};

/** The body of every error response. */
export type ErrorBody = {
  /** The error. */
  error: ErrorBodyDetail;
};

export type ErrorBodyDetail = {
  /** A stable code that programs may depend on. */
  code: string;
  /** Additional data for programs, if there is any. */
  details?: Record<string, unknown> | null;
  /** How to fix it. */
  hint?: string | null;
  /** What went wrong, for people. */
  message: string;
};

export type FailPendingBody = {
  /** The reason, for people. */
  error?: string;
  /** The lease id from the poll. */
  lease: string;
};

export type FleetHealth = {
  /** The instances that are not archived. */
  instances: InstanceHealth[];
  /** `ok`, or `degraded` if an instance that should run does not run or does not answer. */
  status: string;
  /** Milliseconds since the control plane started. */
  uptime_ms: number;
  /** The version of the control plane. */
  version: string;
};

/** A remark about a key of the source config. */
export type ImportNote = {
  /** The path of the key. */
  path: string;
  /** What it is about. */
  reason: string;
};

export type ImportReport = {
  /** The imported agents. */
  agents: string[];
  /** The number of bindings. */
  bindings: number;
  /** Keys with a different meaning in Polyclaw. */
  changed: ImportNote[];
  /** The imported chat accounts as `channel:account`. */
  channels: string[];
  /** Each copied folder with its destination. */
  folders: string[];
  /** Keys that have no effect in Polyclaw. */
  ignored: ImportNote[];
  /** Secrets that were not imported, and what needs them. */
  left: ImportNote[];
  /** The number of messages in them. */
  messages: number;
  /** The name of the instance. */
  name: string;
  /** The imported model providers. */
  providers: string[];
  /** The number of cron jobs. */
  schedules: number;
  /** The names under which secrets are stored. */
  secrets: string[];
  /** The number of conversations. */
  sessions: number;
  /** The number of workspaces. */
  workspaces: number;
};

export type ImportResult = {
  /** Whether the same source was imported before, so that nothing was changed. */
  already: boolean;
  instance?: Instance | null;
  /** What was found and imported. */
  report: ImportReport;
  /** The id of the import. Null for a dry run. */
  run?: string | null;
};

export type ImportRun = {
  /** When the import started. */
  created_at: string;
  /** When the import ended. */
  ended_at?: string | null;
  /** The id of the import. */
  id: string;
  /** The imported instance, if it still exists. */
  instance_id?: string | null;
  /** The path of the imported config. */
  source: string;
  /** `running`, `done` or `rolled_back`. */
  state: string;
};

export type ImportRuns = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The imports of this page. */
  runs: ImportRun[];
};

export type Instance = {
  /** When the instance was archived. Null if it is active. */
  archived_at?: string | null;
  /** When the instance was created. */
  created_at: string;
  /** The last requested state: `running` or `stopped`. */
  desired_state: string;
  /** Why the instance does not run although it should, or that it does not answer. */
  error?: string | null;
  /** The id of the instance. */
  id: string;
  /** The name of the instance. */
  name: string;
  /** The process id, if it is running. */
  pid?: number | null;
  /** The port that the instance listens on. */
  port: number;
  /** When the instance is restarted automatically: `never`, `on-failure` or `always`. */
  restart: string;
  /** The current status: `running`, `unresponsive`, `starting`, `restarting`, `stopped`, `crashed`, `stale-pid`, `unknown`, `error` or `archived`. */
  status: string;
};

export type InstanceDetailsView = {
  /** Files that define the identity and instructions of agents. */
  bootstrap_files: BootstrapFileView[];
  /** The program versions. */
  build: BuildView;
  /** The configured accounts of each channel. */
  channels: Record<string, unknown>;
  /** The effective config including defaults, with secrets masked. Null if the file cannot be read. */
  config: Record<string, unknown>;
  /** Why the config cannot be read. */
  config_error?: string | null;
  /** The instance. */
  instance: Instance;
  /** The default model, and the configured providers and models. */
  models: Record<string, unknown>;
  /** Uptime and health of the running instance. */
  runtime: RuntimeView;
};

export type InstanceHealth = {
  /** The health the instance reports: `ok`, `degraded` or `draining`. Null if it does not run or does not answer. */
  health?: string | null;
  /** The id of the instance. */
  id: string;
  /** The name of the instance. */
  name: string;
  /** The process id, if it is running. */
  pid?: number | null;
  /** The status, such as `running` or `stopped`. */
  status: string;
  /** Milliseconds since it started, as it reports. Null if it does not run or does not answer. */
  uptime_ms?: number | null;
};

export type InstanceList = {
  /** The instances of this page. */
  instances: Instance[];
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
};

/** Usage of an instance. Unknown numbers are null, never zero. */
export type InstanceUsageView = {
  /** Cost in US dollars. */
  cost_usd?: number | null;
  /** Whether there was any usage. */
  data_available: boolean;
  /** Input tokens. */
  input_tokens?: number | null;
  /** Why usage is unavailable. */
  message?: string | null;
  /** Output tokens. */
  output_tokens?: number | null;
  /** The number of model calls. */
  request_count: number;
  /** Input and output tokens. */
  total_tokens?: number | null;
  /** Calls without reported usage. The sums do not include them. */
  unknown_count: number;
  /** The requested time window. */
  window: UsageWindow;
};

export type LeaseBody = {
  /** The lease id from the poll. */
  lease: string;
};

export type LogLines = {
  /** Whether the file of the cursor was deleted, so that the page starts with the oldest line. */
  gap: boolean;
  /** Whether more lines are available now. */
  has_more: boolean;
  /** The lines, oldest first. */
  lines: string[];
  /** The cursor of the next page, even if that is still empty. Null for `tail`. */
  next_cursor?: string | null;
  /** How much of the log is kept. */
  retention: LogRetention;
};

/** The log rotation: a full file is set aside, and the oldest one is deleted. */
export type LogRetention = {
  /** The size at which a file is rotated, in bytes. */
  file_bytes: number;
  /** The number of rotated files that are kept. */
  files_kept: number;
};

export type LoginLink = {
  /** A one-time code that logs in one browser. */
  code: string;
  /** When the code expires. */
  expires_at: string;
  /** The path that logs in, relative to the address of the server. */
  path: string;
};

export type NewClone = {
  /** The name of the clone: letters, digits and hyphens. */
  new_name: string;
  /** The port of the clone. Defaults to the first free port from 18801. */
  port?: number | null;
};

/** A complete config as TOML or as JSON. */
export type NewConfig = {
  /** The config as a JSON object. */
  config?: Record<string, unknown> | null;
  /** The expected version, instead of `If-Match`. */
  etag?: string | null;
  /** The config as TOML text. */
  toml?: string | null;
};

export type NewEnvelopeBody = {
  /** An id shared by a message and everything that follows from it. */
  correlation_id?: string | null;
  /** The sending instance, by id or name. Required for operators; an instance can only send for itself. */
  from?: string | null;
  /** How many instances the message has passed through, as far as the sender knows. The broker raises a value that is too low. */
  hop_count?: number;
  /** Messages with the same key within a day are stored only once. */
  idempotency_key?: string | null;
  /** The content, at most 64 KiB as JSON. */
  payload?: Record<string, unknown>;
  /** The receiving instance, by id or name. */
  to: string;
  /** The trace of the turn that sends the message. It continues in the receiving instance. */
  trace_id?: string | null;
  /** The type: words joined by dots, such as `task.handoff`. */
  type: string;
};

export type NewImport = {
  /** Also copy workspaces outside the config's folder. */
  allow_outside?: boolean;
  /** Only report what would be imported and change nothing. */
  dry_run?: boolean;
  /** The name of the instance. Defaults to the name of the folder. */
  name?: string | null;
  /** The absolute path of an `openclaw.json` on the machine of the control plane, or of its folder. */
  path: string;
  /** The port of the instance. Defaults to the first free port from 18801. */
  port?: number | null;
  /** Move plain-text secrets to the instance's secret store. */
  with_secrets?: boolean;
};

export type NewInstance = {
  /** The default model of its agents. */
  model?: string | null;
  /** The name: letters, digits and hyphens. */
  name: string;
  /** The port. Defaults to the first free port from 18801. */
  port?: number | null;
  /** The model provider to configure, such as `openai`. */
  provider?: string | null;
  /** When the instance is restarted automatically: `never`, `on-failure` (default) or `always`. */
  restart?: string | null;
};

export type NewRuleBody = {
  /** Whether a message starts a stopped recipient. */
  auto_start?: boolean;
  /** The sending instance, by id or name. */
  from: string;
  /** How often delivery is retried before it is given up. Default 5. */
  max_retries?: number | null;
  /** The receiving instance, by id or name. */
  to: string;
  /** How many seconds a message may wait before it is given up. Default 3600. */
  ttl_secs?: number | null;
  /** A message type, or all types below one: `task.*`. */
  type: string;
};

export type NewToken = {
  /** A name for people, such as the owner or the purpose. */
  name: string;
  /** The access of the token: `read`, `operate` or `admin`. */
  scope: string;
};

export type PastTurn = {
  /** The agent that answered. */
  agent_id: string;
  /** The channel the message came from. */
  channel?: string | null;
  /** When the turn was queued. */
  created_at: string;
  /** Milliseconds from start to end. Null while the turn has not ended. */
  duration_ms?: number | null;
  /** The code of the error, if the turn failed. */
  error_code?: string | null;
  /** The id of the turn. */
  id: string;
  /** The model that answered. */
  model?: string | null;
  /** The beginning of the reply, or the error. */
  outcome?: string | null;
  /** The session of the turn. */
  session_key: string;
  /** The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer message). */
  status: string;
  /** The beginning of the message. */
  summary?: string | null;
  /** The trace of the turn. A trace connects all turns caused by one message. */
  trace_id: string;
};

export type PastTurnList = {
  /** Whether the history could be read. */
  data_available: boolean;
  /** Why the history could not be read. */
  message?: string | null;
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The turns of this page. */
  tasks: PastTurn[];
};

/** A message leased to the caller. */
export type PendingEnvelope = Envelope & {
  /** The id of the lease, required to acknowledge, fail or renew. */
  lease: string;
  /** When the lease expires. */
  leased_until: string;
  /** The content of the message. */
  payload: Record<string, unknown>;
};

export type PendingEnvelopeList = {
  /** The leased messages. */
  messages: PendingEnvelope[];
};

export type RenewedLease = {
  /** When the renewed lease expires. */
  leased_until: string;
};

export type RestartPolicyBody = {
  /** When the instance is restarted automatically: `never`, `on-failure` or `always`. */
  restart: string;
};

export type RoutingRule = {
  /** Whether a message starts a stopped recipient. */
  auto_start: boolean;
  /** When the rule was created. */
  created_at: string;
  /** The id of the sending instance. */
  from: string;
  /** The current name of the sender. */
  from_name?: string | null;
  /** The id of the rule. */
  id: string;
  /** How often delivery is retried before it is given up. */
  max_retries: number;
  /** The id of the receiving instance. */
  to: string;
  /** The current name of the recipient. */
  to_name?: string | null;
  /** How many seconds a message may wait before it is given up. */
  ttl_secs: number;
  /** A message type, or all types below one: `task.*`. */
  type: string;
};

export type RuleList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The rules of this page. */
  rules: RoutingRule[];
};

/** Changes of a rule. Omitted fields stay as they are. */
export type RulePatch = {
  /** Whether a message starts a stopped recipient. */
  auto_start?: boolean | null;
  /** How often delivery is retried before it is given up. */
  max_retries?: number | null;
  /** How many seconds a message may wait before it is given up. */
  ttl_secs?: number | null;
  /** A message type, or all types below one: `task.*`. */
  type?: string | null;
};

export type RuntimeView = {
  /** The health the instance reports: `ok`, `degraded` or `draining`. */
  health?: string | null;
  /** Milliseconds since it started. Null if it is not running. */
  uptime_ms?: number | null;
};

export type SecretView = {
  /** Distinguishes secrets without revealing them: the last characters of a long one, else `configured`. */
  fingerprint: string;
  /** The path of the secret in the config. */
  path: string;
};

export type Token = {
  /** When the token was created. */
  created_at: string;
  /** The id of the token. */
  id: string;
  /** The name of the token. */
  name: string;
  /** When the token was revoked. Null if it is valid. */
  revoked_at?: string | null;
  /** The access of the token: `read`, `operate` or `admin`. */
  scope: string;
};

export type TokenList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The tokens of this page. */
  tokens: Token[];
};

export type UnarchiveBody = {
  /** The port. Defaults to the previous port, or a free one if that is taken. */
  port?: number | null;
};

export type UsageWindow = "1h" | "24h" | "7d" | "30d";

export type VersionView = {
  /** The scope of the calling token: `read`, `operate` or `admin`. */
  scope: string;
  /** The version of the control plane. */
  version: string;
};
