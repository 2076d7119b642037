-- How often the process died while it worked on a turn, so that a turn that kills its process is told apart from a
-- machine that dies often.

-- Deaths in a row before which the turn stored no step.
ALTER TABLE jobs ADD COLUMN deaths_without_step BIGINT NOT NULL DEFAULT 0;
-- Those of them for which no other turn can be blamed.
ALTER TABLE jobs ADD COLUMN blamed_deaths BIGINT NOT NULL DEFAULT 0;
-- Steps the turn had stored when its process died last.
ALTER TABLE jobs ADD COLUMN steps_at_death BIGINT NOT NULL DEFAULT 0;
-- The process whose death is counted already.
ALTER TABLE jobs ADD COLUMN cut_off_node TEXT;
CREATE INDEX jobs_cut_off ON jobs (cut_off_node) WHERE cut_off_node IS NOT NULL;
