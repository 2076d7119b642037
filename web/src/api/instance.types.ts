// Written by scripts/types.mjs from the OpenAPI document of an instance. Do not edit.

export type ActingMember = {
  /** A member's name, or `lead`. The lead if left out. */
  member?: string | null;
};

export type AddTeamTaskBody = {
  active_form?: string | null;
  assignee?: string | null;
  capability?: string | null;
  /** Numbers of tasks that must be completed first. */
  depends_on?: number[];
  /** At most 10000 characters. */
  description?: string;
  metadata?: Record<string, unknown> | null;
  /** At most 200 characters. */
  subject: string;
  /** `{"command": "…"}` or `{"agent": {"agent_id", "instructions"}}`. */
  verify?: Record<string, unknown> | null;
};

export type AddedTask = {
  task_id: number;
};

/** How it shows itself to people: from its spec, its `IDENTITY.md`, its name. */
export type AgentAppearance = {
  /** A URL, or a file in its workspace. */
  avatar?: string | null;
  emoji?: string | null;
  name?: string | null;
};

/** A binding of the config to this agent. */
export type AgentBindingView = {
  /** Its place in the config, from 0. */
  binding: number;
  /** `main`, `per-peer`, `per-channel-peer` or `per-account-channel-peer`; null is `session.dm_scope`. */
  dm_scope?: string | null;
  /** What a message must be, as the config has it. */
  match: Record<string, unknown>;
};

export type AgentFile = {
  /** Of its own, as `If-Match` wants it. */
  etag: string;
  /** Whether its own files are looked at: `workspace.overlay` of its spec. */
  in_use: boolean;
  name: string;
  /** Its own; null where it has none. */
  own?: string | null;
  /** What it is told where it has none of its own: the file of its workspace, or of all agents. */
  shared?: string | null;
};

export type AgentFileBody = {
  /** At most 256 KiB. Null takes its own file away. */
  text: string | null;
};

export type AgentList = {
  agents: AgentView[];
  bound: DefaultAgents;
};

export type AgentSpec = {
  agent_id: string;
  /** What may be spent. Where nothing is said there is no limit. */
  budget?: {
    /** Tokens in and out, in one day. */
    tokens_per_day?: number | null;
    /** Dollars, in one day. */
    usd_per_day?: number | null;
    /** Dollars, for one turn. */
    usd_per_turn?: number | null;
  };
  /** What it remembers, and what of it comes into a turn. */
  context_policy?: {
    /** Only memories of these kinds come into a turn. All where none is named. */
    kinds?: string[];
    /** Whether it remembers at all. */
    memory?: boolean;
    /** The most of a turn's context that remembered text may take, in tokens. */
    recall_budget_tokens?: number;
    /** Who else sees what it stores, and whose memories it sees. */
    scope?: "shared" | "agent" | "session";
  };
  /** [`Defaults`] as people and programs write them. */
  defaults?: {
    /** Tried in order when the model fails. */
    fallbacks?: string[] | null;
    max_tokens?: number | null;
    /** `provider/model`, or `{provider, model, temperature?, fallbacks?}`; the instance's default where none is named. */
    model?: string | {
      /** Models to try, in this order, if the model fails. */
      fallbacks?: string[];
      /** Name of the model at the provider. */
      model?: string;
      /** provider/model, instead of provider and model. */
      primary?: string;
      /** Name of a provider. */
      provider?: string;
      /** Sampling temperature, from 0 (deterministic) to 2. */
      temperature?: number;
    } | null;
    /** How long the model thinks: `low`, `medium` or `high`; the provider's own default where nothing is said. */
    reasoning_effort?: "low" | "medium" | "high" | null;
    system_prompt?: string | null;
    temperature?: number | null;
  };
  /** Whom it may give work to. Nobody if left out. */
  delegation?: {
    /** The agents; any if `*`. Agents elsewhere only by name: `a2a:<name>` of `[a2a.remote.<name>]`. */
    allow_agents: string[];
    /** How many delegations of the agent work at once, in all of its sessions together. */
    max_concurrent?: number;
    /** How often work may be given on: with 1 a delegate cannot delegate. */
    max_depth?: number;
  } | null;
  description?: string;
  /** How an agent shows itself in chats. */
  identity?: {
    /** A URL, or a file in its workspace. */
    avatar?: string | null;
    /** Shown before its name. */
    emoji?: string | null;
    /** The name it signs with; the agent's name if left out. */
    name?: string | null;
  };
  /** Where its tools run: beside the engine, or in a worker process of their own. */
  isolation?: "in_process" | "process";
  /** MCP servers of the instance whose tools it may be given, by name. */
  mcp?: string[];
  /** Unique among the agents of an instance. */
  name: string;
  policy?: {
    /** Which skills it is told of. Deny wins; an empty allow list allows every one that is found. */
    skills?: {
      /** Skills it is told of, by name; `*` stands for any text. */
      allow?: string[];
      /** Skills it is never told of. */
      deny?: string[];
    };
    /** Which tools there are and which of them ask first. Deny wins; an empty allow list allows everything that is not refused elsewhere. */
    tools?: {
      /** Tools, `group:…`, or patterns in which `*` stands for any text. Tools of high risk must be named by more than a bare `*`. */
      allow?: string[];
      /** Whether a person is asked before a tool runs: `always`, `unsafe` or `never`. */
      approval?: string | null;
      /** The same for single tools, groups or patterns. */
      approvals?: Record<string, string>;
      /** The same, for what is never there. */
      deny?: string[];
      /** Only the tools of this profile: `minimal`, `messaging`, `coding` or `full`. The lists narrow it further. */
      profile?: string | null;
    };
  };
  /** Of the turns that wait in a lane, those of agents with a higher number start first. */
  priority?: number;
  /** What its programs are kept to. */
  sandbox?: {
    /** Processor time of one program, in seconds. */
    cpu_seconds?: number | null;
    /** All that its workspace may hold, in MiB. */
    disk_mb?: number | null;
    /** The largest file it may write, in MiB. */
    file_mb?: number | null;
    /** Lets its programs listen for TCP connections in `workspace` mode. Other programs and web pages on this machine can then connect to them. */
    listen?: boolean;
    /** Memory of all its processes together, in MiB. */
    memory_mb?: number | null;
    /** How far its programs reach. */
    mode?: "off" | "workspace" | "strict";
    /** Processes and threads at once. */
    processes?: number | null;
  };
  /** What sub-agents it may begin. */
  subagents?: {
    /** The agents they may be: itself alone if left out, any if `*`. */
    allow_agents?: string[];
    /** How long after its end a sub-agent's session is archived, in minutes. */
    archive_after_minutes?: number;
    /** How many of one session work at once. */
    max_children_per_agent?: number;
    /** How many of the agent work at once, in all of its sessions together. */
    max_concurrent?: number;
    /** How deep sub-agents of sub-agents go. */
    max_spawn_depth?: number;
    /** Which tools members of a team that it leads have. */
    member_tools?: string;
    /** The model they use, if not their agent's own. */
    model?: string | null;
    /** How long one may work, in seconds. */
    run_timeout_seconds?: number;
    /** How long their models think before they answer, if not as their agent says. */
    thinking?: "low" | "medium" | "high" | null;
  };
  /** Where its files are. */
  workspace?: string | {
    /** Absolute, or relative to the instance's workspace; `.` is that workspace itself. If omitted, the default agent uses the instance's workspace, and every other agent gets its own folder. */
    dir?: string;
    /** Whether files in agents/<id>/ of the instance's workspace take precedence over files of the same name in the instance's workspace. */
    overlay?: boolean;
  };
};

