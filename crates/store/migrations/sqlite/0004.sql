-- What a call cost, in billionths of a dollar; null where usage or price is not known.
ALTER TABLE usage ADD COLUMN cost_nanos INTEGER;
CREATE INDEX usage_turn ON usage (turn_id);

-- What was taken out of a purse on one day. There are rows only where a budget is set.
CREATE TABLE spending (
  day INTEGER NOT NULL,
  purse TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  unknown_calls INTEGER NOT NULL,
  warned INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (day, purse)
) STRICT, WITHOUT ROWID;

-- A call under way: it counts as long as the claim it was made under holds.
CREATE TABLE reservations (
  purse TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  node TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  tokens INTEGER NOT NULL,
  nanos INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (purse, turn_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_turn ON reservations (turn_id);
