-- A message between instances belongs to the same trace in both. Of one whose sender said none, nobody knows it.
ALTER TABLE messages ADD COLUMN trace_id TEXT;
