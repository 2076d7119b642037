-- A claim looks for the oldest task that is free. Every column it looks at is in the index: for less the planner reads all
-- tasks of the team, those that have ended first.
DROP INDEX tasks_pending;
CREATE INDEX tasks_by_state ON tasks (team_id, state, task_no, owner, assignee, capability);
