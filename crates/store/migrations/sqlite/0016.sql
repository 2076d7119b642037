-- The first announce that only turns which failed were shown: the next turn is shown it again.
ALTER TABLE sessions ADD COLUMN untold_from INTEGER;
