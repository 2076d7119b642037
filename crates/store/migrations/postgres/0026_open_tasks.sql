-- Open tasks are few and listed all the time; those that have ended are many. In this order they need no sorting.
CREATE INDEX tasks_open ON tasks (team_id, task_no) WHERE state IN ('pending', 'claimed', 'in_progress');
