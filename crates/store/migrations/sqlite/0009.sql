-- Who is shown what a run says while it works.
ALTER TABLE runs ADD COLUMN audience_json TEXT;
-- Its owner was stopped, and it with it: nobody waits to be told.
ALTER TABLE runs ADD COLUMN is_stopped INTEGER NOT NULL DEFAULT 0;
