// Written by scripts/types.mjs from the OpenAPI document of an instance. Do not edit.

export type ActingMember = {
  /** The member to act for: a name, or `lead` (default). */
  member?: string | null;
};

export type AddTeamTaskBody = {
  /** The title while the task is in progress, such as "Writing tests". */
  active_form?: string | null;
  /** The only member that may claim the task. */
  assignee?: string | null;
  /** A capability that a member needs to claim the task. */
  capability?: string | null;
  /** The numbers of tasks that must be completed first. */
  depends_on?: number[];
  /** What is to be done, at most 10000 characters. */
  description?: string;
  /** Additional data of the caller's choice. */
  metadata?: Record<string, unknown> | null;
  /** The title of the task, at most 200 characters. */
  subject: string;
  /** A check that must pass before the task is completed: `{"command": "…"}` or `{"agent": {"agent_id", "instructions"}}`. */
  verify?: Record<string, unknown> | null;
};

export type AddedTask = {
  /** The number of the new task. */
  task_id: number;
};

/** How an agent presents itself to people: from its spec, its `IDENTITY.md` or its name. */
export type AgentAppearance = {
  /** A URL, or a file in the agent's workspace. */
  avatar?: string | null;
  /** The emoji shown with the name. */
  emoji?: string | null;
  /** The display name. */
  name?: string | null;
};

/** A binding of the config to this agent. */
export type AgentBindingView = {
  /** The index of the binding in the config, from 0. */
  binding: number;
  /** How direct messages are split into sessions: `main`, `per-peer`, `per-channel-peer` or `per-account-channel-peer`. Null means `session.dm_scope` applies. */
  dm_scope?: string | null;
  /** The conditions a message must meet, as in the config. */
  match: Record<string, unknown>;
};

export type AgentFile = {
  /** The version of the own file, for `If-Match`. */
  etag: string;
  /** Whether the agent uses its own files, as `workspace.overlay` of its spec says. */
  in_use: boolean;
  /** The name of the file. */
  name: string;
  /** The content of the agent's own file. Null if it has none. */
  own?: string | null;
  /** The content used without an own file: from the agent's workspace or shared by all agents. */
  shared?: string | null;
};

export type AgentFileBody = {
  /** The new content, at most 256 KiB. Null deletes the agent's own file. */
  text: string | null;
};

export type AgentList = {
  /** All agents. */
  agents: AgentView[];
  /** The agents that answer by default. */
  bound: DefaultAgents;
};

