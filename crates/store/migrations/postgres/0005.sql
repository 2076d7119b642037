-- Up to when a schedule has been looked after: each due time is run, or left out, once.
CREATE TABLE schedules (
  schedule_id TEXT COLLATE "C" PRIMARY KEY,
  rule TEXT NOT NULL,
  last_due BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
