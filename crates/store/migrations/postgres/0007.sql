-- Strangers who asked to be let in, and those who were. A place in the queue of an account is a slot: there are three.
CREATE TABLE pairings (
  channel TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  sender TEXT COLLATE "C" NOT NULL,
  sender_name TEXT,
  code TEXT COLLATE "C" NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'approved')),
  slot BIGINT CHECK (slot BETWEEN 1 AND 3),
  address_json TEXT NOT NULL,
  told_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (channel, account, sender),
  CHECK ((state = 'pending') = (slot IS NOT NULL))
);
CREATE UNIQUE INDEX pairings_slot ON pairings (channel, account, slot) WHERE state = 'pending';
CREATE UNIQUE INDEX pairings_code ON pairings (code) WHERE state = 'pending';

-- One message that several agents answer, and each of them with what it became.
CREATE TABLE rounds (
  round_id TEXT COLLATE "C" PRIMARY KEY,
  text TEXT NOT NULL,
  parts_json TEXT,
  address_json TEXT NOT NULL,
  meta_json TEXT,
  priority BIGINT NOT NULL,
  in_turn BIGINT NOT NULL,
  see_previous BIGINT NOT NULL,
  is_open BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX rounds_open ON rounds (round_id) WHERE is_open = 1;
CREATE INDEX rounds_age ON rounds (created_at);
CREATE TABLE seats (
  round_id TEXT COLLATE "C" NOT NULL REFERENCES rounds (round_id) ON DELETE CASCADE,
  seat BIGINT NOT NULL,
  agent_id TEXT COLLATE "C" NOT NULL,
  session_key TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C",
  PRIMARY KEY (round_id, seat)
);

-- Where a conversation goes on instead of in this session, and after how long it begins anew by itself.
ALTER TABLE sessions ADD COLUMN focus_session_key TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN ttl_ms BIGINT;

-- What one session has used.
CREATE INDEX usage_session ON usage (session_key);
