-- Errands made while the instance runs; those of the config file are in that file alone.
CREATE TABLE errands (
  errand_id TEXT PRIMARY KEY,
  job_json TEXT NOT NULL,
  -- The agent that made it; null where a person did.
  made_by TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
