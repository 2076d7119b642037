PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE ledgers (
  team_id TEXT PRIMARY KEY,
  next_task INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO ledgers VALUES('01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0',2);
CREATE TABLE tasks (
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  subject TEXT NOT NULL,
  description TEXT NOT NULL,
  active_form TEXT,
  metadata_json TEXT,
  assignee TEXT,
  capability TEXT,
  verify_json TEXT,
  state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'in_progress', 'completed', 'failed')),
  owner TEXT,
  owner_key TEXT,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER,
  claim_key TEXT,
  ended_by TEXT,
  summary TEXT,
  note TEXT,
  artifacts_json TEXT,
  create_key TEXT,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  ended_at INTEGER,
  PRIMARY KEY (team_id, task_no),
  CHECK ((state IN ('claimed', 'in_progress')) = (owner IS NOT NULL)),
  CHECK ((owner IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO tasks VALUES('01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0',1,'Sweep','All of it',NULL,NULL,NULL,NULL,NULL,'pending',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'01m7v03sj3w1cxqmax77kw4f30-call_c1579fed917b_0','lead',1795128682082,NULL,NULL);
CREATE TABLE task_needs (
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  needs INTEGER NOT NULL,
  PRIMARY KEY (team_id, task_no, needs),
  FOREIGN KEY (team_id, task_no) REFERENCES tasks (team_id, task_no) ON DELETE CASCADE,
  FOREIGN KEY (team_id, needs) REFERENCES tasks (team_id, task_no)
) STRICT, WITHOUT ROWID;
CREATE TABLE task_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT NOT NULL,
  data_json TEXT NOT NULL,
  is_relayed INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO task_events VALUES(1,'01m7v03sj3w1cxqmax77kw4f30-call_94d24ff82015_0',1,'created','lead','{}',1,1795128682082);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('task_events',1);
CREATE INDEX tasks_owned ON tasks (team_id, lease_until) WHERE owner IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (team_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_created_once ON tasks (team_id, create_key) WHERE create_key IS NOT NULL;
CREATE INDEX tasks_claimed_once ON tasks (team_id, claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX task_needs_of ON task_needs (team_id, needs);
CREATE INDEX task_events_of ON task_events (team_id, seq);
CREATE INDEX task_events_due ON task_events (team_id, seq) WHERE is_relayed = 0;
CREATE INDEX tasks_by_state ON tasks (team_id, state, task_no, owner, assignee, capability);
COMMIT;
PRAGMA user_version=2;
