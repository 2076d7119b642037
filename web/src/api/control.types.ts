// Written by scripts/types.mjs from the OpenAPI document of a control plane. Do not edit.

export type AuditChainView = {
  broken_at?: number | null;
  entries: number;
  /** Of the last entry: written down elsewhere, it shows whether the end was cut off. */
  head: string;
  intact: boolean;
  reason?: string | null;
};

export type AuditEntry = {
  action: string;
  after?: string | null;
  at: string;
  before?: string | null;
  detail: string;
  /** Of this entry and, through the one before it, of all before it. */
  hash: string;
  seq: number;
  target: string;
  /** `operator`, `token:<id>`, `instance:<id>` or `supervisor`. */
  who: string;
};

export type AuditEntryList = {
  entries: AuditEntry[];
  next_cursor?: string | null;
};

export type BootstrapFileView = {
  bytes: number;
  /** Below the workspace, or absolute. */
  file: string;
};

/** A browser that is logged in. */
export type BrowserLogin = {
  /** What the browser calls itself. */
  client: string;
  created_at: string;
  /** Whether this call is made with it. */
  current: boolean;
  expires_at: string;
  id: string;
  /** The token it logged in with; null for the server's own. */
  token?: string | null;
  /** When it was used last, to within ten minutes. */
  used_at: string;
};

export type BrowserLoginList = {
  logins: BrowserLogin[];
};

export type BuildView = {
  /** Of the control plane, which is the program it starts instances with. */
  control_plane: string;
  /** Of the running instance; null where it does not run. */
  instance?: string | null;
};

export type ConfigChangeView = {
  /** Null where there is nothing any more. */
  after: unknown;
  /** Null where there was nothing. Secrets are masked. */
  before: unknown;
  path: string;
};

export type ConfigDiff = {
  changes: ConfigChangeView[];
  unchanged_count: number;
};

/** A whole config, or a patch of the one there is. */
export type ConfigDraft = {
  config?: Record<string, unknown> | null;
  patch?: Record<string, unknown> | null;
  toml?: string | null;
};

export type ConfigErrorView = {
  hint?: string | null;
  line?: number | null;
  message: string;
  path: string;
};

export type ConfigValidation = {
  errors: ConfigErrorView[];
  valid: boolean;
};

export type ConfigView = {
  config: Record<string, unknown>;
  /** Why the file can not be read; nothing of it is shown then, and a whole config can be put in its place. */
  error?: string | null;
  etag: string;
  secrets: SecretView[];
  /** The file. Secrets are masked; a mask that comes back keeps what is stored. */
  toml: string;
};

export type ConfigWriteResult = {
  etag: string;
  /** `saved`: it does not run, and begins with this config. `reloaded`: it works with it. `restart_required`: what is listed takes effect at its next start, the rest does now. */
  outcome: string;
  restart_required: string[];
};

export type CreatedTokenView = Token & {
  /** The token itself. It is shown once: null where the call was made before with the same `Idempotency-Key`. */
  secret?: string | null;
};

/** A message as lists show it: without what it says. */
export type Envelope = {
  attempts: number;
  correlation_id?: string | null;
  created_at: string;
  /** Why it was not taken up the last time. */
  error?: string | null;
  expires_at: string;
  /** The ids of both instances. */
  from: string;
  /** Their names now; null of one that was deleted. */
  from_name?: string | null;
  hop_count: number;
  id: string;
  idempotency_key?: string | null;
  max_retries: number;
  /** Something in it was a secret and was taken out. */
  redacted: boolean;
  /** `queued`, `delivered`, `acknowledged`, `failed` (tried again) or `dead_letter`. */
  state: string;
  to: string;
  to_name?: string | null;
  /** The trace of the turn that wrote it, which goes on where it arrives. */
  trace_id?: string | null;
  type: string;
  updated_at: string;
};

export type EnvelopeDetail = Envelope & {
  /** All that happened to it, in order. */
  events: EnvelopeEventView[];
  payload: Record<string, unknown>;
};

/** Something that happened to a message. It never holds what the message says. */
export type EnvelopeEventView = {
  at: string;
  correlation_id?: string | null;
  detail?: string | null;
  /** The ids of both instances. */
  from: string;
  /** Their names now; null of one that was deleted. */
  from_name?: string | null;
  /** `created`, `queued`, `delivery_attempted`, `delivered`, `acknowledged`, `failed`, `dead_lettered` or `replayed`. */
  kind: string;
  message_id: string;
  message_type: string;
  /** The state it left the message in. */
  state: string;
  to: string;
  to_name?: string | null;
};

export type EnvelopeList = {
  messages: Envelope[];
  next_cursor?: string | null;
};

