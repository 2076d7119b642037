-- Which open rounds show an image: it has to be there until each of their agents has its copy of the message.
CREATE TABLE media_rounds (
  round_id TEXT COLLATE "C" NOT NULL REFERENCES rounds (round_id) ON DELETE CASCADE,
  hash TEXT NOT NULL REFERENCES media (hash),
  PRIMARY KEY (round_id, hash)
);
CREATE INDEX media_rounds_hash ON media_rounds (hash);