export type AgentSpec = {
  agent_id: string;
  /** Spending limits. Omitted values are unlimited. */
  budget?: {
    /** Input and output tokens per day. */
    tokens_per_day?: number | null;
    /** US dollars per day. */
    usd_per_day?: number | null;
    /** US dollars per turn. */
    usd_per_turn?: number | null;
  };
  /** What it remembers, and which memories are added to a turn. */
  context_policy?: {
    /** Recall only memories of these kinds. If empty, all kinds are recalled. */
    kinds?: string[];
    /** Whether it has a memory. */
    memory?: boolean;
    /** Maximum tokens of recalled memories in a turn's context. */
    recall_budget_tokens?: number;
    /** Who shares its memories. */
    scope?: "shared" | "agent" | "session";
  };
  /** [`ModelSettings`] as it may be written in a file or request. */
  defaults?: {
    /** Models to try in order if the model fails. */
    fallbacks?: string[] | null;
    max_tokens?: number | null;
    /** `provider/model`, or `{provider, model, temperature?, fallbacks?}`. If omitted, the instance's default model. */
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
    /** How much the model reasons: `low`, `medium` or `high`. If omitted, the provider's default applies. */
    reasoning_effort?: "low" | "medium" | "high" | null;
    system_prompt?: string | null;
    temperature?: number | null;
  };
  /** Agents to which it may delegate. If omitted, it cannot delegate. */
  delegation?: {
    /** The agents; any local one if `*`. Remote agents only by name: `a2a:<name>` of `[a2a.remote.<name>]`. */
    allow_agents: string[];
    /** Maximum number of active delegations in all sessions of the agent together. */
    max_concurrent?: number;
    /** Maximum depth of delegation: with 1, a delegate cannot delegate. */
    max_depth?: number;
  } | null;
  description?: string;
  /** Name and picture of an agent in chats. */
  identity?: {
    /** A URL, or a file in its workspace. */
    avatar?: string | null;
    /** Shown before its name. */
    emoji?: string | null;
    /** The name it signs with. Defaults to the agent's name. */
    name?: string | null;
  };
  /** Where its tools run: in the engine's process, or in a separate worker process. */
  isolation?: "in_process" | "process";
  /** Names of the MCP servers whose tools it may use. */
  mcp?: string[];
  /** Unique among the agents of an instance. */
  name: string;
  policy?: {
    /** Which skills are listed in its prompt. Deny wins; an empty allow list allows every skill. */
    skills?: {
      /** Skills by name; `*` matches any text. */
      allow?: string[];
      /** Skills that are never listed. */
      deny?: string[];
    };
    /** Which tools are available and which of them need approval. Deny wins; an empty allow list allows every tool that is not denied elsewhere. */
    tools?: {
      /** Allowed tools: names, `group:…`, or patterns in which `*` matches any text. High-risk tools need an entry that is more specific than a bare `*`. */
      allow?: string[];
      /** Default approval mode: `always`, `unsafe` or `never`. */
      approval?: string | null;
      /** Approval mode of single tools, groups or patterns. */
      approvals?: Record<string, string>;
      /** Denied tools, written like `allow`. */
      deny?: string[];
      /** Limits the tools to this profile: `minimal`, `messaging`, `coding` or `full`. The lists narrow it further. */
      profile?: string | null;
    };
  };
  /** Among turns that wait in a lane, those of agents with a higher priority start first. */
  priority?: number;
  /** Sandbox of the programs it runs. */
  sandbox?: {
    /** CPU time of one program, in seconds. */
    cpu_seconds?: number | null;
    /** Maximum size of its workspace, in MiB. */
    disk_mb?: number | null;
    /** Maximum size of one file it writes, in MiB. */
    file_mb?: number | null;
    /** Lets its programs listen for TCP connections in `workspace` mode. Other programs and web pages on this machine can then connect to them. */
    listen?: boolean;
    /** Memory of all its processes together, in MiB. */
    memory_mb?: number | null;
    /** What its programs can access. */
    mode?: "off" | "workspace" | "strict";
    /** Maximum number of processes and threads. */
    processes?: number | null;
  };
  /** Rules and limits for its sub-agents. */
  subagents?: {
    /** The agents it may spawn: only itself if omitted, any if `*`. */
    allow_agents?: string[];
    /** Delay after its end before a sub-agent's session is archived, in minutes. */
    archive_after_minutes?: number;
    /** Maximum number of active sub-agents per session. */
    max_children_per_agent?: number;
    /** Maximum number of active sub-agents in all sessions of the agent together. */
    max_concurrent?: number;
    /** Maximum depth of nested sub-agents. */
    max_spawn_depth?: number;
    /** Which tools members of a team get that this agent leads. */
    member_tools?: string;
    /** The model of sub-agents. Defaults to the model of their agent. */
    model?: string | null;
    /** Maximum run time of a sub-agent, in seconds. */
    run_timeout_seconds?: number;
    /** How much the models of sub-agents reason. Defaults to the setting of their agent. */
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
  /** Every tool, with the policy decision for the agent. */
  tools: ToolPolicyView[];
};

export type AgentView = AgentSpec & {
  /** How the agent presents itself. */
  appearance: AgentAppearance;
  /** Bindings of the config that route messages to this agent. */
  bindings: AgentBindingView[];
  /** When the agent was created. */
  created_at: string;
  /** Whether this agent answers when no agent is named. */
  default: boolean;
  /** The agent's conversation with the owner: `agent:<id>:<session.main_key>`. */
  main_session_key: string;
  /** Where the agent is defined. `config`: the config file, which overwrites other changes at every start. `api`: the database. `default`: the built-in agent, in no file; changes are stored on top of the config's defaults. */
  source: string;
  /** When the agent was last changed. */
  updated_at: string;
};

export type AnswerPlan = {
  /** Whether the plan is approved. */
  approve: boolean;
  /** A comment to the member. Required for a rejection, to say what to change. */
  content?: string;
  /** The plan that is meant. Defaults to the pending one. */
  request_id?: string | null;
};

export type AnswererView = {
  /** The agent that answers. */
  agent_id: string;
  /** The model it would use first. Null if none is known. */
  model?: string | null;
  /** The session it answers in. */
  session_key: string;
  /** Every tool, with the policy decision for this message. */
  tools: ToolPolicyView[];
};

export type ApprovalDecisionBody = {
  /** The decision: `approve` or `deny`. */
  decision: string;
  /** The fingerprint of the request that was shown. The decision is rejected if the request has changed since. */
  fingerprint?: string | null;
  /** The reason, shown to the agent. */
  reason?: string | null;
};

export type ApprovalList = {
  /** Pending approval requests. */
  approvals: ApprovalView[];
};

export type ApprovalView = {
  /** The arguments of the tool call. */
  arguments: Record<string, unknown>;
  /** The id of the tool call that needs approval. */
  call_id: string;
  /** When the request was created. */
  created_at: string;
  /** Who decided. */
  decided_by?: string | null;
  /** When the request expires. */
  expires_at: string;
  /** A hash of the tool and its arguments. A decision that carries it applies to exactly this call. */
  fingerprint: string;
  /** The id of the request. */
  id: string;
  /** The chat conversation the question was sent to, whose sender may decide too. Null if only the owner may. */
  origin?: Record<string, unknown> | null;
  /** The question to the person in plain words. */
  question: string;
  /** The reason given with the decision. */
  reason?: string | null;
  /** The agent or team member whose call needs approval. */
  requested_by: string;
  /** The session whose turn asks. */
  session_key: string;
  /** The state of the request: `pending`, `approved`, `denied` or `expired`. */
  state: string;
  /** The tool to run. */
  tool: string;
  /** The turn that asks. */
  turn_id: string;
};

export type ApprovePairingBody = {
  /** The code that the sender shows, in upper or lower case. */
  code: string;
};

export type AssignTask = {
  /** The only member that may claim the task from now on. Empty lets any member claim it. */
  assignee: string;
};

export type AttachmentBody = {
  /** A base64-encoded image instead: PNG, JPEG, GIF or WebP, at most 5 MB each and 10 per message. */
  data?: string | null;
  /** The media type, for example `text/markdown`. Audio and video are rejected. The actual type of an image is detected from its data. */
  media_type: string;
  /** The file name. */
  name: string;
  /** The text content, given to the model. At most 500,000 characters over all attachments of a message. */
  text?: string | null;
  /** A URL instead of content. The model gets the URL, not what it points to. */
  url?: string | null;
};

export type BackgroundLoop = {
  /** How often the loop was restarted. */
  restarts: number;
  /** `running`, `restarting` or `stopped` (not needed here). */
  state: string;
  /** The name of the loop. */
  task: string;
};

export type BacklogView = {
  /** Tasks that a newer message interrupted. */
  interrupted: InterruptedTask[];
  /** The session. */
  session_key: string;
  /** Messages that wait for their turn to start. */
  waiting: SessionMessageView[];
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

/** A daily budget. Limits that are not set are null. */
export type BudgetView = {
  /** When the budget resets. */
  resets_at: string;
  /** The budget scope: `instance`, `agent:<id>`, `session:<key>` or `team:<name>`. */
  scope: string;
  /** Tokens left today. */
  tokens_left?: number | null;
  /** The token limit per day. */
  tokens_limit?: number | null;
  /** Tokens reserved for calls in progress. */
  tokens_reserved: number;
  /** Tokens used today. */
  tokens_spent: number;
  /** Today's calls without reported usage. They count with the amount that was reserved for them. */
  unknown_calls: number;
  /** US dollars left today. */
  usd_left?: number | null;
  /** The cost limit per day in US dollars. */
  usd_limit?: number | null;
  /** Cost reserved for calls in progress in US dollars. */
  usd_reserved: number;
  /** Cost of today in US dollars. */
  usd_spent: number;
};

export type CandidateView = {
  /** The agent that the binding names. */
  agent_id: string;
  /** The index of the binding in the config, from 0. */
  binding: number;
  /** Why the binding was rejected. Null for the one that matches best. */
  rejected_because?: string | null;
  /** Whether this binding matches best. */
  selected: boolean;
  /** How specific the binding is, as in `tier` above. */
  tier: string;
};

export type ChannelAccountList = {
  /** All accounts of chat platforms. */
  channels: ChannelAccountView[];
};

export type ChannelAccountView = {
  /** The account name in the config. */
  account: string;
  /** The channel, such as `telegram`. */
  channel: string;
  /** The node that serves the account, if it is another one. */
  node?: string | null;
  /** Why the account is disconnected. */
  reason?: string | null;
  /** `connected`, `connecting`, `disconnected`, `webhook_only` (the platform calls Polyclaw), `on_other_node` (another node serves the account) or `restart_needed` (new in the config, used after a restart). */
  state: string;
};

export type CleanupRequest = {
  /** Only report what would be removed. */
  dry_run?: boolean;
};

export type CleanupResult = {
  /** Archive files removed because the archive exceeded its size limit. */
  dropped_files: string[];
  /** Whether this was a dry run. */
  dry_run: boolean;
  /** How many of them were removed. The others were used again meanwhile. */
  removed: number;
  /** The sessions that count as unused. */
  unused: UnusedSessionView[];
};

export type CommandBody = {
  /** The command line. `/help` lists the commands. */
  text: string;
};

export type CommandReply = {
  /** The reply of the command. */
  text: string;
};

export type CompleteTask = {
  /** The results that the task produced. */
  artifacts?: TaskArtifact[];
  /** The member to act for: a name, or `lead` (default), which may end tasks of others. */
  member?: string | null;
  /** `completed` (default) or `failed`. */
  status?: TaskEnd;
  /** The result, at most 1000 characters. */
  summary?: string | null;
};

export type ConfigReloadResult = {
  /** Sections that take effect at the next start. All others apply from the next turn. */
  restart_required: string[];
};

/** Estimated token counts. Tokenizers differ between models, so they are not exact. */
export type ContextView = {
  /** The number of messages that are not part of the summary. */
  history_messages: number;
  /** Tokens of the messages in full. */
  history_tokens: number;
  /** The model the prompt would go to. */
  model?: string | null;
  /** The number of those memories. */
  recalled_memories: number;
  /** Tokens of the memories recalled for the newest message. */
  recalled_tokens: number;
  /** Tokens of the summary of older messages. */
  summary_tokens: number;
  /** Tokens of the system prompt. */
  system_tokens: number;
  /** Tokens of the tool definitions. */
  tools_tokens: number;
  /** The total of all parts. */
  total_tokens: number;
  /** The size of the model's context window. */
  window_tokens: number;
};

export type Counts = {
  /** Running turns, on all nodes. */
  running: number;
  /** The number of sessions. */
  sessions: number;
  /** Messages and interrupted tasks that wait to be handled. */
  waiting: number;
  /** Unsafe settings, most severe first. */
  warnings: SafetyWarning[];
};

export type CreateTeamBody = {
  /** The agent that leads the team. Defaults to the default agent. */
  agent_id?: string | null;
  /** The kind of work of its members. Defaults to `general-purpose`. */
  agent_type?: string | null;
  /** The purpose of the team. */
  description?: string;
  /** The session that leads the team. Defaults to the main session of `agent_id` or of the default agent. */
  lead_session_key?: string | null;
  /** The name: lower-case letters, digits, `_` and `-`; at most 50 characters. */
  name: string;
  /** Lead the team from a new session, `agent:<agent_id>:team:<name>`. */
  own_session?: boolean;
};

export type CreatedSession = {
  /** The key of the new session. */
  session_key: string;
};

export type CronJobList = {
  /** All cron jobs. */
  cron: CronJobView[];
};

export type CronJobView = {
  /** The agent that the job runs for. */
  agent_id: string;
  /** How missed runs are handled: `skip` drops them, `once` makes up for all of them with one run. */
  catch_up: string;
  /** The agent that created the job. Null if a person did. */
  created_by?: string | null;
  /** The conversation that the answer is sent to. Null if it only stays in the session. */
  deliver_to?: Record<string, unknown> | null;
  /** Whether the job runs on its schedule. */
  enabled: boolean;
  /** The name of the job. */
  id: string;
  /** The last scheduled time that was run or skipped. Null if there was none. */
  last_due?: string | null;
  /** The message the agent gets. Null for a heartbeat. */
  message?: string | null;
  /** The next scheduled time. Null if there is none or the job is disabled. */
  next_due?: string | null;
  /** When the job runs: a cron expression, `every 10m` or `at 2026-12-01 09:00`. */
  schedule: string;
  /** The session that the job runs in. */
  session_key: string;
  /** Where the job is defined. `config`: the config file, where it must also be changed. `api`: the database. */
  source: string;
  /** The time zone of the schedule, such as `Europe/Berlin`. Null means UTC. */
  timezone?: string | null;
};

export type CronRunResult = {
  /** The session of the started turn. Null if there was nothing to do, as for a heartbeat of an agent that has no task or is busy. */
  session_key?: string | null;
  /** The started turn. Null if there was nothing to do. */
  turn_id?: string | null;
};

/** The agents that answer callers who name neither a session nor an agent, by channel. Bindings decide, else the default agent. */
export type DefaultAgents = {
  /** The agent for the HTTP API. */
  api: string;
  /** The agent for the command line. */
  cli: string;
  /** The agent for the web chat. */
  web: string;
};

export type DelegationList = {
  /** One entry per pair of agents. */
  delegations: DelegationView[];
};

/** Delegations from one agent to another since this process started. */
export type DelegationView = {
  /** Delegations running now, on all nodes. */
  active: number;
  /** The agent that delegates. */
  caller: string;
  /** Delegations that were cancelled. */
  cancelled: number;
  /** Delegations that succeeded. */
  completed: number;
  /** Delegations that failed. */
  error: number;
  /** The median duration of those that ended in the last hour. Null if none did. */
  p50_ms?: number | null;
  /** The 95th percentile of their duration. Null if none ended in the last hour. */
  p95_ms?: number | null;
  /** Delegations that were not started: not permitted, nested too deeply, or too many. */
  rejected: number;
  /** The agent that does the work. */
  target: string;
  /** Delegations that timed out. */
  timeout: number;
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

export type EventList = {
  /** The events in order. */
  events: EventView[];
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
};

export type EventView = {
  /** The agent it belongs to, if any. */
  agent_id?: string | null;
  /** When the event happened. */
  created_at: string;
  /** Details, depending on the kind. */
  data: Record<string, unknown>;
  /** The kind of event, such as `message.queued`. */
  kind: string;
  /** The sequence number. */
  seq: number;
  /** The session it belongs to, if any. */
  session_key?: string | null;
  /** The trace it belongs to. A trace connects all turns caused by one message. */
  trace_id?: string | null;
  /** The turn it belongs to, if any. */
  turn_id?: string | null;
};

/** A message as a channel would report it. */
export type ExplainRouteBody = {
  /** The account that receives it. Defaults to the channel's default account. */
  account_id?: string | null;
  /** The channel the message comes from, such as `telegram`. */
  channel: string;
  /** The server (guild) it is written in. */
  guild_id?: string | null;
  /** Whether the message mentions the account or replies to it. */
  mentioned?: boolean;
  parent_peer?: PeerBody | null;
  /** The conversation it is written in. */
  peer: PeerBody;
  /** The sender's roles in that server. */
  roles?: string[];
  /** The platform's id of the sender. Defaults to the peer's id. */
  sender?: string | null;
  /** The workspace (team) it is written in. */
  team_id?: string | null;
  /** The text of the message. */
  text?: string;
  /** The thread it is written in. */
  thread?: string | null;
  /** The forum topic it is written in. */
  topic?: string | null;
};

/** Consecutive failed turns. The streak ends with the first successful turn. */
export type FailureStreakView = {
  /** The error code of the last failure. */
  code: string;
  /** The number of failed turns. */
  failures: number;
  /** The time of the next attempt if messages or tasks wait. Null while an attempt runs or after a stop. */
  retry_at?: string | null;
  /** When the first of them failed. */
  since: string;
};

export type ForgetResult = {
  /** The number of forgotten memories. */
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
  /** Author of the message, as in the transcript: `user` is a person. */
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
  /** The sandbox restrictions measured while the tool ran, with a summary line for people. */
  sandbox: unknown;
} | {
  event: "delegate.started";
  /** The turn of this conversation that waits for the agent. */
  turn_id: string;
  /** One run of a spawned session. */
  run_id: string;
  agent_id: string;
  name: string;
} | {
  event: "delegate.delta";
  /** The turn of this conversation that waits for the agent. */
  turn_id: string;
  /** One run of a spawned session. */
  run_id: string;
  agent_id: string;
  name: string;
  text: string;
} | {
  event: "delegate.ended";
  /** The turn of this conversation that waits for the agent. */
  turn_id: string;
  /** One run of a spawned session. */
  run_id: string;
  agent_id: string;
  name: string;
  text: string;
  /** Whether the agent finished its answer. */
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
  /** Class of the failure, for example `overload` or `unreachable`. */
  reason: string;
  /** Number of this retry, from 1. */
  attempt: number;
  wait_ms: number;
} | {
  event: "approval.requested";
  /** One approval request. */
  approval_id: string;
  /** One turn job, from queued to its terminal state. */
  turn_id: string;
  tool: string;
  arguments: unknown;
  question: string;
  /** Name of the agent or team member that asks. */
  requested_by: string;
} | {
  event: "approval.decided";
  /** One approval request. */
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
  /** Token counts as the provider reported them. Missing values are `None`, never 0. */
  usage: {
    input_tokens: number | null;
    output_tokens: number | null;
    cached_tokens: number | null;
  };
  error_code: string | null;
  /** The reply was cut off at the model's length limit. */
  truncated: boolean;
} | {
  event: "team.changed";
  change: unknown;
} | {
  event: "session.changed";
}) | {
  type: string;
  /** The watched session. Absent if all sessions are watched. */
  session_key?: string | null;
  event: "replay.gap" | "reader.behind";
  message: string;
};

export type HealthView = {
  /** The names of the configured channels. */
  channels: string[];
  /** `ok`, `degraded` or `draining` (shutting down). */
  status: string;
  /** The state of the database. */
  store: StoreHealth;
  /** The background loops. */
  tasks: BackgroundLoop[];
  /** Milliseconds since the process started. */
  uptime_ms: number;
  /** The version of Polyclaw. */
  version: string;
};

export type InterruptedTask = {
  /** When the task was interrupted. */
  created_at: string;
  /** The message that started the task. */
  message_id: string;
  /** How often the task was interrupted. */
  steer_count: number;
  /** The text of the task. */
  text: string;
  /** The turn that was interrupted. */
  turn_id: string;
};

/** A cron job: a message that an agent gets at set times, in the conversation `cron:<id>`. */
export type Job = {
  /** The agent that gets the message. Defaults to the default agent. */
  agent?: string | null;
  /** How runs are handled that were missed while Polyclaw was not running. */
  catch_up?: string;
  /** Where the answer goes. If omitted, it is only stored in the conversation. */
  deliver_to?: {
    /** The account that sends. Defaults to the channel's default account. */
    account?: string | null;
    /** The channel, such as `telegram`. */
    channel: string;
    /** The conversation, by platform id. */
    peer: string;
    /** A thread or topic in the conversation. */
    thread?: string | null;
  } | null;
  /** Whether the job runs. */
  enabled?: boolean;
  /** Its id: `a-z`, `0-9`, `_` and `-`. */
  id: string;
  /** The message. */
  message: string;
  /** When: a cron expression (`30 8 * * 1-5`), `every 10m`, or `at 2026-12-01 09:00`. */
  schedule: string;
  /** The time zone, such as `Europe/Berlin`. Defaults to UTC. */
  timezone?: string | null;
};

export type JoinTeamBody = {
  /** The agent of the member. Defaults to the lead's agent. */
  agent_id?: string | null;
  /** What the member can do. A task may require one of these. */
  capabilities?: string[];
  /** The model as `provider/model`, if not the agent's own. */
  model?: string | null;
  /** The name of the member. */
  name: string;
  /** The member can only read until the lead or a person approves the plan it submits. */
  plan_mode_required?: boolean;
  /** Replace an existing member of that name with a new session. */
  replace?: boolean;
  /** What the member does. */
  role?: string | null;
  /** The first message to the member. Without one it waits for messages. */
  task?: string | null;
};

export type JoinedMemberView = {
  /** Tasks taken over from an earlier member of that name. */
  inherited: number[];
  /** The name of the member. */
  name: string;
  /** The session of the member. */
  session_key: string;
};

export type ListedMemory = Memory & {
  /** The relevance; higher is better. Only with `q`, and only comparable within one response. */
  score?: number | null;
};

export type LoginLink = {
  /** A one-time code that logs in one browser. */
  code: string;
  /** When the code expires. */
  expires_at: string;
  /** The path that logs in, relative to the address of the server. */
  path: string;
};

export type McpServerView = {
  /** The agents that may use the server. */
  agents: string[];
  /** Why the server is down. */
  error?: string | null;
  /** The name in the config. */
  name: string;
  /** How often the server was restarted. */
  restarts: number;
  /** The sandbox of the server's program: `confined` or `off`. Absent for a remote server. */
  sandbox?: string | null;
  /** `idle` (started when needed), `starting`, `ready` or `down`. */
  state: string;
  /** The tools of the server, by the names that agents use. */
  tools: string[];
  /** How the server is reached: `stdio` (a local program) or `http`. */
  transport: string;
  /** The name and version that the server reports. */
  version?: string | null;
};

export type McpServers = {
  /** The configured MCP servers. */
  servers: McpServerView[];
};

export type MemberView = {
  /** The agent of the member. */
  agent_id: string;
  /** What the member can do. */
  capabilities: string[];
  /** The name of the member's color. */
  color: string;
  failure_streak?: FailureStreakView | null;
  /** When the member joined. */
  joined_at: string;
  /** When the member was last active. */
  last_active_at: string;
  /** The name of the member. */
  name: string;
  /** `required` or `submitted` while the member may only read because its plan is not approved, else null. */
  plan?: string | null;
  /** What the member does. */
  role: string;
  /** The session of the member. */
  session_key: string;
  /** The state of the member: `working`, `idle`, `closed` or `lost` (its session is gone). */
  status: string;
  /** The tasks the member has claimed. */
  tasks: string[];
  /** Messages to the member that it has not read. */
  unread: number;
};

/** A memory. Embeddings are not included, because each instance computes its own. */
export type Memory = {
  /** The agent that stored it. */
  agent_id: string;
  /** The remembered text. */
  content: string;
  /** When it was created. */
  created_at: string;
  /** The id of the memory. */
  id: string;
  /** A key that is unique for its owner. Storing under the same key replaces the memory. */
  key: string;
  /** The kind of memory, such as `fact`. */
  kind: string;
  /** Additional data of the caller's choice. */
  metadata?: Record<string, unknown>;
  /** Who can see it: `shared` (all agents), `agent` or `session`. */
  scope: string;
  /** The session it was learned in. */
  session_key: string;
  /** When it was last changed. */
  updated_at: string;
};

export type MemoryImport = {
  /** The memories to import, at most 1000. */
  memories: Memory[];
};

export type MemoryImportResult = {
  /** The number of imported memories. */
  stored: number;
};

export type MemoryList = {
  /** The memories found. */
  memories: ListedMemory[];
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** Why the search compared words only, without embeddings. Null if it used them, or if nothing was searched. */
  words_only?: string | null;
};

export type MemoryStatus = {
  /** Bytes of embeddings held in memory. */
  cached_bytes: number;
  /** The model that computes embeddings. Null if search uses words only. */
  embeddings?: string | null;
  /** Why the embedding model failed at its last use. */
  error?: string | null;
  /** The number of memories. */
  memories: number;
  /** Memories that have no embedding of the current model yet. */
  pending: number;
};

export type ModelList = {
  /** The model of agents that have none of their own. */
  default_model?: string | null;
  /** The model in use and where it was found, or how to configure one. */
  in_use: string;
  /** The available models. */
  models: ModelView[];
};

export type ModelView = {
  /** The context window in tokens. Null if unknown. */
  context_window?: number | null;
  /** A demo model. Its answers have the right format but are often wrong; configure a real model for serious use. */
  demo: boolean;
  /** The model as `provider/model`. */
  model: string;
  /** `ready`, `cooling` (paused after errors), `unreachable`, or `damaged`: the model files cannot be loaded; `polyclaw model pull` downloads them again. */
  status: string;
};

export type NewMemory = {
  /** The agent that the memory belongs to. Defaults to the default agent. */
  agent_id?: string | null;
  /** The text to remember. */
  content: string;
  /** A key that is unique for its owner. Storing under the same key replaces the memory. */
  key?: string | null;
  /** The kind of memory. Defaults to `fact`. */
  kind?: string | null;
  /** Additional data of the caller's choice. */
  metadata?: Record<string, unknown>;
  /** Who can see it: `shared`, `agent` or `session`. Defaults to `agent`. */
  scope?: string | null;
  /** The session that the memory belongs to. Defaults to the agent's main session. */
  session_key?: string | null;
};

export type NewSession = {
  /** The agent of the session. Defaults to the one that the bindings select for the web chat. */
  agent?: string | null;
  /** The title of the session. */
  title?: string | null;
};

export type NewSessionMessage = {
  /** The agent of a new session. Defaults to the agent in the key, else the one the bindings select. */
  agent?: string | null;
  /** At most 20 attachments. The request is limited to 32 MB. */
  attachments?: AttachmentBody[];
  /** The channel that the person uses: `web` (default), `cli` or `api`. */
  channel?: string | null;
  /** Also send the answer to the chat conversation that belongs to this session. */
  deliver?: boolean;
  /** Messages with the same key in the same session are accepted only once. */
  idempotency_key?: string | null;
  /** The text of the message. */
  text: string;
};

export type OutboxList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The messages of this page. */
  outbox: OutboxMessageView[];
};

export type OutboxMessageView = {
  /** The destination (channel, account, peer and thread), copied from the message this one answers. */
  address: Record<string, unknown>;
  /** How often sending was attempted. */
  attempts: number;
  /** When the message was created. */
  created_at: string;
  /** The last error. */
  error?: string | null;
  /** When sending is given up. */
  expires_at: string;
  /** The id of the message. */
  id: string;
  /** The part number. Long replies are split into several messages. */
  part: number;
  /** The platform's id of the message, once known. */
  platform_id?: string | null;
  /** The session that sends it. */
  session_key: string;
  /** `pending`, `sending`, `sent`, `unknown` (it may or may not have arrived) or `failed`. */
  state: string;
  /** The text of the message. */
  text: string;
  /** The turn that sends it. */
  turn_id: string;
  /** When the message was last changed. */
  updated_at: string;
};

export type PairingList = {
  /** Pending pairings, then approved senders. */
  pairings: PairingView[];
};

export type PairingView = {
  /** The account the sender wrote to. */
  account: string;
  /** The channel, such as `telegram`. */
  channel: string;
  /** The pairing code that the sender got. Null once approved. */
  code?: string | null;
  /** When the sender first wrote. */
  created_at: string;
  /** When the code expires. Null once approved. */
  expires_at?: string | null;
  /** The platform's id of the sender. */
  sender: string;
  /** The sender's display name, chosen by the sender. */
  sender_name?: string | null;
  /** `pending` or `approved`. */
  state: string;
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

export type PeerBody = {
  /** The platform's id of the conversation. */
  id: string;
  /** `direct`, `group` or `channel`. Defaults to `direct`, and for a parent to the kind of the peer. */
  kind?: string | null;
};

export type PlanView = {
  /** The text of the pending plan. */
  content?: string | null;
  /** The id of the pending plan. */
  request_id?: string | null;
  /** `required`: no plan was submitted, or the last one was rejected. `submitted`: a plan waits for approval. `none`: the member needs no approval. */
  status: string;
};

export type PolicyLayerView = {
  /** Whether this layer allows the tool. */
  allows: boolean;
  /** The config line that would change it. */
  change?: string | null;
  /** The policy layer: `instance`, `agent`, `risk`, `inherited`, `plan`, `subagents`, `sender` or `approval`. */
  layer: string;
  /** The decision as a sentence. */
  reason: string;
  /** The rule that decided in this layer. */
  rule: string;
  /** Where that rule is set. */
  set_in?: string | null;
};

export type QueuedTurnView = {
  /** The queued turn. */
  turn_id: string;
};

export type ReadinessView = {
  /** Always true; an instance that is not ready answers with an error. */
  ready: boolean;
};

export type ReleaseTask = {
  /** The member to act for: a name, or `lead` (default), which may release tasks of others. */
  member?: string | null;
  /** A note for the next member that claims the task, at most 1000 characters. */
  note?: string | null;
};

export type RouteExplanation = {
  /** `admitted`, `pair` (the unknown sender gets a pairing code), or why the message is ignored. */
  admission: string;
  /** The agent that answers, the first one of a broadcast. Null if nobody answers. */
  agent_id?: string | null;
  /** All agents that answer. A broadcast has several, of which the first is described above. */
  answers: AnswererView[];
  /** Whether a model would be asked if another agent fits better. This call does not ask it. */
  asks_classifier: boolean;
  /** The index of that binding in the config, from 0. Null if none matches. */
  binding?: number | null;
  /** Every binding, and why it was rejected. */
  candidates: CandidateView[];
  /** The chat command in the message, if it is one. */
  command?: string | null;
  /** The rule that selected the agent: `broadcast`, `prefix`, `focus`, `active`, `binding`, `classifier`, `hook` or `default`. Null if nobody answers, because the message is a command or its account does not exist. */
  layer?: string | null;
  /** The model it would use first. Null if none is known. */
  model?: string | null;
  /** The session it answers in. */
  session_key?: string | null;
  /** How specific the best matching binding is: `peer`, `parent_peer`, `peer_wildcard`, `guild_roles`, `guild`, `team`, `account`, `channel` or `default`. */
  tier: string;
  /** Every tool, with the policy decision for this message. */
  tools: ToolPolicyView[];
};

export type RunList = {
  /** The runs. */
  runs: RunView[];
};

export type RunView = {
  /** The agent that does the work. */
  agent_id: string;
  /** The agent that started the run. */
  caller_agent_id: string;
  /** Cost in US dollars. Null if a price is unknown. */
  cost_usd?: number | null;
  /** When the run was started. */
  created_at: string;
  /** When the run ended. */
  ended_at?: string | null;
  /** The code of the error, if the run failed. */
  error_code?: string | null;
  /** Why the announce of the result waits for a person. Null if it does not. */
  held?: string | null;
  /** `subagent` or `delegate`. */
  kind: string;
  /** A short name of the task. */
  label: string;
  /** The session that started the run. */
  owner_session_key: string;
  /** The result, once the run has ended. */
  result?: string | null;
  /** The id of the run. */
  run_id: string;
  /** The session of the run. */
  session_key: string;
  /** `running`, `ok`, `error`, `timeout` or `cancelled`. */
  status: string;
  /** Tags given by the agent that started the run. */
  tags: string[];
  /** The task given to the agent. */
  task: string;
  /** Tokens used. Null if a provider did not report them. */
  tokens?: number | null;
  /** The trace of the run. A trace connects all turns caused by one message. */
  trace_id: string;
};

/** An unsafe setting. */
export type SafetyWarning = {
  /** A stable code, such as `running_as_root`. */
  code: string;
  /** How to fix it. */
  hint: string;
  /** What is unsafe. */
  message: string;
};

export type SendTeamMessageBody = {
  /** The text of the message. */
  content: string;
  /** A member's name or session key, or `lead`. If omitted, all members get the message. */
  recipient?: string | null;
  /** A one-line summary for other readers. */
  summary?: string | null;
};

export type SentTeamMessageView = {
  /** Recipients whose sessions are gone. The message waits for their successors. */
  lost: string[];
  /** The ids of the messages, one per recipient. */
  message_ids: string[];
  /** The recipients. */
  recipients: string[];
};

export type SessionList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The sessions of this page. */
  sessions: SessionView[];
};

export type SessionMessageReceipt = {
  /** Whether this message was already accepted before. */
  duplicate: boolean;
  /** The id of the message. */
  message_id: string;
  reply?: TurnReply | null;
  /** The session of the message. */
  session_key: string;
  /** The turn that answers the message. */
  turn_id: string;
  /** Another turn is running. The message is handled at its next step or after it. */
  waiting: boolean;
};

export type SessionMessageView = {
  /** The channel the message came from. */
  channel: string;
  /** When the message was stored. */
  created_at: string;
  /** Whether the message is delivered to its channel. */
  deliver: boolean;
  /** The id of the message. */
  id: string;
  /** Additional data, depending on the message. */
  meta?: Record<string, unknown> | null;
  /** Who or what wrote the message: `user`, `agent:<id>`, `agent:<instance>/<id>`, `cron`, `hook` or `system`. */
  origin: string;
  /** Tool calls, the call that a result belongs to, and attachments. */
  parts: Record<string, unknown>[];
  /** The position in the session. */
  position: number;
  /** The role of the message: `user`, `assistant` or `tool`. */
  role: string;
  /** The text of the message. */
  text: string;
  /** The turn that the message belongs to. */
  turn_id: string;
};

export type SessionNodeView = {
  /** Milliseconds since the session was created. */
  age_ms: number;
  /** The agent that answers in it. */
  agent_id: string;
  /** Sessions started from this one, in order of their start. Archived ones are omitted. */
  children: SessionNodeView[];
  /** How many sub-agent spawns lie between this session and a person. */
  depth: number;
  /** The label given by the session that started it, else the title. */
  label?: string | null;
  /** The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`. */
  lane: string;
  /** The run that the session works on, if any. */
  run_id?: string | null;
  /** `running`, `ok`, `error`, `timeout` or `cancelled`. Null if no other session started it. */
  run_status?: string | null;
  /** The session. */
  session_key: string;
  /** What the session is doing: `running`, `queued` or `idle`. */
  state: string;
  /** Tokens used. Null if a provider did not report them, or none was called. */
  tokens?: number | null;
  /** The trace of the run, else of the latest turn. A trace connects all turns caused by one message. */
  trace_id?: string | null;
};

export type SessionPatch = {
  /** The agent that answers from now on. */
  active_agent_id?: string | null;
  /** Whether answers of this session may be delivered to channels. */
  deliver_policy?: boolean | null;
  /** The model as `provider/model`. Null resets it to the agent's own. */
  model?: string | null;
  /** Whether the session may send messages to channels on its own. */
  send_policy?: boolean | null;
};

export type SessionView = {
  /** The agent that answers now. It differs from `agent_id` after a switch. */
  active_agent_id: string;
  /** The agent that the session belongs to. */
  agent_id: string;
  /** The channel of the conversation it was started from. */
  channel?: string | null;
  /** When the session was created. */
  created_at: string;
  /** How many delegations lie between this session and a person. */
  delegation_depth: number;
  /** Whether answers of this session may be delivered to channels. */
  deliver_policy: boolean;
  /** The queue of its turns: `main`, `subagent`, `teammate`, `cron` or `internal_announce`. */
  lane: string;
  /** The model chosen for this session. Null means the agent's own. */
  model?: string | null;
  /** The session that started this one. Null if none did. */
  owner_session_key?: string | null;
  /** Messages and interrupted tasks that wait to be handled. */
  queued: number;
  /** The running turn, if any. */
  running_turn_id?: string | null;
  /** Whether the session may send messages to channels on its own. */
  send_policy: boolean;
  /** The id of the current conversation. It changes when the session is reset. */
  session_id: string;
  /** The key that identifies the session. */
  session_key: string;
  /** How many sub-agent spawns lie between this session and a person. */
  spawn_depth: number;
  /** `active` or `archived`. */
  status: string;
  /** The team that the session leads or belongs to, even if that has ended. Same as `team_name`. */
  team?: string | null;
  /** The id of that team. */
  team_id?: string | null;
  /** The name of that team. */
  team_name?: string | null;
  /** The role in the team: `lead` or `member`. */
  team_role?: string | null;
  /** The color of a team member, as `#RRGGBB`. */
  teammate_color?: string | null;
  /** The title of the session. */
  title?: string | null;
  /** Input and output tokens of all calls with reported usage. Null if there are none. */
  tokens?: number | null;
  /** When something last happened in the session. */
  updated_at: string;
};

export type SetLeadBody = {
  /** The session that takes over the lead. */
  session_key: string;
};

export type ShutdownTeamBody = {
  /** Stop all members immediately without asking them. */
  force?: boolean;
  /** Why the team ends. Its members get this reason. */
  reason?: string;
};

export type SkillList = {
  /** The skills the agent can find. */
  skills: SkillView[];
};

export type SkillView = {
  /** Whether the agent may use the skill, which includes the tool that reads it. */
  allowed: boolean;
  /** What the skill is for. */
  description: string;
  /** The name of the skill. */
  name: string;
  /** Where the skill was found: `agent`, `workspace` or `shared`. The closest location wins. */
  place: string;
  /** The reason: `open`, `allowed`, `denied`, `not_listed` or `no_tool`. */
  rule: string;
};

export type StopResult = {
  /** What was stopped with it, recursively: the label of each run and the name of each team member. */
  children: string[];
  /** The number of interrupted tasks that were dropped. */
  interrupted_tasks: number;
  /** The turn that was stopped, if one was running. */
  turn_id?: string | null;
};

export type StoreHealth = {
  /** The database engine: `sqlite` or `postgres`. */
  engine: string;
  /** `ok`, `unavailable`, or why nothing can be written: `disk_full`, `store_read_only`, `store_unavailable`. */
  status: string;
};

export type TaskArtifact = {
  /** The kind of artifact, such as `file` or `commit`. */
  kind: string;
  /** The path of a file, or the hash of a commit. */
  path: string;
};

export type TaskEnd = "completed" | "failed";

export type TaskEnded = {
  /** The number of the ended task. */
  task_id: number;
  /** The tasks that can be claimed now because this one is completed. */
  unblocked: number[];
};

export type TaskLogEntryView = {
  /** Who made the change. */
  by: string;
  /** The kind of change: `created`, `claimed`, `started`, `updated`, `released`, `expired`, `inherited`, `completed`, `failed`, `unverified`, `late`, `reopened` or `deleted`. */
  change: string;
  /** When the change happened. */
  created_at: string;
  /** Details, depending on the change. */
  data: Record<string, unknown>;
  /** The sequence number of the entry. */
  seq: number;
  /** The number of the task. */
  task_id: number;
};

export type TaskLogView = {
  /** The entries, oldest first. */
  log: TaskLogEntryView[];
};

/** A team with its members and tasks. */
export type TeamDetail = TeamView & {
  /** The numbers of pending, blocked, in-progress, completed and failed tasks. */
  counts: Record<string, unknown>;
  /** Recently ended tasks, newest first. */
  ended: TeamTaskView[];
  failure_streak?: FailureStreakView | null;
  /** Whether the lead's session is gone, so that the team needs a new lead. */
  is_lead_lost: boolean;
  /** State of the lead: `working`, `idle` or `lost`. */
  lead_status: string;
  /** Messages to the lead that it has not read. */
  lead_unread: number;
  /** The members. */
  members: MemberView[];
  /** Open tasks, oldest first. */
  open: TeamTaskView[];
  /** Turns of the team since a person last wrote to its lead: `used`, `limit`, and whether one `is_waiting`. */
  turns: Record<string, unknown>;
};

export type TeamList = {
  /** The teams. */
  teams: TeamView[];
};

export type TeamMessageList = {
  /** The messages, newest first. */
  messages: TeamMessageView[];
};

export type TeamMessageView = {
  /** For a response: whether the sender agrees. */
  approve?: boolean | null;
  /** The text of the message. */
  content: string;
  /** When the message was sent. */
  created_at: string;
  /** The sender. */
  from: string;
  /** The id of the message. */
  message_id: string;
  /** When the recipient read it. */
  read_at?: string | null;
  /** The reason of a shutdown, its rejection or an idle notification. */
  reason?: string | null;
  /** The state of delivery: `queued`, `in_prompt`, `read` or `undeliverable`. */
  state: string;
  /** A one-line summary. */
  summary: string;
  /** The recipient. */
  to: string;
  /** `message`, `broadcast`, `shutdown_request`, `shutdown_response`, `plan_approval_request`, `plan_approval_response`, `idle` or `task`. */
  type: string;
};

export type TeamShutdownView = {
  /** The `name`, `request_id` and `answer` of each member. */
  members: Record<string, unknown>[];
  /** State of the team: `shutdown`, `shutting_down` while members are asked, or `active` if one objected. */
  status: string;
};

export type TeamTaskList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The tasks of this page. */
  tasks: TeamTaskView[];
};

