PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO instances VALUES(1,'47a01207-4434-4562-b7e0-29b91c8244d7','main','.',18955,'stopped','on-failure',NULL,NULL,NULL,NULL,1795128699583);
INSERT INTO instances VALUES(2,'f2104f80-4a6a-477c-bc61-5663b7a70dde','alpha','cp/instances/f2104f80-4a6a-477c-bc61-5663b7a70dde',18961,'stopped','on-failure',NULL,NULL,NULL,NULL,1795128699637);
INSERT INTO instances VALUES(3,'a50e0fbd-f14a-47eb-a6f2-19009664f87d','beta','cp/instances/a50e0fbd-f14a-47eb-a6f2-19009664f87d',18962,'stopped','always',NULL,NULL,NULL,NULL,1795128699648);
INSERT INTO instances VALUES(4,'a33e0ae8-3179-4eac-b1da-55253ca74ed4','gamma','cp/instances/a33e0ae8-3179-4eac-b1da-55253ca74ed4',18963,'stopped','on-failure',NULL,NULL,NULL,1795128699669,1795128699661);
INSERT INTO instances VALUES(5,'7544dacb-9bfc-4a7d-823a-5f9802ea5b8a','imported','cp/instances/7544dacb-9bfc-4a7d-823a-5f9802ea5b8a',18964,'stopped','on-failure',NULL,NULL,NULL,NULL,1795128707768);
CREATE TABLE crashes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  instance_id TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  why TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO crashes VALUES(2,'f2104f80-4a6a-477c-bc61-5663b7a70dde','it ended with signal: 9 (SIGKILL)',1795128073628);
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
INSERT INTO tokens VALUES('01m7v04arqx0npa9st5wg7rb1c','dashboard','read','595cb86a656a37e7f25b71e9510793b2d0e9b3414a10d4cd87e6f9796e9c3ecf',NULL,1795128699671,NULL);
INSERT INTO tokens VALUES('01m7v04arstd33ktcdpm2m5fvz','gone','operate','6d6709ffe4cce2abf1a1148db794b8571fd7329f6d573e04928e89a855d30dcd',NULL,1795128699673,1795128699674);
INSERT INTO tokens VALUES('01m7v04fq5cfz69g4tr99ykfq4','instance','read','b974c9ce2c2fa13aec6575fe410f693179f9d165d690f9b710265bbed0f8e688','f2104f80-4a6a-477c-bc61-5663b7a70dde',1795128704741,NULL);
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
INSERT INTO audit VALUES(1,'operator','instance.adopt','47a01207-4434-4562-b7e0-29b91c8244d7',NULL,NULL,'main on port 18955',1795128699583,'0000000000000000000000000000000000000000000000000000000000000000','0d6aeae1c0f29948f4ec4339c1e29b6550c8c82fbffe9c917f0bd048e8914956');
INSERT INTO audit VALUES(2,'operator','instance.create','f2104f80-4a6a-477c-bc61-5663b7a70dde',NULL,NULL,'alpha on port 18961',1795128699643,'0d6aeae1c0f29948f4ec4339c1e29b6550c8c82fbffe9c917f0bd048e8914956','0b5442257d5dc2407ecccba273ca75e7fa68744f3da65ef22d81786e19e8974e');
INSERT INTO audit VALUES(3,'operator','instance.create','a50e0fbd-f14a-47eb-a6f2-19009664f87d',NULL,NULL,'beta on port 18962',1795128699659,'0b5442257d5dc2407ecccba273ca75e7fa68744f3da65ef22d81786e19e8974e','d0062333b35281fc419c5a3974571d3359b484d02e3497018fd74b28d9634d00');
INSERT INTO audit VALUES(4,'operator','instance.create','a33e0ae8-3179-4eac-b1da-55253ca74ed4',NULL,NULL,'gamma on port 18963',1795128699667,'d0062333b35281fc419c5a3974571d3359b484d02e3497018fd74b28d9634d00','368f3675f0a43004a3f5f43a22a43157152e188ebf061777bd58307770b2b383');
INSERT INTO audit VALUES(5,'operator','instance.archive','a33e0ae8-3179-4eac-b1da-55253ca74ed4',NULL,NULL,'gamma',1795128699669,'368f3675f0a43004a3f5f43a22a43157152e188ebf061777bd58307770b2b383','4f07c9224008750c58b9f43c44192c577484ad837e43626874f827225d1b6723');
INSERT INTO audit VALUES(6,'operator','instance.restart_policy','a50e0fbd-f14a-47eb-a6f2-19009664f87d',NULL,NULL,'beta: always',1795128699670,'4f07c9224008750c58b9f43c44192c577484ad837e43626874f827225d1b6723','44fbe9afb44d7ab254a59fda5921bd256eb2721ddf849a7ac53a41b489240824');
INSERT INTO audit VALUES(7,'operator','token.make','01m7v04arqx0npa9st5wg7rb1c',NULL,NULL,'read ''dashboard''',1795128699671,'44fbe9afb44d7ab254a59fda5921bd256eb2721ddf849a7ac53a41b489240824','3501a8b88a421128c33cf400c2420ac8fb5c9e354cd530c093f6c4c44790a062');
INSERT INTO audit VALUES(8,'operator','token.make','01m7v04arstd33ktcdpm2m5fvz',NULL,NULL,'operate ''gone''',1795128699673,'3501a8b88a421128c33cf400c2420ac8fb5c9e354cd530c093f6c4c44790a062','137c5f0c9366885b29210e77cba897551aaf69b40e0118c32794da555c6447d4');
INSERT INTO audit VALUES(9,'operator','token.revoke','01m7v04arstd33ktcdpm2m5fvz',NULL,NULL,'',1795128699674,'137c5f0c9366885b29210e77cba897551aaf69b40e0118c32794da555c6447d4','6bf95f1efd23f6462c916266a84df2f085b2fdfc3a50efe37107cde304020fc8');
INSERT INTO audit VALUES(10,'operator','rule.create','01m7v04arv5whbjbq61vcbz72x',NULL,NULL,'alpha → beta: task.*',1795128699675,'6bf95f1efd23f6462c916266a84df2f085b2fdfc3a50efe37107cde304020fc8','23b64bf1d87663da63d8d0d2206a24cfe865bd85afac9ac54fd69dfe74810cb1');
INSERT INTO audit VALUES(11,'operator','rule.create','01m7v04arw9xb1gsdcev3t3zvt',NULL,NULL,'beta → alpha: news',1795128699676,'23b64bf1d87663da63d8d0d2206a24cfe865bd85afac9ac54fd69dfe74810cb1','eb6f7008a61a9f7e59ab6cc7835538b8a7bc605e268620ae0eac0793c238d1a5');
INSERT INTO audit VALUES(12,'operator','message.send','01m7v04arzag7nbc3sjak858mh',NULL,NULL,'alpha → beta: task.handoff',1795128699679,'eb6f7008a61a9f7e59ab6cc7835538b8a7bc605e268620ae0eac0793c238d1a5','33b859a28d60a7cfe81b44cbc46c81a6160ad027e3f156c15fa8add33a26be99');
INSERT INTO audit VALUES(13,'operator','message.send','01m7v04as3ktgb2kqtdd701tpy',NULL,NULL,'beta → alpha: news',1795128699683,'33b859a28d60a7cfe81b44cbc46c81a6160ad027e3f156c15fa8add33a26be99','30f5d3c2b3c298e6da6329e43f54dfae979ed6150db1f725188a81d994359cbe');
INSERT INTO audit VALUES(14,'operator','message.send','01m7v04as64s65n70d8zvdc8th',NULL,NULL,'alpha → beta: task.handoff',1795128699686,'30f5d3c2b3c298e6da6329e43f54dfae979ed6150db1f725188a81d994359cbe','ad1c20b5d65a1a89ed016fd9b841513e7deed15e3efc39d7aca8f22c01e37980');
INSERT INTO audit VALUES(15,'operator','message.send','01m7v04as916cysyx36rgmj9jm',NULL,NULL,'alpha → beta: task.handoff',1795128699689,'ad1c20b5d65a1a89ed016fd9b841513e7deed15e3efc39d7aca8f22c01e37980','e0f1b0aaf75602996eff79c84cca6693e6ba9262e8463e5349042b1fa4a78b33');
INSERT INTO audit VALUES(16,'operator','message.send','01m7v04dq5h71gre5xkgnnn0x8',NULL,NULL,'alpha → beta: task.handoff',1795128702693,'e0f1b0aaf75602996eff79c84cca6693e6ba9262e8463e5349042b1fa4a78b33','c23a44a5df65078d55fa83333cfbc3513956f4e53ba1275589454cb7798a43ed');
INSERT INTO audit VALUES(17,'operator','instance.start','f2104f80-4a6a-477c-bc61-5663b7a70dde',NULL,NULL,'alpha',1795128702696,'c23a44a5df65078d55fa83333cfbc3513956f4e53ba1275589454cb7798a43ed','fdf9fe01e3f23c8a98686bfb1175925ea6fcfdd60efa20377f48e18d327ad02d');
INSERT INTO audit VALUES(18,'supervisor','instance.crash','f2104f80-4a6a-477c-bc61-5663b7a70dde',NULL,NULL,'alpha: it ended with signal: 9 (SIGKILL)',1795128704739,'fdf9fe01e3f23c8a98686bfb1175925ea6fcfdd60efa20377f48e18d327ad02d','68fe4b94384139a850f768cbd04f485ea3d7584e0c61410df73bc2337d9fd696');
INSERT INTO audit VALUES(19,'operator','instance.stop','f2104f80-4a6a-477c-bc61-5663b7a70dde',NULL,NULL,'alpha',1795128707740,'68fe4b94384139a850f768cbd04f485ea3d7584e0c61410df73bc2337d9fd696','a3160e8dc8946cce2fbc3603a91969102c9ac48ec6ad585ff8956474bd26fc84');
INSERT INTO audit VALUES(20,'operator','instance.import','7544dacb-9bfc-4a7d-823a-5f9802ea5b8a',NULL,NULL,'imported on port 18964',1795128708038,'a3160e8dc8946cce2fbc3603a91969102c9ac48ec6ad585ff8956474bd26fc84','6ce0424ff446cd8bc01056e84de7e84456ea77c1608a2157b2bcbbfb52273c9f');
CREATE TABLE answers (
  caller TEXT NOT NULL,
  key TEXT NOT NULL,
  request TEXT NOT NULL,
  status INTEGER,
  body TEXT,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (caller, key)
) STRICT;
INSERT INTO answers VALUES('operator','make-alpha','7fa261fb9f9a61500ebe7ee9aee6022cf6dfabeed46c549482601eea75e1e4cd',201,'{"id":"f2104f80-4a6a-477c-bc61-5663b7a70dde","name":"alpha","status":"stopped","port":18961,"pid":null,"wanted":"stopped","restart":"on-failure","error":null,"archived_at":null,"created_at":"2026-11-19T22:51:39.637Z"}',1795128699637);
CREATE TABLE routing_rules (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  sender TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  recipient TEXT NOT NULL REFERENCES instances (id) ON DELETE CASCADE,
  -- Exact, or all below a prefix: `task.*`.
  type TEXT NOT NULL CHECK (type <> ''),
  max_retries INTEGER NOT NULL CHECK (max_retries > 0),
  ttl_secs INTEGER NOT NULL CHECK (ttl_secs > 0),
  auto_start INTEGER NOT NULL CHECK (auto_start IN (0, 1)),
  created_at INTEGER NOT NULL,
  UNIQUE (sender, recipient, type),
  CHECK (sender <> recipient)
) STRICT;
INSERT INTO routing_rules VALUES(1,'01m7v04arv5whbjbq61vcbz72x','f2104f80-4a6a-477c-bc61-5663b7a70dde','a50e0fbd-f14a-47eb-a6f2-19009664f87d','task.*',3,3600,0,1795128699675);
INSERT INTO routing_rules VALUES(2,'01m7v04arw9xb1gsdcev3t3zvt','a50e0fbd-f14a-47eb-a6f2-19009664f87d','f2104f80-4a6a-477c-bc61-5663b7a70dde','news',1,1,0,1795128699676);
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  type TEXT NOT NULL,
  -- JSON, without the secrets that were in it.
  payload TEXT NOT NULL,
  redacted INTEGER NOT NULL CHECK (redacted IN (0, 1)),
  correlation_id TEXT,
  idempotency_key TEXT,
  hop_count INTEGER NOT NULL CHECK (hop_count BETWEEN 0 AND 7),
  state TEXT NOT NULL CHECK (state IN ('queued', 'delivered', 'acknowledged', 'failed', 'dead_letter')),
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL,
  ttl_ms INTEGER NOT NULL,
  auto_start INTEGER NOT NULL CHECK (auto_start IN (0, 1)),
  -- When it may be handed out; while it is delivered, when its lease ends.
  due_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  -- The word by which whoever it was handed to is known, and the life of the process that asked.
  lease TEXT,
  life TEXT,
  -- Why it was not taken the last time.
  error TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, trace_id TEXT,
  CHECK ((state = 'delivered') <= (lease IS NOT NULL))
) STRICT;
INSERT INTO messages VALUES(1,'01m7v04arzag7nbc3sjak858mh','f2104f80-4a6a-477c-bc61-5663b7a70dde','a50e0fbd-f14a-47eb-a6f2-19009664f87d','task.handoff','{"task":"first"}',0,'c1','m1',0,'acknowledged',1,3,3600000,0,1795128789684,1795132299679,'afc41aa664646cbd85187d1a7f74a09f','life-1',NULL,1795128699679,1795128699685,NULL);
INSERT INTO messages VALUES(2,'01m7v04as3ktgb2kqtdd701tpy','a50e0fbd-f14a-47eb-a6f2-19009664f87d','f2104f80-4a6a-477c-bc61-5663b7a70dde','news','{"text":"too late"}',0,NULL,NULL,0,'dead_letter',0,1,1000,0,1795128699683,1795128700683,NULL,NULL,'its time to live is over',1795128699683,1795128701593,NULL);
INSERT INTO messages VALUES(3,'01m7v04as64s65n70d8zvdc8th','f2104f80-4a6a-477c-bc61-5663b7a70dde','a50e0fbd-f14a-47eb-a6f2-19009664f87d','task.handoff','{"task":"second"}',0,'c1',NULL,0,'failed',1,3,3600000,0,1795128700575,1795132299686,NULL,NULL,'not now',1795128699686,1795128699688,NULL);
INSERT INTO messages VALUES(4,'01m7v04as916cysyx36rgmj9jm','f2104f80-4a6a-477c-bc61-5663b7a70dde','a50e0fbd-f14a-47eb-a6f2-19009664f87d','task.handoff','{"task":"third"}',0,NULL,NULL,0,'delivered',1,3,3600000,0,1795128792691,1795132299689,'92c243bebbc0d6d3909f0fa78c97fb9f','life-2',NULL,1795128699689,1795128702691,NULL);
INSERT INTO messages VALUES(5,'01m7v04dq5h71gre5xkgnnn0x8','f2104f80-4a6a-477c-bc61-5663b7a70dde','a50e0fbd-f14a-47eb-a6f2-19009664f87d','task.handoff','{"task":"fourth, waiting"}',0,NULL,NULL,0,'queued',0,3,3600000,0,1795128702693,1795132302693,NULL,NULL,NULL,1795128702693,1795128702693,NULL);
CREATE TABLE message_keys (
  sender TEXT NOT NULL,
  key TEXT NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (sender, key)
) STRICT, WITHOUT ROWID;
INSERT INTO message_keys VALUES('f2104f80-4a6a-477c-bc61-5663b7a70dde','m1','01m7v04arzag7nbc3sjak858mh',1795128699679);
CREATE TABLE message_events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  message INTEGER NOT NULL REFERENCES messages (seq),
  kind TEXT NOT NULL CHECK (kind IN ('created', 'queued', 'delivery_attempted', 'delivered', 'acknowledged', 'failed',
    'dead_lettered', 'replayed')),
  -- The state it left the message in.
  state TEXT NOT NULL,
  detail TEXT,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO message_events VALUES(1,1,'created','queued',NULL,1795128699679);
