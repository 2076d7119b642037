-- Up to when a schedule has been looked after: each due time is run, or left out, once.
CREATE TABLE schedules (
  schedule_id TEXT PRIMARY KEY,
  rule TEXT NOT NULL,
  last_due INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Answers that a platform shows while they grow. Without a platform's id nobody knows whether one is there.
CREATE TABLE drafts (
  turn_id TEXT NOT NULL,
  address_json TEXT NOT NULL,
  platform_id TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (turn_id, address_json)
) STRICT, WITHOUT ROWID;
