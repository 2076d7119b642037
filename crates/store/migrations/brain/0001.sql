-- Whoever a memory belongs to: every sharing agent, one agent, or one session of one agent. A memory's owner is found
-- before anything else, so that words and vectors of others are never even compared.
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

-- An owner is what a key is unique in: it never changes.
CREATE TRIGGER memories_owned BEFORE UPDATE OF owner ON memories WHEN old.owner <> new.owner BEGIN
  SELECT RAISE(ABORT, 'a memory does not change its owner');
END;

CREATE INDEX memories_updated ON memories (updated_at, id);
CREATE INDEX memories_session ON memories (session_key);

CREATE TABLE vectors (
  memory INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE,
  owner INTEGER NOT NULL,
  model_id TEXT NOT NULL,
  dim INTEGER NOT NULL CHECK (dim > 0),
  -- One scale as a little-endian f32, then one signed byte per dimension.
  embedding BLOB NOT NULL CHECK (length(embedding) = dim + 4)
) STRICT;

-- Memories that wait for their vector: what a crash between the two leaves is found here.
CREATE TABLE pending (
  memory INTEGER PRIMARY KEY REFERENCES memories (seq) ON DELETE CASCADE
) STRICT;

CREATE VIRTUAL TABLE words USING fts5 (
  terms, owner, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

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
