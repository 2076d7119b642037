CREATE TABLE instances (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL CHECK (name <> ''),
  -- Below the home; `.` is the home itself.
  folder TEXT NOT NULL UNIQUE,
  port INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
  wanted TEXT NOT NULL CHECK (wanted IN ('running', 'stopped')),
  restart TEXT NOT NULL CHECK (restart IN ('never', 'on-failure', 'always')),
  -- Why the breaker is open; null while it is closed.
  broken TEXT,
  -- The process as it was last seen, and when the kernel says it began.
  pid INTEGER,
  pid_started INTEGER,
  archived_at INTEGER,
  created_at INTEGER NOT NULL
) STRICT;

-- Archived ones give their name and port up.
CREATE UNIQUE INDEX instances_name ON instances (name) WHERE archived_at IS NULL;
CREATE UNIQUE INDEX instances_port ON instances (port) WHERE archived_at IS NULL;

CREATE TABLE crashes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  instance_id TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  why TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX crashes_of ON crashes (instance_id, created_at);

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  access TEXT NOT NULL CHECK (access IN ('read', 'operate', 'admin')),
  -- Of the token itself nothing is kept.
  hash TEXT NOT NULL UNIQUE,
  -- An instance's own: good for the calls of instances and no others.
  instance_id TEXT UNIQUE REFERENCES instances (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT;

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  who TEXT NOT NULL,
  action TEXT NOT NULL,
  target TEXT NOT NULL,
  before_hash TEXT,
  after_hash TEXT,
  detail TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;

-- Answers to calls with an idempotency key, for those who ask again. No status: still under way.
CREATE TABLE answers (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  status INTEGER,
  body TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT;
CREATE INDEX answers_age ON answers (created_at);
