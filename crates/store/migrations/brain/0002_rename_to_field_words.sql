-- One word for each thing: the scopes that memories belong to, the full-text index, and the queue of those that have no vector yet.
-- SQLite renames what triggers name with the tables.
ALTER TABLE owners RENAME TO memory_scopes;
ALTER TABLE pending RENAME TO embedding_queue;
ALTER TABLE words RENAME TO memories_fts;
