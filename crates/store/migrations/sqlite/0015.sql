-- Images, each once.
CREATE TABLE media (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
  media_type TEXT NOT NULL,
  bytes BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
-- Which messages show them. An image that no message shows is removed.
CREATE TABLE media_uses (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  hash TEXT NOT NULL REFERENCES media (hash),
  PRIMARY KEY (message_id, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX media_uses_hash ON media_uses (hash);
