-- Which node has an account of a platform, and until when it may keep silent.
CREATE TABLE holders (
  channel TEXT COLLATE "C" NOT NULL,
  account TEXT COLLATE "C" NOT NULL,
  node TEXT COLLATE "C" NOT NULL,
  lease_until BIGINT NOT NULL,
  PRIMARY KEY (channel, account)
);
-- The account a part leaves by: the node that has it sends it.
ALTER TABLE outbox ADD COLUMN account TEXT NOT NULL DEFAULT '';
UPDATE outbox SET account = COALESCE(address_json::json ->> 'account', '');
