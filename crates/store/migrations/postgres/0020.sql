-- Hands the oldest free tasks of a team to those who ask, [{"key", "name", "session", "at", "lease_ms"}] in their order, and
-- notes it. To nobody where one of them was answered before, or where there is a task that some may take and others may not:
-- then each has to look for itself.
--
-- Claimers of several nodes come one after the other, from before they look until they are done: one who looked while others
-- took would step over each task that was taken since, and be overtaken again meanwhile.
--
-- Planned once, for any number of them, and each task that is found is taken by its key, whatever the planner thinks of a
-- table it knows little about.
CREATE FUNCTION claim_tasks(team TEXT, are_able BIGINT, claims TEXT) RETURNS SETOF tasks
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off AS $$
DECLARE
  asked CONSTANT JSONB := claims::JSONB;
  many CONSTANT INT := jsonb_array_length(asked);
  clock BIGINT;
BEGIN
  -- Each is looked for by itself: a list of them would be compared with every task there is.
  PERFORM 1 FROM jsonb_array_elements(asked) AS a (one)
  WHERE (SELECT 1 FROM tasks b WHERE b.team_id = team AND b.state = 'pending'
          AND (b.assignee IS NOT NULL OR b.capability IS NOT NULL) AND b.assignee = a.one ->> 'name' LIMIT 1) IS NOT NULL
    OR (are_able = 1 AND (SELECT 1 FROM tasks b WHERE b.team_id = team AND b.state = 'pending'
          AND (b.assignee IS NOT NULL OR b.capability IS NOT NULL) AND b.assignee IS NULL LIMIT 1) IS NOT NULL)
  LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('claims of ' || team, 0));
  -- One whose answer was lost may have waited for its turn as well.
  PERFORM 1 FROM jsonb_array_elements(asked) AS a (one)
  WHERE (SELECT 1 FROM tasks b WHERE b.team_id = team AND b.claim_key = a.one ->> 'key' LIMIT 1) IS NOT NULL
  LIMIT 1;
  IF FOUND THEN
    RETURN;
  END IF;
  -- Leases are measured by this clock, from when they are given.
  clock := EXTRACT(EPOCH FROM clock_timestamp()) * 1000;
  RETURN QUERY
  WITH free AS MATERIALIZED (
    SELECT t.team_id, t.task_no FROM tasks t
    WHERE t.team_id = team AND t.state = 'pending' AND t.owner IS NULL AND t.assignee IS NULL AND t.capability IS NULL
      AND NOT EXISTS (SELECT 1 FROM task_needs n JOIN tasks d ON d.team_id = n.team_id AND d.task_no = n.needs
        WHERE n.team_id = t.team_id AND n.task_no = t.task_no AND d.state <> 'completed')
    ORDER BY t.task_no LIMIT many FOR UPDATE SKIP LOCKED),
  handed AS (
    SELECT f.team_id, f.task_no, asked -> (row_number() OVER (ORDER BY f.task_no) - 1)::INT AS one FROM free f),
  taken AS (
    UPDATE tasks SET state = 'claimed', owner = h.one ->> 'name', owner_key = h.one ->> 'session', fence = tasks.fence + 1,
      lease_until = clock + (h.one ->> 'lease_ms')::BIGINT, claimed_at = (h.one ->> 'at')::BIGINT, claim_key = h.one ->> 'key'
    FROM handed h WHERE tasks.team_id = h.team_id AND tasks.task_no = h.task_no RETURNING tasks.*),
  noted AS (
    INSERT INTO task_events (team_id, task_no, kind, actor, data_json, created_at)
    SELECT t.team_id, t.task_no, 'claimed', t.owner,
      jsonb_build_object('fence', t.fence, 'session_key', t.owner_key)::TEXT, t.claimed_at
    FROM taken t ORDER BY t.task_no)
  SELECT * FROM taken;
END $$;