export type EnvelopeReceipt = {
  /** The key was used before: this is the first message with it. */
  deduplicated: boolean;
  expires_at?: string | null;
  hop_count?: number | null;
  id: string;
  /** Something in the payload was a secret and was taken out; null of an earlier message. */
  redacted?: boolean | null;
  state: string;
};

/** The body of every error. */
export type ErrorBody = {
  error: ErrorBodyDetail;
};

export type ErrorBodyDetail = {
  /** Stable: programs may depend on it. */
  code: string;
  /** More for programs, where there is more. */
  details?: Record<string, unknown> | null;
  /** What to do about it. */
  hint?: string | null;
  message: string;
};

export type FailPendingBody = {
  /** Why, for people. */
  error?: string;
  /** As it was handed out. */
  lease: string;
};

export type FleetHealth = {
  instances: InstanceHealth[];
  /** `ok`, or `degraded` where an instance that should run does not, or does not answer. */
  status: string;
  uptime_ms: number;
  version: string;
};

/** A place in the other files, and a sentence about it. */
export type ImportNote = {
  path: string;
  reason: string;
};

export type ImportReport = {
  agents: string[];
  bindings: number;
  /** Keys that mean something else here than they did there. */
  changed: ImportNote[];
  /** As `channel:account`. */
  channels: string[];
  /** Each folder that is copied, and where to. */
  folders: string[];
  /** Keys that have no effect here. */
  ignored: ImportNote[];
  /** Secrets that stay where they are, and what waits for them. */
  left: ImportNote[];
  messages: number;
  /** What the instance is called. */
  name: string;
  providers: string[];
  schedules: number;
  /** The names under which secrets are kept. */
  secrets: string[];
  sessions: number;
  workspaces: number;
};

export type ImportResult = {
  /** The same was brought in before: nothing was changed. */
  already: boolean;
  instance?: Instance | null;
  report: ImportReport;
  /** The run, as it is recorded; none for a dry run. */
  run?: string | null;
};

export type ImportRun = {
  created_at: string;
  ended_at?: string | null;
  id: string;
  instance_id?: string | null;
  source: string;
  /** `begun`, `done` or `undone`. */
  state: string;
};

export type ImportRuns = {
  next_cursor?: string | null;
  runs: ImportRun[];
};

export type Instance = {
  archived_at?: string | null;
  created_at: string;
  /** What was asked for last: `running` or `stopped`. */
  desired_state: string;
  /** Why it does not run although it should, or that it runs and does not answer. */
  error?: string | null;
  id: string;
  name: string;
  pid?: number | null;
  port: number;
  /** `never`, `on-failure` or `always`. */
  restart: string;
  /** Read now: `running`, `unresponsive`, `starting`, `restarting`, `stopped`, `crashed`, `stale-pid`, `unknown`, `error` or `archived`. */
  status: string;
};

export type InstanceDetailsView = {
  /** The files that tell agents who they are. */
  bootstrap_files: BootstrapFileView[];
  build: BuildView;
  /** The accounts of each channel. */
  channels: Record<string, unknown>;
  /** In force, defaults included, secrets hidden; null where the file can not be read. */
  config: Record<string, unknown>;
  config_error?: string | null;
  instance: Instance;
  models: Record<string, unknown>;
  runtime: RuntimeView;
};

export type InstanceHealth = {
  /** The instance's own word; null where it does not run or does not answer. */
  health?: string | null;
  id: string;
  name: string;
  pid?: number | null;
  status: string;
  /** Likewise how long it has been up. */
  uptime_ms?: number | null;
};

export type InstanceList = {
  instances: Instance[];
  next_cursor?: string | null;
};

/** Null where nothing is known: never a zero that nobody counted. */
export type InstanceUsageView = {
  cost_usd?: number | null;
  data_available: boolean;
  input_tokens?: number | null;
  message?: string | null;
  output_tokens?: number | null;
  request_count: number;
  total_tokens?: number | null;
  /** Requests whose provider did not say what they took: the sums leave them out. */
  unknown_count: number;
  window: UsageWindow;
};

export type LeaseBody = {
  /** As it was handed out. */
  lease: string;
};

export type LogLines = {
  /** What the cursor pointed at was removed meanwhile: the page begins with the oldest line there is. */
  gap: boolean;
  has_more: boolean;
  lines: string[];
  /** Where the next page begins, also when nothing is there yet; null for `tail`. */
  next_cursor?: string | null;
  retention: LogRetention;
};

/** A log is moved aside when it is full, and goes when too many are. */
export type LogRetention = {
  file_bytes: number;
  files_kept: number;
};

export type LoginLink = {
  /** Lets one browser in, once. */
  code: string;
  expires_at: string;
  /** Where to open it, under the address of the server. */
  path: string;
};

export type NewClone = {
  new_name: string;
  port?: number | null;
};

/** A whole config, as TOML or as a table. */
export type NewConfig = {
  config?: Record<string, unknown> | null;
  /** In place of `If-Match`. */
  etag?: string | null;
  toml?: string | null;
};

