-- Who asked for a run; when its session is put away; why its announce waits for a person.
ALTER TABLE runs ADD COLUMN caller_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN archive_after_ms INTEGER;
ALTER TABLE runs ADD COLUMN put_away_at INTEGER;
ALTER TABLE runs ADD COLUMN held_code TEXT;
UPDATE runs SET caller_id = COALESCE(
  (SELECT s.agent_id FROM sessions s WHERE s.session_key = runs.owner_key), agent_id);
CREATE INDEX runs_put_away ON runs (put_away_at) WHERE put_away_at IS NOT NULL;
CREATE INDEX runs_held ON runs (created_at, run_id) WHERE held_code IS NOT NULL;
CREATE INDEX runs_age ON runs (owner_key, created_at, run_id);
CREATE INDEX runs_last ON runs (child_key, created_at);
