-- Turns of somebody in a team that fail, one after the other. Gone with the first that ends well.
CREATE TABLE setbacks (
  team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (team_id) ON DELETE CASCADE,
  name TEXT COLLATE "C" NOT NULL,
  since BIGINT NOT NULL,
  code TEXT NOT NULL,
  failures BIGINT NOT NULL,
  retry_at BIGINT,
  PRIMARY KEY (team_id, name)
);
CREATE INDEX setbacks_due ON setbacks (retry_at) WHERE retry_at IS NOT NULL;
