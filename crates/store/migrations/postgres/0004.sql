-- What a call cost, in billionths of a dollar; null where usage or price is not known.
ALTER TABLE usage ADD COLUMN cost_nanos BIGINT;
CREATE INDEX usage_turn ON usage (turn_id);

-- What was taken out of a purse on one day. There are rows only where a budget is set.
CREATE TABLE spending (
  day BIGINT NOT NULL,
  purse TEXT COLLATE "C" NOT NULL,
  tokens BIGINT NOT NULL,
  nanos BIGINT NOT NULL,
  unknown_calls BIGINT NOT NULL,
  warned BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (day, purse)
);

-- A call under way: it counts as long as the claim it was made under holds.
CREATE TABLE reservations (
  purse TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  node TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  nanos BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (purse, turn_id)
);
CREATE INDEX reservations_turn ON reservations (turn_id);
