-- For whom an agent made an errand: what is ruled about them holds for its runs.
ALTER TABLE errands ADD COLUMN asked_by TEXT;
