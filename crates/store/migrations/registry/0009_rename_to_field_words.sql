-- One word for each thing, in every layer.
ALTER TABLE answers RENAME TO idempotent_responses;
DROP INDEX answers_age;
CREATE INDEX idempotent_responses_age ON idempotent_responses (created_at);
ALTER TABLE instances RENAME COLUMN wanted TO desired_state;
ALTER TABLE crashes RENAME COLUMN why TO reason;
ALTER TABLE messages RENAME COLUMN life TO process_epoch;
ALTER TABLE audit RENAME COLUMN who TO actor;
ALTER TABLE audit RENAME COLUMN previous TO previous_hash;
ALTER TABLE audit_head RENAME COLUMN one TO id;

CREATE TABLE new_imports (
  id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  -- Of what was read: the same again changes nothing.
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('running', 'done', 'rolled_back')),
  instance_id TEXT,
  report TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'done') = (report IS NOT NULL AND instance_id IS NOT NULL))
) STRICT;
INSERT INTO new_imports (id, source, digest, state, instance_id, report, created_at, ended_at)
SELECT id, source, digest, CASE state WHEN 'begun' THEN 'running' WHEN 'undone' THEN 'rolled_back' ELSE state END,
  instance_id, report, created_at, ended_at
FROM imports;
DROP TABLE imports;
ALTER TABLE new_imports RENAME TO imports;
CREATE INDEX imports_of ON imports (source, created_at);
