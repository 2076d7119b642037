-- Errands made while the instance runs; those of the config file are in that file alone.
CREATE TABLE errands (
  errand_id TEXT COLLATE "C" PRIMARY KEY,
  job_json TEXT NOT NULL,
  -- The agent that made it; null where a person did.
  made_by TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
