-- Teams, and their members. A member is its name; its sessions are its lives.
CREATE TABLE teams (
  team_id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  agent_type TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'shutting_down', 'shutdown')),
  lead_key TEXT NOT NULL,
  lead_agent TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  reply_to_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX teams_name ON teams (name) WHERE status <> 'shutdown';
CREATE INDEX teams_lead ON teams (lead_key);

CREATE TABLE members (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  session_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  role TEXT NOT NULL,
  capabilities_json TEXT NOT NULL,
  color TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'closed', 'lost')),
  joined_at INTEGER NOT NULL,
  last_active_at INTEGER NOT NULL,
  ended_turn TEXT,
  ended_badly INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (team_id, name)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX members_session ON members (session_key);

-- Mail is here and not in the ledger: it is read by the very commit of the turn that showed it.
CREATE TABLE letters (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  letter_id TEXT NOT NULL UNIQUE,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  summary TEXT NOT NULL,
  request_id TEXT,
  approve INTEGER,
  reason TEXT,
  state TEXT NOT NULL CHECK (state IN ('queued', 'in_prompt', 'read', 'undeliverable')),
  turn_id TEXT,
  created_at INTEGER NOT NULL,
  read_at INTEGER
) STRICT;
CREATE INDEX letters_open ON letters (team_id, recipient, seq) WHERE state IN ('queued', 'in_prompt');
CREATE INDEX letters_turn ON letters (turn_id) WHERE state = 'in_prompt';
CREATE INDEX letters_team ON letters (team_id, seq);

-- What of a ledger the sessions were told: each event once.
CREATE TABLE told (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  PRIMARY KEY (team_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE shutdown_requests (
  request_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  member TEXT NOT NULL,
  deadline INTEGER NOT NULL,
  answer_json TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX shutdown_requests_member ON shutdown_requests (team_id, member);
