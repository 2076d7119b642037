-- Turns of agents with a higher number start first.
ALTER TABLE agent_specs ADD COLUMN priority BIGINT NOT NULL DEFAULT 0;

-- The account of each platform that is meant where none is named. It stays when accounts are added.
CREATE TABLE default_accounts (
  channel TEXT PRIMARY KEY,
  account TEXT NOT NULL
);

-- The commit at which a child's workspace stood before it began.
ALTER TABLE runs ADD COLUMN commit_before TEXT;
