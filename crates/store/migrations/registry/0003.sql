-- What was brought in from other programs. A run that was begun and not done is one whose maker died: it is undone.
CREATE TABLE imports (
  id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  -- Of what was read: the same again changes nothing.
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('begun', 'done', 'undone')),
  instance_id TEXT,
  report TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'done') = (report IS NOT NULL AND instance_id IS NOT NULL))
) STRICT;
CREATE INDEX imports_of ON imports (source, created_at);
