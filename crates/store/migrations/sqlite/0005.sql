-- Up to when a schedule has been looked after: each due time is run, or left out, once.
CREATE TABLE schedules (
  schedule_id TEXT PRIMARY KEY,
  rule TEXT NOT NULL,
  last_due INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
