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
-- SQLite renames no index.
DROP INDEX messages_ticket;
CREATE UNIQUE INDEX messages_position ON messages (session_key, position);
DROP INDEX backlog_taken;
CREATE INDEX backlog_drained ON backlog (drained_by_turn) WHERE drained_by_turn IS NOT NULL;
DROP INDEX ingress_age;
CREATE INDEX inbound_dedup_age ON inbound_dedup (created_at);
DROP INDEX reservations_turn;
CREATE INDEX budget_reservations_turn ON budget_reservations (turn_id);
DROP INDEX rounds_open;
CREATE INDEX broadcasts_open ON broadcasts (broadcast_id) WHERE is_open = 1;
DROP INDEX rounds_age;
CREATE INDEX broadcasts_age ON broadcasts (created_at);
DROP INDEX runs_put_away;
CREATE INDEX runs_cleanup ON runs (cleaned_up_at) WHERE cleaned_up_at IS NOT NULL;
DROP INDEX letters_open;
CREATE INDEX team_messages_open ON team_messages (team_id, recipient, seq) WHERE state IN ('queued', 'in_prompt');
DROP INDEX letters_turn;
CREATE INDEX team_messages_turn ON team_messages (turn_id) WHERE state = 'in_prompt';
DROP INDEX letters_team;
CREATE INDEX team_messages_team ON team_messages (team_id, seq);
DROP INDEX letters_uncopied;
CREATE INDEX team_messages_uncopied ON team_messages (team_id, seq) WHERE is_copied = 0;
DROP INDEX setbacks_due;
CREATE INDEX member_failures_due ON member_failures (retry_at) WHERE retry_at IS NOT NULL;
DROP INDEX media_uses_hash;
CREATE INDEX message_media_hash ON message_media (hash);
DROP INDEX media_rounds_hash;
CREATE INDEX broadcast_media_hash ON broadcast_media (hash);
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
