PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE owners (
  id INTEGER PRIMARY KEY,
  scope TEXT NOT NULL CHECK (scope IN ('shared', 'agent', 'session')),
  agent_id TEXT NOT NULL CHECK (agent_id <> ''),
  -- Empty unless the scope is one session.
  session_key TEXT NOT NULL CHECK ((session_key <> '') = (scope = 'session')),
  -- How many memories it has.
  memories INTEGER NOT NULL DEFAULT 0,
  UNIQUE (scope, agent_id, session_key)
) STRICT;
INSERT INTO owners VALUES(1,'agent','main','',1);
INSERT INTO owners VALUES(2,'shared','main','',2);
INSERT INTO owners VALUES(3,'session','main','agent:main:main',1);
INSERT INTO owners VALUES(4,'agent','ops','',1);
CREATE TABLE memories (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  owner INTEGER NOT NULL REFERENCES owners (id),
  scope TEXT NOT NULL CHECK (scope IN ('shared', 'agent', 'session')),
  agent_id TEXT NOT NULL CHECK (agent_id <> ''),
  -- Where it was learnt, whatever its scope.
  session_key TEXT NOT NULL CHECK (session_key <> ''),
  key TEXT NOT NULL,
  kind TEXT NOT NULL,
  content TEXT NOT NULL,
  metadata TEXT NOT NULL,
  -- The content cut for the index, where that is not the content itself: scripts without spaces.
  terms TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (owner, key)
) STRICT;
INSERT INTO memories VALUES(1,'01m7v04tfx5erd1qv96qr0zwjd',1,'agent','main','agent:main:main','tea','preference','Ann likes green tea.','{"source":"test"}',NULL,1795128715773,1795128715773);
INSERT INTO memories VALUES(2,'01m7v04tgnxc2q8xhb8jw7pyca',2,'shared','main','agent:main:main','friday','fact','The office is closed on Friday.','{}',NULL,1795128715797,1795128715797);
INSERT INTO memories VALUES(3,'01m7v04tgppt7snaamcn9s9j59',3,'session','main','agent:main:main','boats','fact','This conversation is about boats.','{}',NULL,1795128715798,1795128715798);
INSERT INTO memories VALUES(4,'01m7v04tj5pcpjwdxtwh8xtqcb',2,'shared','main','agent:main:main','wanda','fact','The boat is called Wanda.','{}',NULL,1795128715845,1795128715845);
INSERT INTO memories VALUES(5,'01m7v05x11dn371jcq41wj0vws',4,'agent','ops','agent:ops:waiting','late','fact','Nobody has read this memory yet.','{}',NULL,1795128751137,1795128751137);
CREATE TABLE vectors (
  memory INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  owner INTEGER NOT NULL,
  model_id TEXT NOT NULL,
  dim INTEGER NOT NULL CHECK (dim > 0),
  -- One scale as a little-endian f32, then one signed byte per dimension.
  embedding BLOB NOT NULL CHECK (length(embedding) = dim + 4)
) STRICT;
INSERT INTO vectors VALUES(1,1,'lab/embed',8,X'1fc0a93b1d4429a87fe8084c');
INSERT INTO vectors VALUES(2,2,'lab/embed',8,X'e2dc9d3b7d43cb812f1d1d0c');
INSERT INTO vectors VALUES(3,3,'lab/embed',8,X'24ee963bb95e5281d6155af6');
INSERT INTO vectors VALUES(4,2,'lab/embed',8,X'6fd5833b504de194a6087081');
CREATE TABLE pending (
  memory INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE
) STRICT;
INSERT INTO pending VALUES(5);
PRAGMA writable_schema=ON;
INSERT INTO sqlite_schema(type,name,tbl_name,rootpage,sql)VALUES('table','words','words',0,'CREATE VIRTUAL TABLE words USING fts5 (
  terms, owner, content = '''', contentless_delete = 1, tokenize = ''porter unicode61 remove_diacritics 2''
)');
CREATE TABLE IF NOT EXISTS 'words_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO words_data VALUES(1,X'051f05');
INSERT INTO words_data VALUES(10,X'00000000ff000001010505000501010101010000010201010202000001030101030300000104010104040000010501010505000001');
INSERT INTO words_data VALUES(137438953473,X'000000310430616e6e0102030105677265656e01020501046c696b6501020401026f31010601010201037465610104020604080a0909');
INSERT INTO words_data VALUES(274877906945,X'000000410630636c6f73650202060106667269646169020402080102697302020501026f32020601010202046666696302020402016e0202070103746865020203040a0c07090906');
INSERT INTO words_data VALUES(412316860417,X'0000003c063061626f75740302060104626f6174030402070107636f6e766572730302040102697303020501026f3303060101020103746869030203040a0a0c0709');
INSERT INTO words_data VALUES(549755813889,X'000000390530626f6174040204010463616c6c0402060102697304020501026f3204060101020103746865040203010577616e646104040207040909070908');
INSERT INTO words_data VALUES(687194767361,X'0000004c0330686105020401046c61746505020201066d656d6f726905020701066e6f626f646905020301026f340506010102010472656164050205010374686905020601037965740502080407090b0b090908');
CREATE TABLE IF NOT EXISTS 'words_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
INSERT INTO words_idx VALUES(1,X'',2);
INSERT INTO words_idx VALUES(2,X'',2);
INSERT INTO words_idx VALUES(3,X'',2);
INSERT INTO words_idx VALUES(4,X'',2);
INSERT INTO words_idx VALUES(5,X'',2);
CREATE TABLE IF NOT EXISTS 'words_docsize'(id INTEGER PRIMARY KEY, sz BLOB, origin INTEGER);
INSERT INTO words_docsize VALUES(1,X'0501',1);
INSERT INTO words_docsize VALUES(2,X'0701',2);
INSERT INTO words_docsize VALUES(3,X'0601',3);
INSERT INTO words_docsize VALUES(4,X'0601',4);
INSERT INTO words_docsize VALUES(5,X'0701',5);
CREATE TABLE IF NOT EXISTS 'words_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO words_config VALUES('version',4);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('memories',5);
CREATE TRIGGER memories_owned BEFORE UPDATE OF owner ON memories WHEN old.owner <> new.owner BEGIN
  SELECT RAISE(ABORT, 'a memory does not change its owner');
END;
CREATE INDEX memories_updated ON memories (updated_at, id);
CREATE INDEX memories_session ON memories (session_key);
CREATE TRIGGER memories_inserted AFTER INSERT ON memories BEGIN
  INSERT INTO words (rowid, terms, owner)
    VALUES (new.seq, new.key || ' ' || COALESCE(new.terms, new.content), 'o' || new.owner);
  INSERT INTO pending (memory) VALUES (new.seq);
  UPDATE owners SET memories = memories + 1 WHERE id = new.owner;
END;
CREATE TRIGGER memories_changed AFTER UPDATE ON memories
WHEN old.content <> new.content OR old.key <> new.key BEGIN
  DELETE FROM words WHERE rowid = old.seq;
  INSERT INTO words (rowid, terms, owner)
    VALUES (new.seq, new.key || ' ' || COALESCE(new.terms, new.content), 'o' || new.owner);
  DELETE FROM vectors WHERE memory = old.seq;
  INSERT INTO pending (memory) SELECT new.seq WHERE NOT EXISTS (SELECT 1 FROM pending WHERE memory = new.seq);
END;
CREATE TRIGGER memories_deleted AFTER DELETE ON memories BEGIN
  DELETE FROM words WHERE rowid = old.seq;
  UPDATE owners SET memories = memories - 1 WHERE id = old.owner;
END;
CREATE TRIGGER vectors_inserted AFTER INSERT ON vectors BEGIN
  DELETE FROM pending WHERE memory = new.memory;
END;
PRAGMA writable_schema=OFF;
COMMIT;
PRAGMA user_version=1;
