-- Somebody asked for a restart that is not done: a server that dies in it leaves it to the next.
ALTER TABLE instances ADD COLUMN restarting INTEGER NOT NULL DEFAULT 0 CHECK (restarting IN (0, 1));
