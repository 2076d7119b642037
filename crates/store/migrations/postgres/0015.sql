-- Images, each once.
CREATE TABLE media (
  hash TEXT PRIMARY KEY CHECK (length(hash) = 64),
  media_type TEXT NOT NULL,
  bytes BYTEA NOT NULL,
  created_at BIGINT NOT NULL
);
-- Which messages show them. An image that no message shows is removed.
CREATE TABLE media_uses (
  message_id TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  hash TEXT NOT NULL REFERENCES media (hash),
  PRIMARY KEY (message_id, hash)
);
CREATE INDEX media_uses_hash ON media_uses (hash);
