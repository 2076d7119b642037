-- The list of sessions, newest first.
CREATE INDEX sessions_recent ON sessions (updated_at, session_key);
