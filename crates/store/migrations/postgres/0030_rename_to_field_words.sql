-- One word for each thing, in every layer: what was called an errand, a letter, a round or a purse has the name that code, API and
-- documents use.
ALTER TABLE errands RENAME TO cron_jobs;
ALTER TABLE cron_jobs RENAME COLUMN errand_id TO job_id;
ALTER TABLE cron_jobs RENAME COLUMN made_by TO created_by;
ALTER TABLE cron_jobs RENAME COLUMN asked_by TO requested_by;
ALTER TABLE schedules RENAME TO cron_schedules;
ALTER TABLE letters RENAME TO team_messages;
ALTER TABLE team_messages RENAME COLUMN letter_id TO message_id;
ALTER TABLE holders RENAME TO account_leases;
ALTER TABLE ingress RENAME TO inbound_dedup;
ALTER TABLE rounds RENAME TO broadcasts;
ALTER TABLE broadcasts RENAME COLUMN round_id TO broadcast_id;
ALTER TABLE broadcasts RENAME COLUMN in_turn TO is_sequential;
ALTER TABLE seats RENAME TO broadcast_targets;
ALTER TABLE broadcast_targets RENAME COLUMN round_id TO broadcast_id;
ALTER TABLE broadcast_targets RENAME COLUMN seat TO position;
ALTER TABLE media_rounds RENAME TO broadcast_media;
ALTER TABLE broadcast_media RENAME COLUMN round_id TO broadcast_id;
ALTER TABLE media_uses RENAME TO message_media;
ALTER TABLE setbacks RENAME TO member_failures;
ALTER TABLE spending RENAME TO budget_usage;
ALTER TABLE budget_usage RENAME COLUMN purse TO scope;
ALTER TABLE reservations RENAME TO budget_reservations;
ALTER TABLE budget_reservations RENAME COLUMN purse TO scope;
ALTER TABLE told RENAME TO relayed_task_events;
ALTER TABLE sessions RENAME COLUMN lent_json TO inherited_tools_json;
ALTER TABLE sessions RENAME COLUMN next_ticket TO next_position;
ALTER TABLE sessions RENAME COLUMN compacted_ticket TO compacted_position;
ALTER TABLE messages RENAME COLUMN ticket TO position;
ALTER TABLE jobs RENAME COLUMN steers TO is_steering;
ALTER TABLE backlog RENAME COLUMN steers TO steer_count;
ALTER TABLE backlog RENAME COLUMN taken_by TO drained_by_turn;
ALTER TABLE runs RENAME COLUMN put_away_at TO cleaned_up_at;
ALTER TABLE runs RENAME COLUMN audience_json TO mirror_to_json;
ALTER TABLE runs RENAME COLUMN is_stopped TO is_stopped_with_owner;
ALTER TABLE members RENAME COLUMN ended_badly TO last_turn_failed;
ALTER TABLE pairings RENAME COLUMN told_at TO notified_at;
ALTER TABLE approvals RENAME COLUMN asked_by TO requested_by;
ALTER TABLE traces RENAME COLUMN automatic_turns TO autonomous_turns;
-- Nothing has read it since announces wait as messages.
ALTER TABLE sessions DROP COLUMN untold_from;
ALTER TABLE tasks RENAME COLUMN fence TO fencing_token;
-- As before, with the new name of the column.
CREATE OR REPLACE FUNCTION claim_tasks(team TEXT, are_able BIGINT, claims TEXT) RETURNS SETOF tasks
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
    UPDATE tasks SET state = 'claimed', owner = h.one ->> 'name', owner_key = h.one ->> 'session', fencing_token = tasks.fencing_token + 1,
      lease_until = clock + (h.one ->> 'lease_ms')::BIGINT, claimed_at = (h.one ->> 'at')::BIGINT, claim_key = h.one ->> 'key'
    FROM handed h WHERE tasks.team_id = h.team_id AND tasks.task_no = h.task_no RETURNING tasks.*),
  noted AS (
    INSERT INTO task_events (team_id, task_no, kind, actor, data_json, created_at)
    SELECT t.team_id, t.task_no, 'claimed', t.owner,
      jsonb_build_object('fencing_token', t.fencing_token, 'session_key', t.owner_key)::TEXT, t.claimed_at
    FROM taken t ORDER BY t.task_no)
  SELECT * FROM taken;
END $$;
ALTER INDEX messages_ticket RENAME TO messages_position;
ALTER INDEX backlog_taken RENAME TO backlog_drained;
ALTER INDEX ingress_age RENAME TO inbound_dedup_age;
ALTER INDEX reservations_turn RENAME TO budget_reservations_turn;
ALTER INDEX rounds_open RENAME TO broadcasts_open;
ALTER INDEX rounds_age RENAME TO broadcasts_age;
ALTER INDEX runs_put_away RENAME TO runs_cleanup;
ALTER INDEX letters_open RENAME TO team_messages_open;
ALTER INDEX letters_turn RENAME TO team_messages_turn;
ALTER INDEX letters_team RENAME TO team_messages_team;
ALTER INDEX letters_uncopied RENAME TO team_messages_uncopied;
ALTER INDEX setbacks_due RENAME TO member_failures_due;
ALTER INDEX media_uses_hash RENAME TO message_media_hash;
ALTER INDEX media_rounds_hash RENAME TO broadcast_media_hash;
UPDATE events SET kind = CASE kind
    WHEN 'message.waiting' THEN 'message.queued'
    WHEN 'pairing.asked' THEN 'pairing.requested'
    WHEN 'round.begun' THEN 'broadcast.started'
    WHEN 'gate.kept' THEN 'delivery.suppressed'
    WHEN 'approval.asked' THEN 'approval.requested'
    WHEN 'announce.told' THEN 'announce.delivered'
    WHEN 'mail.sent' THEN 'team_message.sent'
    WHEN 'mail.undeliverable' THEN 'team_message.undeliverable'
    WHEN 'schedule.missed' THEN 'cron.missed'
    WHEN 'schedule.failed' THEN 'cron.failed'
    ELSE kind END
WHERE kind IN ('message.waiting', 'pairing.asked', 'round.begun', 'gate.kept', 'approval.asked', 'announce.told', 'mail.sent', 'mail.undeliverable', 'schedule.missed', 'schedule.failed');
