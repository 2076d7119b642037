-- Turns of somebody in a team that fail, one after the other. Gone with the first that ends well.
CREATE TABLE setbacks (
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  since INTEGER NOT NULL,
  code TEXT NOT NULL,
  failures INTEGER NOT NULL,
  retry_at INTEGER,
  PRIMARY KEY (team_id, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX setbacks_due ON setbacks (retry_at) WHERE retry_at IS NOT NULL;
