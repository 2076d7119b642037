CREATE TABLE agent_specs (
  agent_id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  config_json TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('config', 'api')),
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
  session_key TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  active_agent_id TEXT NOT NULL,
  provider_override TEXT,
  model_override TEXT,
  deliver_policy INTEGER NOT NULL DEFAULT 1,
  send_policy INTEGER NOT NULL DEFAULT 1,
  owner_session_key TEXT,
  channel TEXT,
  account TEXT,
  peer TEXT,
  thread TEXT,
  lane TEXT NOT NULL,
  spawn_depth INTEGER NOT NULL DEFAULT 0,
  delegation_depth INTEGER NOT NULL DEFAULT 0,
  team TEXT,
  team_role TEXT,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
  title TEXT,
  next_ticket INTEGER NOT NULL DEFAULT 1,
  summary TEXT,
  compacted_ticket INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_agent ON sessions (agent_id, session_key);
CREATE INDEX sessions_owner ON sessions (owner_session_key) WHERE owner_session_key IS NOT NULL;

CREATE TABLE messages (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  ticket INTEGER NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  text TEXT NOT NULL,
  parts_json TEXT,
  origin TEXT NOT NULL,
  channel TEXT NOT NULL,
  deliver INTEGER NOT NULL,
  address_json TEXT,
  meta_json TEXT,
  idempotency_key TEXT,
  turn_id TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX messages_ticket ON messages (session_key, ticket);
CREATE UNIQUE INDEX messages_idempotency ON messages (session_key, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX messages_turn ON messages (turn_id, ticket);

CREATE TABLE jobs (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  agent_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'compact')),
  lane TEXT NOT NULL,
  priority INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'steered')),
  held INTEGER NOT NULL,
  was_held INTEGER NOT NULL,
  inputs INTEGER NOT NULL,
  steers INTEGER NOT NULL,
  hop INTEGER NOT NULL,
  trace_id TEXT NOT NULL,
  node TEXT,
  lease_until INTEGER,
  attempt INTEGER NOT NULL DEFAULT 0,
  cancel INTEGER NOT NULL DEFAULT 0,
  model TEXT,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  reply_id TEXT,
  continued_by TEXT,
  error_code TEXT,
  error TEXT,
  queued_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX jobs_one_running ON jobs (session_key) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_one_queued ON jobs (session_key) WHERE state = 'queued';
CREATE INDEX jobs_ready ON jobs (lane, agent_id, priority, seq) WHERE state = 'queued' AND held = 0;
CREATE INDEX jobs_running ON jobs (lane, agent_id, started_at) WHERE state = 'running';
CREATE INDEX jobs_session ON jobs (session_key, seq);

CREATE TABLE intents (
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  effect TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'unknown')),
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  PRIMARY KEY (turn_id, call_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE backlog (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  steers INTEGER NOT NULL,
  taken_by TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX backlog_waiting ON backlog (session_key, seq) WHERE taken_by IS NULL;
CREATE INDEX backlog_taken ON backlog (taken_by) WHERE taken_by IS NOT NULL;

CREATE TABLE ingress (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (channel, account, platform_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ingress_age ON ingress (created_at);

CREATE TABLE traces (
  trace_id TEXT PRIMARY KEY,
  automatic_turns INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox (
  id TEXT PRIMARY KEY,
  part_key TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  part INTEGER NOT NULL,
  channel TEXT NOT NULL,
  address_json TEXT NOT NULL,
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  node TEXT,
  lease_until INTEGER,
  next_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  platform_id TEXT,
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_pending ON outbox (next_at) WHERE state = 'pending';
CREATE INDEX outbox_sending ON outbox (lease_until) WHERE state = 'sending';
CREATE INDEX outbox_order ON outbox (session_key, id) WHERE state IN ('pending', 'sending');

CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_json TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired')),
  reason TEXT,
  expires_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  UNIQUE (turn_id, call_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE state = 'pending';

CREATE TABLE usage (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  session_key TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER,
  output_tokens INTEGER,
  cached_tokens INTEGER,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_time ON usage (created_at);

CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  session_key TEXT,
  turn_id TEXT,
  agent_id TEXT,
  trace_id TEXT,
  data_json TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX events_session ON events (session_key, seq) WHERE session_key IS NOT NULL;
CREATE INDEX events_kind ON events (kind, seq);