export type AgentToolList = {
  tools: ToolPolicyView[];
};

export type AgentView = AgentSpec & {
  appearance: AgentAppearance;
  /** What it answers before any other agent: bindings of the config. */
  bindings: AgentBindingView[];
  created_at: string;
  /** Answers where nobody names an agent. */
  default: boolean;
  /** Its conversation with the owner: `agent:<id>:<session.main_key>`. */
  main_session_key: string;
  /** `config`: the file writes it and wins at every start. `api`: the database has it. `default`: no file writes it; changes lie over the defaults of the config. */
  source: string;
  updated_at: string;
};

export type AnswerPlan = {
  approve: boolean;
  /** Told to the member. Required where the plan is rejected: what is to be changed. */
  content?: string;
  /** The plan that is meant. The one that waits if left out. */
  request_id?: string | null;
};

export type AnswererView = {
  agent_id: string;
  /** The model it would ask first; null where none is known. */
  model?: string | null;
  session_key: string;
  tools: ToolPolicyView[];
};

export type ApprovalDecisionBody = {
  /** `approve` or `deny`. */
  decision: string;
  /** The fingerprint of what was shown: if it is another by now, the answer does not count. */
  fingerprint?: string | null;
  reason?: string | null;
};

export type ApprovalList = {
  approvals: ApprovalView[];
};

export type ApprovalView = {
  arguments: Record<string, unknown>;
  call_id: string;
  created_at: string;
  /** Who answered. */
  decided_by?: string | null;
  expires_at: string;
  /** Of the tool and its arguments. An answer that carries it counts for nothing else. */
  fingerprint: string;
  id: string;
  /** The channel's conversation it was asked in, whose sender can answer too; null where only the owner can. */
  origin?: Record<string, unknown> | null;
  /** What the person is asked, in plain words. */
  question: string;
  reason?: string | null;
  /** The agent or team member that asks. */
  requested_by: string;
  session_key: string;
  /** `pending`, `approved`, `denied` or `expired`. */
  state: string;
  tool: string;
  turn_id: string;
};

export type ApprovePairingBody = {
  /** As the stranger shows it, in any case. */
  code: string;
};

export type AssignTask = {
  /** The one member who may take it from now on; empty for whoever comes. */
  assignee: string;
};

export type AttachmentBody = {
  /** Or the image it is, in base64: PNG, JPEG, GIF or WebP, at most 5 MB each and 10 in a message. */
  data?: string | null;
  /** What it is, for example `text/markdown`. Audio and video are refused. What an image is, its data says. */
  media_type: string;
  name: string;
  /** What it says: the model reads it. At most 500,000 characters over all attachments of a message. */
  text?: string | null;
  /** Or where it is on the web: the model is told the address. */
  url?: string | null;
};

