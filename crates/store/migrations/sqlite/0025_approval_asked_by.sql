-- The name of the agent or team member that asks.
ALTER TABLE approvals ADD COLUMN asked_by TEXT NOT NULL DEFAULT '';
