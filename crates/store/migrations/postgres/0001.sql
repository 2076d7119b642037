CREATE TABLE agent_specs (
  agent_id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  config_json TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('config', 'api')),
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE sessions (
  session_key TEXT COLLATE "C" PRIMARY KEY,
  session_id TEXT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  active_agent_id TEXT NOT NULL,
  provider_override TEXT,
  model_override TEXT,
  deliver_policy BIGINT NOT NULL DEFAULT 1,
  send_policy BIGINT NOT NULL DEFAULT 1,
  owner_session_key TEXT COLLATE "C",
  channel TEXT,
  account TEXT,
  peer TEXT,
  thread TEXT,
  lane TEXT NOT NULL,
  spawn_depth BIGINT NOT NULL DEFAULT 0,
  delegation_depth BIGINT NOT NULL DEFAULT 0,
  team TEXT,
  team_role TEXT,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'archived')),
  title TEXT,
  next_ticket BIGINT NOT NULL DEFAULT 1,
  summary TEXT,
  compacted_ticket BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX sessions_agent ON sessions (agent_id, session_key);
CREATE INDEX sessions_owner ON sessions (owner_session_key) WHERE owner_session_key IS NOT NULL;

CREATE TABLE messages (
  id TEXT COLLATE "C" PRIMARY KEY,
  session_key TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  ticket BIGINT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
  text TEXT NOT NULL,
  parts_json TEXT,
  origin TEXT NOT NULL,
  channel TEXT NOT NULL,
  deliver BIGINT NOT NULL,
  address_json TEXT,
  meta_json TEXT,
  idempotency_key TEXT,
  turn_id TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX messages_ticket ON messages (session_key, ticket);
CREATE UNIQUE INDEX messages_idempotency ON messages (session_key, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX messages_turn ON messages (turn_id, ticket);

CREATE TABLE jobs (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn_id TEXT COLLATE "C" NOT NULL UNIQUE,
  session_key TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  agent_id TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('turn', 'compact')),
  lane TEXT NOT NULL,
  priority BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled', 'steered')),
  held BIGINT NOT NULL,
  was_held BIGINT NOT NULL,
  inputs BIGINT NOT NULL,
  steers BIGINT NOT NULL,
  hop BIGINT NOT NULL,
  trace_id TEXT NOT NULL,
  node TEXT,
  lease_until BIGINT,
  attempt BIGINT NOT NULL DEFAULT 0,
  cancel BIGINT NOT NULL DEFAULT 0,
  model TEXT,
  input_tokens BIGINT,
  output_tokens BIGINT,
  cached_tokens BIGINT,
  reply_id TEXT,
  continued_by TEXT,
  error_code TEXT,
  error TEXT,
  queued_at BIGINT NOT NULL,
  started_at BIGINT,
  ended_at BIGINT
);
CREATE UNIQUE INDEX jobs_one_running ON jobs (session_key) WHERE state = 'running';
CREATE UNIQUE INDEX jobs_one_queued ON jobs (session_key) WHERE state = 'queued';
CREATE INDEX jobs_ready ON jobs (lane, agent_id, priority, seq) WHERE state = 'queued' AND held = 0;
CREATE INDEX jobs_running ON jobs (lane, agent_id, started_at) WHERE state = 'running';
CREATE INDEX jobs_session ON jobs (session_key, seq);

CREATE TABLE intents (
  turn_id TEXT COLLATE "C" NOT NULL,
  call_id TEXT NOT NULL,
  name TEXT NOT NULL,
  effect TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('intent', 'done', 'unknown')),
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  PRIMARY KEY (turn_id, call_id)
);

CREATE TABLE backlog (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_key TEXT COLLATE "C" NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  message_id TEXT NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  steers BIGINT NOT NULL,
  taken_by TEXT,
  created_at BIGINT NOT NULL
);
CREATE INDEX backlog_waiting ON backlog (session_key, seq) WHERE taken_by IS NULL;
CREATE INDEX backlog_taken ON backlog (taken_by) WHERE taken_by IS NOT NULL;

CREATE TABLE ingress (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  platform_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (channel, account, platform_id)
);
CREATE INDEX ingress_age ON ingress (created_at);

CREATE TABLE traces (
  trace_id TEXT PRIMARY KEY,
  automatic_turns BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE outbox (
  id TEXT COLLATE "C" PRIMARY KEY,
  part_key TEXT NOT NULL UNIQUE,
  session_key TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  part BIGINT NOT NULL,
  channel TEXT NOT NULL,
  address_json TEXT NOT NULL,
  text TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'sending', 'sent', 'unknown', 'failed')),
  attempts BIGINT NOT NULL DEFAULT 0,
  node TEXT,
  lease_until BIGINT,
  next_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  platform_id TEXT,
  error TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX outbox_pending ON outbox (next_at) WHERE state = 'pending';
CREATE INDEX outbox_sending ON outbox (lease_until) WHERE state = 'sending';
CREATE INDEX outbox_order ON outbox (session_key, id) WHERE state IN ('pending', 'sending');

CREATE TABLE approvals (
  id TEXT COLLATE "C" PRIMARY KEY,
  session_key TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  arguments_json TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved', 'denied', 'expired')),
  reason TEXT,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  decided_at BIGINT,
  UNIQUE (turn_id, call_id)
);
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE state = 'pending';

CREATE TABLE usage (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_key TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  input_tokens BIGINT,
  output_tokens BIGINT,
  cached_tokens BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX usage_time ON usage (created_at);

CREATE TABLE events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind TEXT NOT NULL,
  session_key TEXT COLLATE "C",
  turn_id TEXT COLLATE "C",
  agent_id TEXT COLLATE "C",
  trace_id TEXT,
  data_json TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX events_session ON events (session_key, seq) WHERE session_key IS NOT NULL;
CREATE INDEX events_kind ON events (kind, seq);
