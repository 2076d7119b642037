-- Up to when a schedule has been looked after: each due time is run, or left out, once.
CREATE TABLE schedules (
  schedule_id TEXT COLLATE "C" PRIMARY KEY,
  rule TEXT NOT NULL,
  last_due BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);

-- Answers that a platform shows while they grow. Without a platform's id nobody knows whether one is there.
CREATE TABLE drafts (
  turn_id TEXT COLLATE "C" NOT NULL,
  address_json TEXT COLLATE "C" NOT NULL,
  platform_id TEXT,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (turn_id, address_json)
);
