-- What one session asks of another that it began, until the announce of its end.
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  child_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  owner_key TEXT NOT NULL,
  owner_turn TEXT NOT NULL,
  trace_id TEXT NOT NULL,
  hop INTEGER NOT NULL,
  task_json TEXT NOT NULL,
  reply_to_json TEXT NOT NULL,
  awaited_by TEXT,
  deadline INTEGER,
  is_deleted_after INTEGER NOT NULL,
  status TEXT NOT NULL,
  is_announced INTEGER NOT NULL DEFAULT 0,
  result_json TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE UNIQUE INDEX runs_child ON runs (child_key) WHERE status = 'running';
CREATE INDEX runs_owner ON runs (owner_key, run_id);
CREATE INDEX runs_deadline ON runs (deadline) WHERE status = 'running';
CREATE INDEX runs_awaited ON runs (awaited_by) WHERE awaited_by IS NOT NULL AND is_announced = 0;