export type BackgroundLoop = {
  restarts: number;
  /** `running`, `restarting` or `stopped`. */
  state: string;
  task: string;
};

export type BacklogView = {
  /** Tasks a newer message interrupted. */
  interrupted: InterruptedTask[];
  session_key: string;
  /** Messages of the turn that has not started. */
  waiting: SessionMessageView[];
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

/** A budget of one day. Limits that are not set are null. */
export type BudgetView = {
  resets_at: string;
  /** `instance`, `agent:<id>`, `session:<key>` or `team:<name>`. */
  scope: string;
  tokens_left?: number | null;
  tokens_limit?: number | null;
  /** Of calls under way. */
  tokens_reserved: number;
  tokens_spent: number;
  /** Calls of today that count as what was reserved for them, since nobody knows what they took. */
  unknown_calls: number;
  usd_left?: number | null;
  usd_limit?: number | null;
  usd_reserved: number;
  usd_spent: number;
};

export type CandidateView = {
  agent_id: string;
  /** Its place in the config, from 0. */
  binding: number;
  /** Why it does not answer; null for the one that fits best. */
  rejected_because?: string | null;
  selected: boolean;
  tier: string;
};

export type ChannelAccountList = {
  channels: ChannelAccountView[];
};

export type ChannelAccountView = {
  account: string;
  channel: string;
  /** The node that has the account, if it is another one. */
  node?: string | null;
  /** Why it is disconnected. */
  reason?: string | null;
  /** `connected`, `connecting`, `disconnected`, `webhook_only` (the platform calls Polyclaw), `on_other_node` (another node has the account) or `restart_needed` (new in the config). */
  state: string;
};

export type CleanupRequest = {
  /** Only say what would be removed. */
  dry_run?: boolean;
};

export type CleanupResult = {
  /** Files of the archive that are beyond its budget. */
  dropped_files: string[];
  dry_run: boolean;
  /** How many of them are gone; the others were used meanwhile. */
  removed: number;
  unused: UnusedSessionView[];
};

export type CommandBody = {
  /** `/help` lists them. */
  text: string;
};

export type CommandReply = {
  text: string;
};

export type CompleteTask = {
  /** What it left behind. */
  artifacts?: TaskArtifact[];
  /** A member's name, or `lead`. The lead if left out: it may end what others hold. */
  member?: string | null;
  status?: TaskEnd;
  /** What came of it, at most 1000 characters. */
  summary?: string | null;
};

export type ConfigReloadResult = {
  /** Sections that take effect at the next start. Everything else holds from the next turn on. */
  restart_required: string[];
};

/** Tokens, each estimated: no two models count alike. */
export type ContextView = {
  /** Messages that are not folded into the summary. */
  history_messages: number;
  history_tokens: number;
  model?: string | null;
  recalled_memories: number;
  /** What would be remembered for the newest message. */
  recalled_tokens: number;
  summary_tokens: number;
  system_tokens: number;
  tools_tokens: number;
  total_tokens: number;
  window_tokens: number;
};

export type Counts = {
  /** Turns that run, over all nodes. */
  running: number;
  sessions: number;
  /** Messages and interrupted tasks not yet taken up. */
  waiting: number;
  /** Unsafe settings, the gravest first. */
  warnings: SafetyWarning[];
};

export type CreateTeamBody = {
  agent_id?: string | null;
  agent_type?: string | null;
  description?: string;
  /** The session that leads it. The main one of `agent_id`, or of the default agent, if left out. */
  lead_session_key?: string | null;
  /** Lower-case letters, digits, `_` and `-`; at most 50. */
  name: string;
  /** It is led by a session of its own, `agent:<agent_id>:team:<name>`. */
  own_session?: boolean;
};

export type CreatedSession = {
  session_key: string;
};

export type CronJobList = {
  cron: CronJobView[];
};

export type CronJobView = {
  agent_id: string;
  /** `skip` or `once`. */
  catch_up: string;
  /** The agent that made it; null where a person did. */
  created_by?: string | null;
  /** Null where the answer is kept in the conversation only. */
  deliver_to?: Record<string, unknown> | null;
  /** Whether it comes by itself. */
  enabled: boolean;
  id: string;
  /** The last due time that was run or left out; null where there was none yet. */
  last_due?: string | null;
  /** What the agent is told; null is a heartbeat. */
  message?: string | null;
  /** Null where it never comes again, or not by itself. */
  next_due?: string | null;
  /** A cron expression, `every 10m` or `at 2026-12-01 09:00`. */
  schedule: string;
  session_key: string;
  /** `config`: the file has it, and only there it is changed. `api`: the database has it. */
  source: string;
  /** Null is UTC. */
  timezone?: string | null;
};

export type CronRunResult = {
  /** Null where there is nothing to do: a heartbeat of an agent without a task, or that is busy. */
  session_key?: string | null;
  turn_id?: string | null;
};

/** Who answers whoever names neither a session nor an agent, by where they sit: as bindings say, or the default agent. */
export type DefaultAgents = {
  api: string;
  cli: string;
  web: string;
};

export type DelegationList = {
  delegations: DelegationView[];
};

/** One agent and one that it gives work to, since the start of this process. */
export type DelegationView = {
  /** At work now, on all nodes. */
  active: number;
  caller: string;
  cancelled: number;
  completed: number;
  error: number;
  /** Of those that ended in the last hour; null where none did. */
  p50_ms?: number | null;
  p95_ms?: number | null;
  /** Not begun: not allowed, too deep or too many. */
  rejected: number;
  target: string;
  timeout: number;
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

export type EventList = {
  events: EventView[];
  /** Null on the last page. */
  next_cursor?: string | null;
};

export type EventView = {
  agent_id?: string | null;
  created_at: string;
  data: Record<string, unknown>;
  kind: string;
  seq: number;
  session_key?: string | null;
  trace_id?: string | null;
  turn_id?: string | null;
};

/** A message as a channel would report it. */
export type ExplainRouteBody = {
  /** The account it comes to; the channel's default account if left out. */
  account_id?: string | null;
  /** The channel it comes by, such as `telegram`. */
  channel: string;
  /** The server it is written in. */
  guild_id?: string | null;
  /** Whether the account is named in the text, or it replies to the account. */
  mentioned?: boolean;
  parent_peer?: PeerBody | null;
  /** The conversation it is written in. */
  peer: PeerBody;
  /** What the sender is in that server. */
  roles?: string[];
  /** The platform's id of whoever wrote; the peer's if left out. */
  sender?: string | null;
  /** The workspace it is written in. */
  team_id?: string | null;
  text?: string;
  thread?: string | null;
  topic?: string | null;
};

/** Turns that fail, one after the other. Gone with the first that ends well. */
export type FailureStreakView = {
  /** Of the error that ended the last of them. */
  code: string;
  failures: number;
  /** When the next is tried, if mail or work waits. None while one is on its way, or somebody stopped it. */
  retry_at?: string | null;
  since: string;
};

export type ForgetResult = {
  forgotten: number;
};

export type Frame = {
  type: string;
  seq: number;
  session_key: string;
} & ({
  event: "message.accepted";
  /** One stored message. */
  message_id: string;
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  /** Who wrote it, as the transcript says it: `user` is a person. */
  origin: string;
  text: string;
  waiting: boolean;
} | {
  event: "turn.started";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  agent_id: string;
  resumes: string[];
} | {
  event: "turn.delta";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  step: number;
  text: string;
} | {
  event: "turn.reasoning";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  step: number;
  text: string;
} | {
  event: "turn.restarted";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
} | {
  event: "tool.started";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  call_id: string;
  name: string;
  arguments: unknown;
} | {
  event: "tool.output";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  call_id: string;
  text: string;
} | {
  event: "tool.ended";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  call_id: string;
  name: string;
  is_error: boolean;
  text: string;
  /** What was in force while it ran, measured; and the same as a line for people. */
  sandbox: unknown;
} | {
  event: "delegate.started";
  /** The turn of this conversation that waits. */
  turn_id: string;
  /** One run of a session that another began. */
  run_id: string;
  agent_id: string;
  name: string;
} | {
  event: "delegate.delta";
  /** The turn of this conversation that waits. */
  turn_id: string;
  /** One run of a session that another began. */
  run_id: string;
  agent_id: string;
  name: string;
  text: string;
} | {
  event: "delegate.ended";
  /** The turn of this conversation that waits. */
  turn_id: string;
  /** One run of a session that another began. */
  run_id: string;
  agent_id: string;
  name: string;
  text: string;
  /** It came to the end of what it had to say. */
  is_whole: boolean;
} | {
  event: "turn.notice";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  text: string;
} | {
  event: "turn.retrying";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  model: string;
  /** The class of the failure, for example `overload` or `unreachable`. */
  reason: string;
  /** Which retry of this call it is, from 1. */
  attempt: number;
  wait_ms: number;
} | {
  event: "approval.requested";
  /** One question to a person. */
  approval_id: string;
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  tool: string;
  arguments: unknown;
  question: string;
  /** The agent or team member that asks. */
  requested_by: string;
} | {
  event: "approval.decided";
  /** One question to a person. */
  approval_id: string;
  state: string;
} | {
  event: "turn.ended";
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  state: ("queued" | "running" | "done" | "failed" | "cancelled") | "steered";
  /** One stored message. */
  message_id: string | null;
  text: string | null;
  model: string | null;
  /** Tokens as the provider reported them. What it did not say stays `None`: unknown is never 0. */
  usage: {
    input_tokens: number | null;
    output_tokens: number | null;
    cached_tokens: number | null;
  };
  error_code: string | null;
  /** The reply ended at the model's length limit. */
  truncated: boolean;
} | {
  event: "team.changed";
  change: unknown;
} | {
  event: "session.changed";
}) | {
  type: string;
  /** Of the session that is watched; none where all are. */
  session_key?: string | null;
  event: "replay.gap" | "reader.behind";
  message: string;
};

export type HealthView = {
  channels: string[];
  /** `ok`, `degraded` or `draining`. */
  status: string;
  store: StoreHealth;
  tasks: BackgroundLoop[];
  uptime_ms: number;
  version: string;
};

export type InterruptedTask = {
  created_at: string;
  /** The message that began it. */
  message_id: string;
  steer_count: number;
  text: string;
  turn_id: string;
};

/** A message that an agent gets at set times, in the conversation `cron:<id>`. */
export type Job = {
  /** The agent that gets it. The default agent if left out. */
  agent?: string | null;
  /** What becomes of runs that were missed while Polyclaw was not running. */
  catch_up?: string;
  /** Where the answer goes. Without it the answer is kept in the conversation only. */
  deliver_to?: {
    /** The account that sends it. The channel's default account if left out. */
    account?: string | null;
    /** The channel, such as `telegram`. */
    channel: string;
    /** The conversation, by the platform's id. */
    peer: string;
    /** A thread or topic in it. */
    thread?: string | null;
  } | null;
  /** Whether it runs at all. */
  enabled?: boolean;
  /** Its name, of `a-z`, `0-9`, `_` and `-`. */
  id: string;
  /** What it is told. */
  message: string;
  /** When: a cron expression (`30 8 * * 1-5`), `every 10m`, or `at 2026-12-01 09:00`. */
  schedule: string;
  /** The zone of its times, such as `Europe/Berlin`. UTC if left out. */
  timezone?: string | null;
};

export type JoinTeamBody = {
  agent_id?: string | null;
  capabilities?: string[];
  /** provider/model, if not its agent's own. */
  model?: string | null;
  name: string;
  /** It can only read until the lead, or a person, approves the plan it sends. */
  plan_mode_required?: boolean;
  /** Gives the name of a member that is there to a new session. */
  replace?: boolean;
  role?: string | null;
  /** Its first message. Without one it waits for mail. */
  task?: string | null;
};

export type JoinedMemberView = {
  /** Tasks an earlier life of it held. */
  inherited: number[];
  name: string;
  session_key: string;
};

export type ListedMemory = Memory & {
  /** Higher fits better; comparable within one answer only. Only with `q`. */
  score?: number | null;
};

export type LoginLink = {
  /** Lets one browser in, once. */
  code: string;
  expires_at: string;
  /** Where to open it, under the address of the server. */
  path: string;
};

export type McpServerView = {
  /** Agents that name it. */
  agents: string[];
  /** Why it is down. */
  error?: string | null;
  name: string;
  /** Times it was started again. */
  restarts: number;
  /** What its program is kept to: `confined` or `off`. Absent where it is a service. */
  sandbox?: string | null;
  /** `idle`, `starting`, `ready` or `down`. */
  state: string;
  /** Its tools by the names that agents know. */
  tools: string[];
  /** `stdio` or `http`. */
  transport: string;
  /** The server's own name and version. */
  version?: string | null;
};

export type McpServers = {
  servers: McpServerView[];
};

export type MemberView = {
  agent_id: string;
  capabilities: string[];
  color: string;
  failure_streak?: FailureStreakView | null;
  joined_at: string;
  last_active_at: string;
  name: string;
  /** `required` or `submitted` while it may only read and its plan is not approved; else null. */
  plan?: string | null;
  role: string;
  session_key: string;
  /** `working`, `idle`, `closed` or `lost`. */
  status: string;
  /** What it holds. */
  tasks: string[];
  /** Letters to it that it has not read yet. */
  unread: number;
};

/** One memory. `embedding` is not part of it: vectors are made where they are used. */
export type Memory = {
  agent_id: string;
  content: string;
  created_at: string;
  id: string;
  /** Names it among those of its owner: storing under the same key replaces. */
  key: string;
  kind: string;
  metadata?: Record<string, unknown>;
  /** Who sees it: `shared`, `agent` or `session`. */
  scope: string;
  /** Where it was learnt. */
  session_key: string;
  updated_at: string;
};

export type MemoryImport = {
  memories: Memory[];
};

export type MemoryImportResult = {
  stored: number;
};

export type MemoryList = {
  memories: ListedMemory[];
  /** Null on the last page. */
  next_cursor?: string | null;
  /** Why what memories mean was not compared; null if it was, or nothing was looked for. */
  words_only?: string | null;
};

export type MemoryStatus = {
  /** Bytes of vectors in memory now. */
  cached_bytes: number;
  /** Who makes vectors; null where memories are found by their words alone. */
  embeddings?: string | null;
  /** Why no vectors are made, where the model failed when it was last asked. */
  error?: string | null;
  memories: number;
  /** Those without a vector of the model in use. */
  pending: number;
};

export type ModelList = {
  /** Used by agents that name none of their own. */
  default_model?: string | null;
  /** Which model answers and where it was found, or what to set so that one does. */
  in_use: string;
  models: ModelView[];
};

export type ModelView = {
  /** Tokens; null where nobody said. */
  context_window?: number | null;
  /** A demo model: its answers have the right shape and are often wrong. Add a real one before you rely on it. */
  demo: boolean;
  model: string;
  /** `ready`, `cooling`, `unreachable`, or `damaged`: its weights can not be loaded, and `polyclaw model pull` fetches them again. */
  status: string;
};

export type NewMemory = {
  /** The default agent if left out. */
  agent_id?: string | null;
  content: string;
  key?: string | null;
  kind?: string | null;
  metadata?: Record<string, unknown>;
  /** `shared`, `agent` or `session`; `agent` if left out. */
  scope?: string | null;
  /** The agent's main session if left out. */
  session_key?: string | null;
};

export type NewSession = {
  agent?: string | null;
  title?: string | null;
};

export type NewSessionMessage = {
  /** Whose session it becomes, if there is none yet; else the key's agent, else whom the bindings name. */
  agent?: string | null;
  /** At most 20; the whole request has at most 32 MB. */
  attachments?: AttachmentBody[];
  /** Where the person sits: `web` (default), `cli` or `api`. */
  channel?: string | null;
  /** The answer also goes where people read this session on a chat platform. */
  deliver?: boolean;
  /** The same key in the same session is the same message. */
  idempotency_key?: string | null;
  text: string;
};

export type OutboxList = {
  /** Null on the last page. */
  next_cursor?: string | null;
  outbox: OutboxMessageView[];
};

export type OutboxMessageView = {
  /** Channel, account, peer and thread, taken whole from the message this answers. */
  address: Record<string, unknown>;
  attempts: number;
  created_at: string;
  error?: string | null;
  expires_at: string;
  id: string;
  part: number;
  platform_id?: string | null;
  session_key: string;
  state: string;
  text: string;
  turn_id: string;
  updated_at: string;
};

export type PairingList = {
  pairings: PairingView[];
};

export type PairingView = {
  account: string;
  channel: string;
  /** What they were told; null once they are let in. */
  code?: string | null;
  created_at: string;
  /** When the code ends; null once they are let in. */
  expires_at?: string | null;
  /** The platform's id of whoever wrote. */
  sender: string;
  /** What the platform calls them. They chose it themselves. */
  sender_name?: string | null;
  /** `pending` or `approved`. */
  state: string;
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

export type PeerBody = {
  /** The platform's id. */
  id: string;
  /** `direct`, `group` or `channel`; `direct` if left out, and that of the peer for its parent. */
  kind?: string | null;
};

export type PlanView = {
  /** The plan that waits. */
  content?: string | null;
  /** Of the plan that waits. */
  request_id?: string | null;
  /** `required`: no plan was sent, or the last one was rejected. `submitted`: one waits for an answer. `none`: the member may work. */
  status: string;
};

export type PolicyLayerView = {
  allows: boolean;
  change?: string | null;
  /** `instance`, `agent`, `risk`, `subagents`, `sender` or `approval`. */
  layer: string;
  /** The same as a sentence. */
  reason: string;
  rule: string;
  set_in?: string | null;
};

export type QueuedTurnView = {
  turn_id: string;
};

export type ReadinessView = {
  ready: boolean;
};

export type ReleaseTask = {
  /** A member's name, or `lead`. The lead if left out: it may release what others hold. */
  member?: string | null;
  /** Why, for whoever takes it next; at most 1000 characters. */
  note?: string | null;
};

export type RouteExplanation = {
  /** `admitted`, `pair` (a stranger is told a code), or why it is ignored. */
  admission: string;
  /** Who answers, the first where several do; null where nobody does. */
  agent_id?: string | null;
  /** Everyone that answers: several of a broadcast, each as the first stands above. */
  answers: AnswererView[];
  /** A model would be asked whether another agent fits better. It was not asked now. */
  asks_classifier: boolean;
  /** Its place in the config, from 0; null where none fits. */
  binding?: number | null;
  candidates: CandidateView[];
  /** The command it is. */
  command?: string | null;
  /** What decided: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or `default`; null where nobody answers: a command, or an account that is not there. */
  layer?: string | null;
  /** The model it would ask first; null where none is known. */
  model?: string | null;
  session_key?: string | null;
  /** What bindings alone would say: how closely the best one fits. */
  tier: string;
  /** Every tool there is, and whether it has it. */
  tools: ToolPolicyView[];
};

export type RunList = {
  runs: RunView[];
};

export type RunView = {
  agent_id: string;
  caller_agent_id: string;
  /** Null where no price is known. */
  cost_usd?: number | null;
  created_at: string;
  ended_at?: string | null;
  error_code?: string | null;
  /** Why its announce waits for a person; null where it does not. */
  held?: string | null;
  kind: string;
  label: string;
  owner_session_key: string;
  result?: string | null;
  run_id: string;
  session_key: string;
  status: string;
  tags: string[];
  task: string;
  /** Null where a provider did not say. */
  tokens?: number | null;
  trace_id: string;
};

/** An unsafe setting. */
export type SafetyWarning = {
  /** Stable, such as `running_as_root`. */
  code: string;
  /** What to do about it. */
  hint: string;
  message: string;
};

export type SendTeamMessageBody = {
  content: string;
  /** A member's name or session key, or `lead`. Everybody if left out. */
  recipient?: string | null;
  summary?: string | null;
};

export type SentTeamMessageView = {
  /** Those of them whose sessions are gone: it waits for whoever takes their places. */
  lost: string[];
  message_ids: string[];
  recipients: string[];
};

export type SessionList = {
  /** Null on the last page. */
  next_cursor?: string | null;
  sessions: SessionView[];
};

export type SessionMessageReceipt = {
  /** The same message was accepted before. */
  duplicate: boolean;
  message_id: string;
  reply?: TurnReply | null;
  session_key: string;
  turn_id: string;
  /** Another turn runs: this message is taken up at its next boundary or its end. */
  waiting: boolean;
};

export type SessionMessageView = {
  channel: string;
  created_at: string;
  deliver: boolean;
  id: string;
  meta?: Record<string, unknown> | null;
  /** `user`, `agent:<id>`, `cron`, `hook` or `system`. */
  origin: string;
  /** Tool calls, the call a result belongs to, attachments. */
  parts: Record<string, unknown>[];
  /** The place in the session. */
  position: number;
  /** `user`, `assistant` or `tool`. */
  role: string;
  text: string;
  turn_id: string;
};

export type SessionNodeView = {
  age_ms: number;
  agent_id: string;
  /** In the order in which they were begun; archived ones are not here. */
  children: SessionNodeView[];
  depth: number;
  /** What its owner called it. */
  label?: string | null;
  lane: string;
  run_id?: string | null;
  /** `running`, `ok`, `error`, `timeout` or `cancelled`; null where nobody asked for it. */
  run_status?: string | null;
  session_key: string;
  /** `running`, `queued` or `idle`. */
  state: string;
  /** Null where a provider did not say, or none was asked. */
  tokens?: number | null;
  trace_id?: string | null;
};

export type SessionPatch = {
  active_agent_id?: string | null;
  /** Whether what is said here may leave by a channel. */
  deliver_policy?: boolean | null;
  /** `provider/model`; null goes back to the agent's own. */
  model?: string | null;
  /** Whether it may send to channels by itself. */
  send_policy?: boolean | null;
};

export type SessionView = {
  active_agent_id: string;
  agent_id: string;
  channel?: string | null;
  created_at: string;
  delegation_depth: number;
  /** Whether what is said here may leave by a channel. */
  deliver_policy: boolean;
  lane: string;
  /** The model a person picked; null is the agent's own. */
  model?: string | null;
  owner_session_key?: string | null;
  /** Messages and interrupted tasks not yet taken up. */
  queued: number;
  running_turn_id?: string | null;
  /** Whether it may send to channels by itself. */
  send_policy: boolean;
  session_id: string;
  session_key: string;
  spawn_depth: number;
  status: string;
  /** The team it leads or is in, also where that has ended. The same as `team_name`. */
  team?: string | null;
  team_id?: string | null;
  team_name?: string | null;
  /** `lead` or `member`. */
  team_role?: string | null;
  /** Of a member, as `#RRGGBB`. */
  teammate_color?: string | null;
  title?: string | null;
  /** In and out, of all calls whose provider said so; null where none did. */
  tokens?: number | null;
  updated_at: string;
};

export type SetLeadBody = {
  session_key: string;
};

export type ShutdownTeamBody = {
  /** Stops all at once; nobody is asked. */
  force?: boolean;
  reason?: string;
};

export type SkillList = {
  skills: SkillView[];
};

export type SkillView = {
  /** Whether the agent's policy lets it have this one, and the tool that reads it. */
  allowed: boolean;
  description: string;
  name: string;
  /** `agent`, `workspace` or `shared`: where it was found, the nearest of its name. */
  place: string;
  /** Why: `open`, `allowed`, `denied`, `not_listed` or `no_tool`. */
  rule: string;
};

export type StopResult = {
  /** What it had begun, and what that had: the label of each run that was stopped with it. */
  children: string[];
  interrupted_tasks: number;
  turn_id?: string | null;
};

export type StoreHealth = {
  engine: string;
  /** `ok`, `unavailable`, or why nothing can be written: `disk_full`, `store_read_only`, `store_unavailable`. */
  status: string;
};

export type TaskArtifact = {
  kind: string;
  path: string;
};

export type TaskEnd = "completed" | "failed";

export type TaskEnded = {
  task_id: number;
  /** Tasks that can be taken because of it. */
  unblocked: number[];
};

export type TaskLogEntryView = {
  by: string;
  /** `created`, `claimed`, `started`, `updated`, `released`, `expired`, `inherited`, `completed`, `failed`, `unverified`, `late`, `reopened` or `deleted`. */
  change: string;
  created_at: string;
  data: Record<string, unknown>;
  seq: number;
  task_id: number;
};

export type TaskLogView = {
  log: TaskLogEntryView[];
};

/** A team with its members and its open tasks. */
export type TeamDetail = TeamView & {
  /** How many tasks are pending, blocked, in progress, completed and failed. */
  counts: Record<string, unknown>;
  /** The last that ended, the newest first. */
  ended: TeamTaskView[];
  failure_streak?: FailureStreakView | null;
  /** The lead's session is gone: the team waits for another. */
  is_lead_lost: boolean;
  /** `working`, `idle` or `lost`. */
  lead_status: string;
  /** Letters to the lead that it has not read yet. */
  lead_unread: number;
  members: MemberView[];
  /** Those that have not ended, the oldest first. */
  open: TeamTaskView[];
  /** Turns that the team has had since a person last wrote to its lead: `used`, `limit`, and whether one `is_waiting`. */
  turns: Record<string, unknown>;
};

export type TeamList = {
  teams: TeamView[];
};

export type TeamMessageList = {
  messages: TeamMessageView[];
};

export type TeamMessageView = {
  /** Of an answer: whether its writer agrees. */
  approve?: boolean | null;
  content: string;
  created_at: string;
  from: string;
  message_id: string;
  read_at?: string | null;
  /** Why a team or a member is to end, or goes on; why a member rests. */
  reason?: string | null;
  /** `queued`, `in_prompt`, `read` or `undeliverable`. */
  state: string;
  summary: string;
  to: string;
  type: string;
};

export type TeamShutdownView = {
  /** Each member's `name`, `request_id` and `answer`. */
  members: Record<string, unknown>[];
  /** Of the team: `shutdown`, `shutting_down` while members are asked, or `active` if one objected. */
  status: string;
};

export type TeamTaskList = {
  next_cursor?: string | null;
  tasks: TeamTaskView[];
};

export type TeamTaskView = {
  artifacts: Record<string, unknown>[];
  assignee?: string | null;
  /** Those of them that are not completed. */
  blocked_by: number[];
  capability?: string | null;
  created_at: string;
  created_by: string;
  depends_on: number[];
  description: string;
  ended_at?: string | null;
  lease_until?: string | null;
  metadata?: Record<string, unknown> | null;
  note?: string | null;
  owner?: string | null;
  status: string;
  subject: string;
  summary?: string | null;
  task_id: number;
  /** What it is called now. */
  title: string;
  /** What must be true before it counts as completed: `{"command": "…"}` or `{"agent": {…}}`. */
  verify?: Record<string, unknown> | null;
};

export type TeamView = {
  agent_type: string;
  created_at: string;
  description: string;
  id: string;
  lead_session_key: string;
  name: string;
  /** `active`, `shutting_down` or `shutdown`. */
  status: string;
  updated_at: string;
};

/** Tokens as the provider reported them; null where it did not. */
export type TokenUsageView = {
  cached_tokens?: number | null;
  input_tokens?: number | null;
  output_tokens?: number | null;
};

/** One tool with the word of every layer on it, in order. */
export type ToolExplanationView = ToolPolicyView & {
  layers: PolicyLayerView[];
};

export type ToolList = {
  tools: ToolPolicyView[];
};

/** A tool, whether the agent has it, and the rule that decided. */
export type ToolPolicyView = ToolView & {
  agent_id: string;
  allowed: boolean;
  /** A person is asked before each call. */
  asks: boolean;
  /** The line that would change it. */
  change?: string | null;
  /** The rule that decided, such as `agent.deny`. */
  rule?: string | null;
  /** Where it is set. */
  set_in?: string | null;
};

export type ToolView = {
  /** It runs confined to what the agent's sandbox allows, or not at all. */
  confined: boolean;
  /** `not_needed`, `ask_person`, or `by_call`: the tool says so for each call. */
  consent: string;
  description: string;
  /** `pure`, `idempotent` or `effect`. */
  effect: string;
  name: string;
  /** JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** `low` or `high`. */
  risk: string;
};

export type TranscriptPage = {
  messages: SessionMessageView[];
  /** `after` of the next page; null if this is the last. */
  next_after?: number | null;
  session_key: string;
};

export type TurnError = {
  code: string;
  message?: string | null;
};

export type TurnList = {
  /** Null on the last page. */
  next_cursor?: string | null;
  turns: TurnView[];
};

export type TurnReply = {
  error_code?: string | null;
  /** `length` if the model ran out of room before it was done; null otherwise. */
  finish_reason?: string | null;
  message_id?: string | null;
  model?: string | null;
  /** `done`, `failed` or `cancelled`. */
  state: string;
  text: string;
  usage: TokenUsageView;
};

export type TurnView = {
  agent_id: string;
  attempt: number;
  /** The turn that took up the task of a steered one. */
  continued_by?: string | null;
  ended_at?: string | null;
  error?: TurnError | null;
  id: string;
  lane: string;
  model?: string | null;
  queued_at: string;
  reply?: TurnReply | null;
  /** The reply's message. */
  reply_id?: string | null;
  session_key: string;
  started_at?: string | null;
  /** `queued`, `running`, `done`, `failed`, `cancelled` or `steered`. */
  state: string;
  /** Inputs, model steps and tool results; only for one turn. */
  steps?: SessionMessageView[] | null;
  trace_id: string;
  usage: TokenUsageView;
};

export type UnusedSessionView = {
  agent_id: string;
  /** Its place among the sessions of its agent, the one used last being 1. */
  place: number;
  session_key: string;
  updated_at: string;
};

export type UsageGroupBy = "agent" | "model" | "session" | "day";

export type UsageReport = {
  /** Every budget that is set, with what is left of it today. */
  budgets: BudgetView[];
  by: UsageGroupBy;
  since: string;
  totals: UsageTotalView[];
  window: UsageWindow;
};

export type UsageTotalView = {
  /** Part of the input, where the provider said so. */
  cached_tokens?: number | null;
  calls: number;
  /** Dollars of the calls whose cost is known; null where none is. */
  cost_usd?: number | null;
  group: string;
  input_tokens?: number | null;
  output_tokens?: number | null;
  /** Calls whose provider did not say what they took: the sums leave them out. */
  unknown_calls: number;
  /** Calls whose cost is not known: the provider did not say what they took, or the config not what it costs. */
  unpriced_calls: number;
};

export type UsageWindow = "1h" | "24h" | "7d" | "30d";
