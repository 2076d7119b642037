-- Browsers that are logged in. Of the cookie and of the key the page keeps, only hashes are stored.
CREATE TABLE logins (
  id TEXT PRIMARY KEY,
  cookie_hash TEXT NOT NULL UNIQUE,
  key_hash TEXT NOT NULL,
  -- Whose rights it has: a token that was given out, or the server's own token, by its hash.
  token_id TEXT,
  owner_hash TEXT,
  client TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  used_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CHECK ((token_id IS NULL) <> (owner_hash IS NULL))
);
