-- What a question is bound to, and who answered it.
ALTER TABLE approvals ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN origin_json TEXT;
ALTER TABLE approvals ADD COLUMN question TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN decided_by TEXT;

-- An agent's own list of things to do, per session.
CREATE TABLE todos (
  session_key TEXT PRIMARY KEY REFERENCES sessions (session_key) ON DELETE CASCADE,
  items_json TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
