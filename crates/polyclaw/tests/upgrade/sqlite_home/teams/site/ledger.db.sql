PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE ledgers (
  team_id TEXT PRIMARY KEY,
  next_task INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO ledgers VALUES('01m7v03enx0sh53n4sd1cmd5t1',7);
CREATE TABLE tasks (
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  subject TEXT NOT NULL,
  description TEXT NOT NULL,
  active_form TEXT,
  metadata_json TEXT,
  assignee TEXT,
  capability TEXT,
  verify_json TEXT,
  state TEXT NOT NULL CHECK (state IN ('pending', 'claimed', 'in_progress', 'completed', 'failed')),
  owner TEXT,
  owner_key TEXT,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER,
  claim_key TEXT,
  ended_by TEXT,
  summary TEXT,
  note TEXT,
  artifacts_json TEXT,
  create_key TEXT,
  created_by TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  claimed_at INTEGER,
  ended_at INTEGER,
  PRIMARY KEY (team_id, task_no),
  CHECK ((state IN ('claimed', 'in_progress')) = (owner IS NOT NULL)),
  CHECK ((owner IS NULL) = (lease_until IS NULL))
) STRICT, WITHOUT ROWID;
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',1,'Draw the header','In blue',NULL,'{"size":3}',NULL,NULL,NULL,'completed',NULL,NULL,1,NULL,NULL,'ann','Drawn',NULL,'[{"kind":"file","path":"header.svg"}]','01m7v03eqms7hzhpq8xdnq9df8','operator',1795128670966,1795128671004,1795128671012);
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',2,'Put it on the page','','Putting it',NULL,'ann',NULL,'{"command":"test -f header.svg"}','claimed','ann','agent:ops:teammate:01m7v03eprwy0p4998x3yss5by',1,1795129271019,'01m7v03esae5cq58f0mdf1m74c',NULL,NULL,NULL,NULL,'01m7v03eqwa9gx8b6ba7k2h9nr','operator',1795128670973,1795128671019,NULL);
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',3,'Publish','',NULL,NULL,NULL,'sql',NULL,'pending',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'01m7v03er4q63axkcmfqaed2jr','operator',1795128670981,NULL,NULL);
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',4,'Write the text','',NULL,NULL,NULL,NULL,NULL,'pending',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,'01m7v03ercp8hs0skzrpx9gr8z','operator',1795128670988,NULL,NULL);
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',5,'Impossible','',NULL,NULL,NULL,NULL,NULL,'failed',NULL,NULL,1,NULL,NULL,'carl','No way',NULL,'[]','01m7v03erfs6ba2vt26zc6z0sn','operator',1795128670991,1795128671021,1795128671024);
INSERT INTO tasks VALUES('01m7v03enx0sh53n4sd1cmd5t1',6,'Under way','',NULL,NULL,NULL,NULL,NULL,'in_progress','carl','agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1',1,1795129271027,'01m7v03eshf1yc4v0jyhgzx517',NULL,NULL,NULL,NULL,'01m7v03erpdw2hr4sjmrkwap1d','operator',1795128670999,1795128671025,NULL);
CREATE TABLE task_needs (
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  needs INTEGER NOT NULL,
  PRIMARY KEY (team_id, task_no, needs),
  FOREIGN KEY (team_id, task_no) REFERENCES tasks (team_id, task_no) ON DELETE CASCADE,
  FOREIGN KEY (team_id, needs) REFERENCES tasks (team_id, task_no)
) STRICT, WITHOUT ROWID;
INSERT INTO task_needs VALUES('01m7v03enx0sh53n4sd1cmd5t1',2,1);
INSERT INTO task_needs VALUES('01m7v03enx0sh53n4sd1cmd5t1',3,2);
CREATE TABLE task_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  team_id TEXT NOT NULL,
  task_no INTEGER NOT NULL,
  kind TEXT NOT NULL,
  actor TEXT NOT NULL,
  data_json TEXT NOT NULL,
  is_relayed INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO task_events VALUES(1,'01m7v03enx0sh53n4sd1cmd5t1',1,'created','operator','{}',1,1795128670966);
INSERT INTO task_events VALUES(2,'01m7v03enx0sh53n4sd1cmd5t1',2,'created','operator','{}',1,1795128670973);
INSERT INTO task_events VALUES(3,'01m7v03enx0sh53n4sd1cmd5t1',3,'created','operator','{}',1,1795128670981);
INSERT INTO task_events VALUES(4,'01m7v03enx0sh53n4sd1cmd5t1',4,'created','operator','{}',1,1795128670988);
INSERT INTO task_events VALUES(5,'01m7v03enx0sh53n4sd1cmd5t1',5,'created','operator','{}',1,1795128670991);
INSERT INTO task_events VALUES(6,'01m7v03enx0sh53n4sd1cmd5t1',6,'created','operator','{}',1,1795128670999);
INSERT INTO task_events VALUES(7,'01m7v03enx0sh53n4sd1cmd5t1',1,'claimed','ann','{"fence":1,"session_key":"agent:ops:teammate:01m7v03eprwy0p4998x3yss5by"}',1,1795128671004);
INSERT INTO task_events VALUES(8,'01m7v03enx0sh53n4sd1cmd5t1',1,'completed','ann','{"unblocked":[2]}',1,1795128671012);
INSERT INTO task_events VALUES(9,'01m7v03enx0sh53n4sd1cmd5t1',2,'claimed','ann','{"fence":1,"session_key":"agent:ops:teammate:01m7v03eprwy0p4998x3yss5by"}',1,1795128671019);
INSERT INTO task_events VALUES(10,'01m7v03enx0sh53n4sd1cmd5t1',5,'claimed','carl','{"fence":1,"session_key":"agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1"}',1,1795128671021);
INSERT INTO task_events VALUES(11,'01m7v03enx0sh53n4sd1cmd5t1',5,'failed','carl','{"unblocked":[]}',1,1795128671024);
INSERT INTO task_events VALUES(12,'01m7v03enx0sh53n4sd1cmd5t1',6,'claimed','carl','{"fence":1,"session_key":"agent:made:teammate:01m7v03eqc35gepzvb7t0ksfd1"}',1,1795128671025);
INSERT INTO task_events VALUES(13,'01m7v03enx0sh53n4sd1cmd5t1',6,'started','carl','{}',1,1795128671027);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('task_events',13);
CREATE INDEX tasks_owned ON tasks (team_id, lease_until) WHERE owner IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (team_id, ended_at) WHERE ended_at IS NOT NULL;
CREATE UNIQUE INDEX tasks_created_once ON tasks (team_id, create_key) WHERE create_key IS NOT NULL;
CREATE INDEX tasks_claimed_once ON tasks (team_id, claim_key) WHERE claim_key IS NOT NULL;
CREATE INDEX task_needs_of ON task_needs (team_id, needs);
CREATE INDEX task_events_of ON task_events (team_id, seq);
CREATE INDEX task_events_due ON task_events (team_id, seq) WHERE is_relayed = 0;
CREATE INDEX tasks_by_state ON tasks (team_id, state, task_no, owner, assignee, capability);
COMMIT;
PRAGMA user_version=2;