export type TeamTaskView = {
  /** The artifacts that the task produced, each with `kind` and `path`. */
  artifacts: Record<string, unknown>[];
  /** The only member that may claim the task. */
  assignee?: string | null;
  /** The tasks in `depends_on` that are not completed. */
  blocked_by: number[];
  /** A capability that a member needs to claim the task. */
  capability?: string | null;
  /** When the task was created. */
  created_at: string;
  /** The member or person that created the task. */
  created_by: string;
  /** The tasks that must be completed first. */
  depends_on: number[];
  /** What is to be done. */
  description: string;
  /** When the task ended. */
  ended_at?: string | null;
  /** When the claim expires unless it is renewed. */
  lease_until?: string | null;
  /** Additional data given with the task. */
  metadata?: Record<string, unknown> | null;
  /** A note left when the task was released. */
  note?: string | null;
  /** The member that has claimed or ended the task. */
  owner?: string | null;
  /** `pending`, `claimed`, `in_progress`, `completed` or `failed`. */
  status: string;
  /** The title of the task. */
  subject: string;
  /** The result, once the task has ended. */
  summary?: string | null;
  /** The number of the task. */
  task_id: number;
  /** The title to display now: `active_form` while in progress, else `subject`. */
  title: string;
  /** A check that must pass before the task is completed: `{"command": "…"}` or `{"agent": {…}}`. */
  verify?: Record<string, unknown> | null;
};