INSERT INTO message_events VALUES(2,1,'queued','queued',NULL,1795128699679);
INSERT INTO message_events VALUES(3,2,'created','queued',NULL,1795128699683);
INSERT INTO message_events VALUES(4,2,'queued','queued',NULL,1795128699683);
INSERT INTO message_events VALUES(5,1,'delivery_attempted','delivered','attempt 1 of 3',1795128699684);
INSERT INTO message_events VALUES(6,1,'delivered','delivered',NULL,1795128699684);
INSERT INTO message_events VALUES(7,1,'acknowledged','acknowledged',NULL,1795128699685);
INSERT INTO message_events VALUES(8,3,'created','queued',NULL,1795128699686);
INSERT INTO message_events VALUES(9,3,'queued','queued',NULL,1795128699686);
INSERT INTO message_events VALUES(10,3,'delivery_attempted','delivered','attempt 1 of 3',1795128699687);
INSERT INTO message_events VALUES(11,3,'delivered','delivered',NULL,1795128699687);
INSERT INTO message_events VALUES(12,3,'failed','failed','not now',1795128699688);
INSERT INTO message_events VALUES(13,4,'created','queued',NULL,1795128699689);
INSERT INTO message_events VALUES(14,4,'queued','queued',NULL,1795128699689);
INSERT INTO message_events VALUES(15,2,'dead_lettered','dead_letter','its time to live is over',1795128701593);
INSERT INTO message_events VALUES(16,4,'delivery_attempted','delivered','attempt 1 of 3',1795128702691);
INSERT INTO message_events VALUES(17,4,'delivered','delivered',NULL,1795128702691);
INSERT INTO message_events VALUES(18,5,'created','queued',NULL,1795128702693);
INSERT INTO message_events VALUES(19,5,'queued','queued',NULL,1795128702693);
CREATE TABLE imports (
  id TEXT PRIMARY KEY,
  source TEXT NOT NULL,
  -- Of what was read: the same again changes nothing.
  digest TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('begun', 'done', 'undone')),
  instance_id TEXT,
  report TEXT,
  created_at INTEGER NOT NULL,
  ended_at INTEGER,
  CHECK ((state = 'done') = (report IS NOT NULL AND instance_id IS NOT NULL))
) STRICT;
INSERT INTO imports VALUES('01m7v04jnrhd37btcp8ky9akt5','/home/user/.openclaw/openclaw.json','1d91b53281ee099cf2fd9247d4075b38a35bbafbe2ac0c198022eb266ca79505','done','7544dacb-9bfc-4a7d-823a-5f9802ea5b8a','{"name":"imported","agents":["main"],"providers":[],"channels":[],"bindings":0,"schedules":0,"workspaces":1,"sessions":0,"messages":0,"secrets":[],"notes":{"ignored":[],"changed":[],"left":[]}}',1795128707768,1795128708038);
INSERT INTO imports VALUES('01m7tzhabgr6vm5s2pj7de4a80','/home/user/.openclaw/other.json','4d1e','undone',NULL,NULL,1795128076000,1795128076500);
CREATE TABLE audit_head (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  entries INTEGER NOT NULL,
  hash TEXT NOT NULL
) STRICT;
INSERT INTO audit_head VALUES(1,20,'6ce0424ff446cd8bc01056e84de7e84456ea77c1608a2157b2bcbbfb52273c9f');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('instances',5);
INSERT INTO sqlite_sequence VALUES('routing_rules',2);
INSERT INTO sqlite_sequence VALUES('messages',5);
INSERT INTO sqlite_sequence VALUES('message_events',19);
INSERT INTO sqlite_sequence VALUES('crashes',2);
CREATE UNIQUE INDEX instances_name ON instances (name) WHERE archived_at IS NULL;
CREATE UNIQUE INDEX instances_port ON instances (port) WHERE archived_at IS NULL;
CREATE INDEX crashes_of ON crashes (instance_id, created_at);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_is_not_cut BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE INDEX answers_age ON answers (created_at);
CREATE INDEX routing_rules_to ON routing_rules (recipient);
CREATE INDEX messages_ready ON messages (recipient, due_at, seq) WHERE state IN ('queued', 'failed');
CREATE INDEX messages_waiting ON messages (expires_at) WHERE state IN ('queued', 'failed');
CREATE INDEX messages_waking ON messages (recipient) WHERE auto_start = 1 AND state IN ('queued', 'failed');
CREATE INDEX messages_leased ON messages (due_at) WHERE state = 'delivered';
CREATE INDEX messages_dead ON messages (seq) WHERE state = 'dead_letter';
CREATE INDEX messages_to ON messages (recipient, seq);
CREATE INDEX messages_from ON messages (sender, seq);
CREATE INDEX messages_together ON messages (correlation_id, seq) WHERE correlation_id IS NOT NULL;
CREATE INDEX message_keys_age ON message_keys (created_at);
CREATE INDEX message_events_of ON message_events (message, seq);
CREATE TRIGGER message_events_are_not_changed BEFORE UPDATE ON message_events
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
CREATE TRIGGER message_events_are_not_cut BEFORE DELETE ON message_events
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
CREATE INDEX imports_of ON imports (source, created_at);
CREATE TRIGGER audit_head_is_not_cut BEFORE DELETE ON audit_head
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_head_goes_on BEFORE UPDATE ON audit_head WHEN NEW.entries <> OLD.entries + 1
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_is_not_replaced BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER audit_head_is_not_replaced BEFORE INSERT ON audit_head
WHEN EXISTS (SELECT 1 FROM audit_head)
BEGIN SELECT RAISE(ABORT, 'the audit is only added to'); END;
CREATE TRIGGER message_events_are_not_replaced BEFORE INSERT ON message_events
WHEN EXISTS (SELECT 1 FROM message_events WHERE seq = NEW.seq)
BEGIN SELECT RAISE(ABORT, 'events of messages are only added to'); END;
COMMIT;
PRAGMA user_version=6;