export type NewEnvelopeBody = {
  /** The same in a question and everything that follows from it. */
  correlation_id?: string | null;
  /** For an operator: the instance they write for. An instance writes for itself. */
  from?: string | null;
  /** Through how many instances the sender knows it to have gone. Never less than the broker knows. */
  hop_count?: number;
  /** Sent twice within a day with the same key, a message is there once. */
  idempotency_key?: string | null;
  /** At most 64 KiB as JSON. */
  payload?: Record<string, unknown>;
  /** By id or name. */
  to: string;
  /** The trace of the turn that writes it: it goes on in the other instance. */
  trace_id?: string | null;
  /** Words joined by dots, such as `task.handoff`. */
  type: string;
};

export type NewImport = {
  /** Workspaces that are not in the folder of the config are copied too. */
  allow_outside?: boolean;
  /** Nothing is changed: the report says what would be. */
  dry_run?: boolean;
  /** What the instance is called; the folder's name if not given. */
  name?: string | null;
  /** An openclaw.json on the machine of the control plane, or the folder it is in; absolute. */
  path: string;
  /** The first free one from 18801 on if not given. */
  port?: number | null;
  /** Secrets that stand there in the open are kept in the instance's store of secrets. */
  with_secrets?: boolean;
};

export type NewInstance = {
  /** What agents use that name no model of their own. */
  model?: string | null;
  /** Letters, digits and hyphens. */
  name: string;
  /** The first free one from 18801 on if not given. */
  port?: number | null;
  /** A section of `[providers]`, by the name of a known kind. */
  provider?: string | null;
  /** `on-failure` if not given. */
  restart?: string | null;
};

export type NewRuleBody = {
  auto_start?: boolean;
  /** Both by id or name. */
  from: string;
  /** 5 if not given. */
  max_retries?: number | null;
  to: string;
  /** 3600 if not given. */
  ttl_secs?: number | null;
  /** One type, or all below one: `task.*`. */
  type: string;
};

export type NewToken = {
  /** For people: whose it is, what for. */
  name: string;
  /** `read`, `operate` or `admin`. */
  scope: string;
};

export type PastTurn = {
  agent_id: string;
  channel?: string | null;
  created_at: string;
  duration_ms?: number | null;
  error_code?: string | null;
  id: string;
  model?: string | null;
  /** How the reply began, or what went wrong. */
  outcome?: string | null;
  session_key: string;
  status: string;
  /** How the message began. */
  summary?: string | null;
  /** Follows one message through every turn it caused. */
  trace_id: string;
};

export type PastTurnList = {
  data_available: boolean;
  /** Why there is nothing to be known. */
  message?: string | null;
  next_cursor?: string | null;
  tasks: PastTurn[];
};

/** A message that is yours until its lease ends. */
export type PendingEnvelope = Envelope & {
  /** Shown with every word about it. */
  lease: string;
  leased_until: string;
  payload: Record<string, unknown>;
};

export type PendingEnvelopeList = {
  messages: PendingEnvelope[];
};

export type RenewedLease = {
  leased_until: string;
};

export type RestartPolicyBody = {
  /** `never`, `on-failure` or `always`. */
  restart: string;
};

export type RoutingRule = {
  /** Whether a message starts a recipient that was stopped. */
  auto_start: boolean;
  created_at: string;
  /** The ids of both instances. */
  from: string;
  /** Their names now. */
  from_name?: string | null;
  id: string;
  /** How often it is tried to hand a message over. */
  max_retries: number;
  to: string;
  to_name?: string | null;
  /** How long a message may wait. */
  ttl_secs: number;
  /** One type, or all below one: `task.*`. */
  type: string;
};

export type RuleList = {
  next_cursor?: string | null;
  rules: RoutingRule[];
};

/** What is not given stays as it is. */
export type RulePatch = {
  auto_start?: boolean | null;
  max_retries?: number | null;
  ttl_secs?: number | null;
  type?: string | null;
};

export type RuntimeView = {
  /** The instance's own word: `ok`, `degraded` or `draining`. */
  health?: string | null;
  uptime_ms?: number | null;
};

export type SecretView = {
  /** Tells two apart without giving either away. */
  fingerprint: string;
  path: string;
};

export type Token = {
  created_at: string;
  id: string;
  name: string;
  revoked_at?: string | null;
  /** `read`, `operate` or `admin`. */
  scope: string;
};

export type TokenList = {
  next_cursor?: string | null;
  tokens: Token[];
};

export type UnarchiveBody = {
  /** The one it had, or a free one, if not given. */
  port?: number | null;
};

export type UsageWindow = "1h" | "24h" | "7d" | "30d";

export type VersionView = {
  /** What the token may do that asks: `read`, `operate` or `admin`. */
  scope: string;
  version: string;
};