export type TeamView = {
  /** The kind of work of its members. */
  agent_type: string;
  /** When the team was created. */
  created_at: string;
  /** The purpose of the team. */
  description: string;
  /** The id of the team. */
  id: string;
  /** The session that leads the team. */
  lead_session_key: string;
  /** The name of the team. */
  name: string;
  /** The state of the team: `active`, `shutting_down` or `shutdown`. */
  status: string;
  /** When the team was last changed. */
  updated_at: string;
};

/** Tokens as reported by the provider. Null if it did not report them. */
export type TokenUsageView = {
  /** Input tokens served from the provider's cache. */
  cached_tokens?: number | null;
  /** Input tokens, including cached ones. */
  input_tokens?: number | null;
  /** Output tokens. */
  output_tokens?: number | null;
};

/** The policy decision for a tool, with the decision of every layer in order. */
export type ToolExplanationView = ToolPolicyView & {
  /** The decision of each policy layer, in order. */
  layers: PolicyLayerView[];
};

export type ToolList = {
  /** Every tool, with the policy decision for the agent. */
  tools: ToolPolicyView[];
};

/** A tool, whether the agent may use it, and the rule that decided. */
export type ToolPolicyView = ToolView & {
  /** The agent that the decision is for. */
  agent_id: string;
  /** Whether the agent may use the tool. */
  allowed: boolean;
  /** Whether a person must approve each call. */
  asks: boolean;
  /** The config line that would change the decision. */
  change?: string | null;
  /** The rule that decided, such as `agent.deny`. */
  rule?: string | null;
  /** Where that rule is set. */
  set_in?: string | null;
};

