-- Strangers who asked to be let in, and those who were. A place in the queue of an account is a slot: there are three.
CREATE TABLE pairings (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  sender TEXT NOT NULL,
  sender_name TEXT,
  code TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved')),
  slot INTEGER CHECK (slot BETWEEN 1 AND 3),
  address_json TEXT NOT NULL,
  told_at INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (channel, account, sender),
  CHECK ((state = 'pending') = (slot IS NOT NULL))
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX pairings_slot ON pairings (channel, account, slot) WHERE state = 'pending';
CREATE UNIQUE INDEX pairings_code ON pairings (code) WHERE state = 'pending';

-- One message that several agents answer, and each of them with what it became.
CREATE TABLE rounds (
  round_id TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  parts_json TEXT,
  address_json TEXT NOT NULL,
  meta_json TEXT,
  priority INTEGER NOT NULL,
  in_turn INTEGER NOT NULL,
  see_previous INTEGER NOT NULL,
  is_open INTEGER NOT NULL,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX rounds_open ON rounds (round_id) WHERE is_open = 1;
CREATE INDEX rounds_age ON rounds (created_at);
CREATE TABLE seats (
  round_id TEXT NOT NULL REFERENCES rounds (round_id) ON DELETE CASCADE,
  seat INTEGER NOT NULL,
  agent_id TEXT NOT NULL,
  session_key TEXT NOT NULL,
  turn_id TEXT,
  PRIMARY KEY (round_id, seat)
) STRICT, WITHOUT ROWID;

-- Where a conversation goes on instead of in this session, and after how long it begins anew by itself.
ALTER TABLE sessions ADD COLUMN focus_session_key TEXT;
ALTER TABLE sessions ADD COLUMN ttl_ms INTEGER;

-- What one session has used.
CREATE INDEX usage_session ON usage (session_key);
