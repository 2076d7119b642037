-- Which node has an account of a platform, and until when it may keep silent.
CREATE TABLE holders (
  channel TEXT NOT NULL,
  account TEXT NOT NULL,
  node TEXT NOT NULL,
  lease_until INTEGER NOT NULL,
  PRIMARY KEY (channel, account)
) STRICT, WITHOUT ROWID;
-- The account a part leaves by: the node that has it sends it.
ALTER TABLE outbox ADD COLUMN account TEXT NOT NULL DEFAULT '';
UPDATE outbox SET account = COALESCE(json_extract(address_json, '$.account'), '');
