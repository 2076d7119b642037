-- Tasks that not everybody may take. Where there is none for those who ask, they are handed out to them together.
CREATE INDEX tasks_bound ON tasks (team_id, state, assignee, capability)
  WHERE state = 'pending' AND (assignee IS NOT NULL OR capability IS NOT NULL);
