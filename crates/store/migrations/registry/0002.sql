-- Who may write which kind of message to whom. Nobody else may.
CREATE TABLE routing_rules (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  sender TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  recipient TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  -- Exact, or all below a prefix: `task.*`.
  type TEXT NOT NULL CHECK (type <> ''),
  max_retries INTEGER NOT NULL CHECK (max_retries > 0),
  ttl_secs INTEGER NOT NULL CHECK (ttl_secs > 0),
  auto_start INTEGER NOT NULL CHECK (auto_start IN (0, 1)),
  created_at INTEGER NOT NULL,
  UNIQUE (sender, recipient, type),
  CHECK (sender <> recipient)
) STRICT;
CREATE INDEX routing_rules_to ON routing_rules (recipient);

-- Messages between instances. They outlive the instances: who wrote and who was written to are not references.
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  type TEXT NOT NULL,
  -- JSON, without the secrets that were in it.
  payload TEXT NOT NULL,
  redacted INTEGER NOT NULL CHECK (redacted IN (0, 1)),
  correlation_id TEXT,
  idempotency_key TEXT,
  hop_count INTEGER NOT NULL CHECK (hop_count BETWEEN 0 AND 7),
  state TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'acknowledged', 'failed', 'dead_letter')),
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  auto_start INTEGER NOT NULL CHECK (auto_start IN (0, 1)),
  -- When it may be handed out; while it is delivered, when its lease ends.
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- The word by which whoever it was handed to is known, and the life of the process that asked.
  lease TEXT,
  life TEXT,
  -- Why it was not taken the last time.
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  CHECK ((state = 'delivered') <= (lease IS NOT NULL))
) STRICT;
CREATE INDEX messages_ready ON messages (recipient, due_at, seq) WHERE state IN ('queued', 'failed');
CREATE INDEX messages_waiting ON messages (expires_at) WHERE state IN ('queued', 'failed');
CREATE INDEX messages_waking ON messages (recipient) WHERE auto_start = 1 AND state IN ('queued', 'failed');
CREATE INDEX messages_leased ON messages (due_at) WHERE state = 'delivered';
CREATE INDEX messages_dead ON messages (seq) WHERE state = 'dead_letter';
CREATE INDEX messages_to ON messages (recipient, seq);
CREATE INDEX messages_from ON messages (sender, seq);
CREATE INDEX messages_together ON messages (correlation_id, seq) WHERE correlation_id IS NOT NULL;

-- Whose key stands for which message, for as long as that is remembered.
CREATE TABLE message_keys (
  sender TEXT NOT NULL,
  key TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (sender, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_keys_age ON message_keys (created_at);

CREATE TABLE message_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  message INTEGER NOT NULL REFERENCES messages (seq),
  kind TEXT NOT NULL CHECK (kind IN ('created', 'queued', 'delivery_attempted', 'delivered', 'acknowledged', 'failed',
    'dead_lettered', 'replayed')),
  -- The state it left the message in.
  state TEXT NOT NULL,
  detail TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX message_events_of ON message_events (message, seq);
CREATE TRIGGER message_events_are_not_changed BEFORE UPDATE ON message_events
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
CREATE TRIGGER message_events_are_not_cut BEFORE DELETE ON message_events
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