export type ToolView = {
  /** Whether the tool runs only inside the agent's sandbox. */
  confined: boolean;
  /** Whether a person must approve: `not_needed`, `ask_person`, or `by_call`, which the tool decides for each call. */
  consent: string;
  /** The description of the tool that the model gets. */
  description: string;
  /** What a call changes: `pure` (nothing), `idempotent` (safe to repeat) or `effect`. */
  effect: string;
  /** The name of the tool. */
  name: string;
  /** The JSON Schema of the arguments. */
  parameters: Record<string, unknown>;
  /** The risk of a call: `low` or `high`. */
  risk: string;
};

export type TranscriptPage = {
  /** The messages of this page in order. */
  messages: SessionMessageView[];
  /** `after` of the next page. Null on the last page. */
  next_after?: number | null;
  /** The session. */
  session_key: string;
};

export type TurnError = {
  /** The error code. */
  code: string;
  /** The error message. */
  message?: string | null;
};

export type TurnList = {
  /** The cursor of the next page. Null on the last page. */
  next_cursor?: string | null;
  /** The turns of this page. */
  turns: TurnView[];
};

export type TurnReply = {
  /** The code of the error, if the turn failed. */
  error_code?: string | null;
  /** `length` if the reply was cut off at the model's output limit, else null. */
  finish_reason?: string | null;
  /** The id of the reply's message. */
  message_id?: string | null;
  /** The model that answered. */
  model?: string | null;
  /** `done`, `failed` or `cancelled`. */
  state: string;
  /** The text of the reply, or the error. */
  text: string;
  /** Tokens used by the turn. */
  usage: TokenUsageView;
};

