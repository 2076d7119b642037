-- A call that ends a team means this one, whichever bears the name when it is made again.
CREATE TABLE shutdown_calls (
  call_id TEXT PRIMARY KEY,
  team_id TEXT NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Whether an answer of the model can have been to it.
ALTER TABLE letters ADD COLUMN shown_at INTEGER;
