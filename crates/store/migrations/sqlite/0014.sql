-- What a session may use at most: what the turn that began it could. Null where a person began it.
ALTER TABLE sessions ADD COLUMN lent_json TEXT;
-- How much its model thinks, where whoever began it said so.
ALTER TABLE sessions ADD COLUMN thinking TEXT;
-- Whether a letter is in the file of its mailbox, on the node that hosts its team's lead.
ALTER TABLE letters ADD COLUMN is_copied INTEGER NOT NULL DEFAULT 1;
CREATE INDEX letters_uncopied ON letters (team_id, seq) WHERE is_copied = 0;
-- How many sub-agents of an agent are at work.
CREATE INDEX runs_caller ON runs (caller_id, kind) WHERE status = 'running';