export type TurnView = {
  /** The agent that answers. */
  agent_id: string;
  /** How often the turn was started. It is more than 1 after a crash. */
  attempt: number;
  /** The turn that continues the task of a steered one. */
  continued_by?: string | null;
  /** When the turn ended. */
  ended_at?: string | null;
  error?: TurnError | null;
  /** The id of the turn. */
  id: string;
  /** The queue of the turn: `main`, `subagent`, `teammate`, `cron` or `internal_announce`. */
  lane: string;
  /** The model that answered. */
  model?: string | null;
  /** When the turn was queued. */
  queued_at: string;
  reply?: TurnReply | null;
  /** The message with the reply. */
  reply_id?: string | null;
  /** The session of the turn. */
  session_key: string;
  /** When the turn started. */
  started_at?: string | null;
  /** The state of the turn: `queued`, `running`, `done`, `failed`, `cancelled` or `steered` (interrupted by a newer message). */
  state: string;
  /** Inputs, model steps and tool results. Only when a single turn is requested. */
  steps?: SessionMessageView[] | null;
  /** The trace of the turn. A trace connects all turns caused by one message. */
  trace_id: string;
  /** Tokens used by the turn. */
  usage: TokenUsageView;
};

export type UnusedSessionView = {
  /** The agent of the session. */
  agent_id: string;
  /** The rank among the sessions of its agent; the most recently used one is 1. */
  place: number;
  /** The key of the session. */
  session_key: string;
  /** When the session was last used. */
  updated_at: string;
};

export type UsageGroupBy = "agent" | "model" | "session" | "day";

export type UsageReport = {
  /** Every configured budget with today's balance. */
  budgets: BudgetView[];
  /** The requested grouping. */
  by: UsageGroupBy;
  /** The start of the time window. */
  since: string;
  /** The totals of each group. */
  totals: UsageTotalView[];
  /** The requested time window. */
  window: UsageWindow;
};

export type UsageTotalView = {
  /** The part of the input tokens that was cached, where reported. */
  cached_tokens?: number | null;
  /** The number of model calls. */
  calls: number;
  /** Cost in US dollars of the calls with known cost. Null if there are none. */
  cost_usd?: number | null;
  /** The agent id, model, session key or date of the group. */
  group: string;
  /** Input tokens. */
  input_tokens?: number | null;
  /** Output tokens. */
  output_tokens?: number | null;
  /** Calls without reported usage. The sums do not include them. */
  unknown_calls: number;
  /** Calls with unknown cost, because the usage was not reported or the config has no price. */
  unpriced_calls: number;
};

export type UsageWindow = "1h" | "24h" | "7d" | "30d";
