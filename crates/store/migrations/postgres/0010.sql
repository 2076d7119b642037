-- Teams, and their members. A member is its name; its sessions are its lives.
CREATE TABLE teams (
  team_id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  description TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'shutting_down', 'shutdown')),
  lead_key TEXT COLLATE "C" NOT NULL,
  lead_agent TEXT COLLATE "C" NOT NULL,
  trace_id TEXT COLLATE "C" NOT NULL,
  reply_to_json TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX teams_name ON teams (name) WHERE status <> 'shutdown';
CREATE INDEX teams_lead ON teams (lead_key);

CREATE TABLE members (
  team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,
  session_key TEXT COLLATE "C" NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  role TEXT NOT NULL,
  capabilities_json TEXT NOT NULL,
  color TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'closed', 'lost')),
  joined_at BIGINT NOT NULL,
  last_active_at BIGINT NOT NULL,
  ended_turn TEXT COLLATE "C",
  ended_badly BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, name)
);
CREATE UNIQUE INDEX members_session ON members (session_key);

-- Mail is here and not in the ledger: it is read by the very commit of the turn that showed it.
CREATE TABLE letters (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  letter_id TEXT COLLATE "C" NOT NULL UNIQUE,
  team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  sender TEXT COLLATE "C" NOT NULL,
  recipient TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  summary TEXT NOT NULL,
  request_id TEXT COLLATE "C",
  approve BIGINT,
  reason TEXT,
  state TEXT NOT NULL CHECK (state IN ('queued', 'in_prompt', 'read', 'undeliverable')),
  turn_id TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  read_at BIGINT
);
CREATE INDEX letters_open ON letters (team_id, recipient, seq) WHERE state IN ('queued', 'in_prompt');
CREATE INDEX letters_turn ON letters (turn_id) WHERE state = 'in_prompt';
CREATE INDEX letters_team ON letters (team_id, seq);

-- What of a ledger the sessions were told: each event once.
CREATE TABLE told (
  team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  PRIMARY KEY (team_id, seq)
);

CREATE TABLE shutdown_requests (
  request_id TEXT COLLATE "C" PRIMARY KEY,
  team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  member TEXT COLLATE "C" NOT NULL,
  deadline BIGINT NOT NULL,
  answer_json TEXT,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX shutdown_requests_member ON shutdown_requests (team_id, member);

-- The ledgers of teams: their tasks, what these wait for, and everything that became of them.
CREATE TABLE ledgers (
  team_id TEXT COLLATE "C" PRIMARY KEY,
  next_task BIGINT NOT NULL
);

CREATE TABLE tasks (
  team_id TEXT COLLATE "C" NOT NULL,
  task_no BIGINT NOT NULL,
  subject TEXT NOT NULL,
  description TEXT NOT NULL,
  active_form TEXT,
  metadata_json TEXT,
  assignee TEXT COLLATE "C",
  capability TEXT COLLATE "C",
  verify_json TEXT,
  state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'in_progress', 'completed', 'failed')),
  owner TEXT COLLATE "C",
  owner_key TEXT COLLATE "C",
  fence BIGINT NOT NULL DEFAULT 0,
  lease_until BIGINT,
  claim_key TEXT COLLATE "C",
  ended_by TEXT,
  summary TEXT,
  note TEXT,
  artifacts_json TEXT,
  create_key TEXT COLLATE "C",
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  claimed_at BIGINT,
  ended_at BIGINT,
  PRIMARY KEY (team_id, task_no),
  CHECK ((state IN ('claimed', 'in_progress')) = (owner IS NOT NULL)),
  CHECK ((owner IS NULL) = (lease_until IS NULL))
);
CREATE INDEX tasks_pending ON tasks (team_id, task_no) WHERE state = 'pending';
CREATE INDEX tasks_owned ON tasks (team_id, lease_until) WHERE owner IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (team_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_created_once ON tasks (team_id, create_key) WHERE create_key IS NOT NULL;
CREATE INDEX tasks_claimed_once ON tasks (team_id, claim_key) WHERE claim_key IS NOT NULL;

CREATE TABLE task_needs (
  team_id TEXT COLLATE "C" NOT NULL,
  task_no BIGINT NOT NULL,
  needs BIGINT NOT NULL,
  PRIMARY KEY (team_id, task_no, needs),
  FOREIGN KEY (team_id, task_no) REFERENCES tasks (team_id, task_no) ON DELETE CASCADE,
  FOREIGN KEY (team_id, needs) REFERENCES tasks (team_id, task_no)
);
CREATE INDEX task_needs_of ON task_needs (team_id, needs);

CREATE TABLE task_events (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  team_id TEXT COLLATE "C" NOT NULL,
  task_no BIGINT NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT COLLATE "C" NOT NULL,
  data_json TEXT NOT NULL,
  is_relayed BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX task_events_of ON task_events (team_id, seq);
CREATE INDEX task_events_due ON task_events (team_id, seq) WHERE is_relayed = 0;
