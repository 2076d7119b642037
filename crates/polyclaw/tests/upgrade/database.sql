SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.tasks (
    team_id text NOT NULL COLLATE pg_catalog."C",
    task_no bigint NOT NULL,
    subject text NOT NULL,
    description text NOT NULL,
    active_form text,
    metadata_json text,
    assignee text COLLATE pg_catalog."C",
    capability text COLLATE pg_catalog."C",
    verify_json text,
    state text NOT NULL,
    owner text COLLATE pg_catalog."C",
    owner_key text COLLATE pg_catalog."C",
    fence bigint DEFAULT 0 NOT NULL,
    lease_until bigint,
    claim_key text COLLATE pg_catalog."C",
    ended_by text,
    summary text,
    note text,
    artifacts_json text,
    create_key text COLLATE pg_catalog."C",
    created_by text NOT NULL,
    created_at bigint NOT NULL,
    claimed_at bigint,
    ended_at bigint,
    CONSTRAINT tasks_check CHECK (((state = ANY (ARRAY['claimed'::text, 'in_progress'::text])) = (owner IS NOT NULL))),
    CONSTRAINT tasks_check1 CHECK (((owner IS NULL) = (lease_until IS NULL))),
    CONSTRAINT tasks_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'claimed'::text, 'in_progress'::text, 'completed'::text, 'failed'::text])))
);
CREATE FUNCTION public.claim_tasks(team text, are_able bigint, claims text) RETURNS SETOF public.tasks
    LANGUAGE plpgsql
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    AS $$
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
CREATE TABLE public.agent_specs (
    agent_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    config_json text NOT NULL,
    source text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT agent_specs_source_check CHECK ((source = ANY (ARRAY['config'::text, 'api'::text])))
);
CREATE TABLE public.approvals (
    id text NOT NULL COLLATE pg_catalog."C",
    session_key text NOT NULL COLLATE pg_catalog."C",
    turn_id text NOT NULL COLLATE pg_catalog."C",
    call_id text NOT NULL,
    tool text NOT NULL,
    arguments_json text NOT NULL,
    state text NOT NULL,
    reason text,
    expires_at bigint NOT NULL,
    created_at bigint NOT NULL,
    decided_at bigint,
    fingerprint text DEFAULT ''::text NOT NULL,
    origin_json text,
    question text DEFAULT ''::text NOT NULL,
    decided_by text,
    CONSTRAINT approvals_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text, 'denied'::text, 'expired'::text])))
);
CREATE TABLE public.backlog (
    seq bigint NOT NULL,
    session_key text NOT NULL COLLATE pg_catalog."C",
    message_id text NOT NULL,
    turn_id text NOT NULL COLLATE pg_catalog."C",
    steers bigint NOT NULL,
    taken_by text,
    created_at bigint NOT NULL
);
ALTER TABLE public.backlog ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.backlog_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.drafts (
    turn_id text NOT NULL COLLATE pg_catalog."C",
    address_json text NOT NULL COLLATE pg_catalog."C",
    platform_id text,
    created_at bigint NOT NULL
);
CREATE TABLE public.errands (
    errand_id text NOT NULL COLLATE pg_catalog."C",
    job_json text NOT NULL,
    made_by text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    asked_by text
);
CREATE TABLE public.events (
    seq bigint NOT NULL,
    kind text NOT NULL,
    session_key text COLLATE pg_catalog."C",
    turn_id text COLLATE pg_catalog."C",
    agent_id text COLLATE pg_catalog."C",
    trace_id text,
    data_json text NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE public.events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.holders (
    channel text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    node text NOT NULL COLLATE pg_catalog."C",
    lease_until bigint NOT NULL
);
CREATE TABLE public.ingress (
    channel text NOT NULL,
    account text NOT NULL,
    platform_id text NOT NULL,
    message_id text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.intents (
    turn_id text NOT NULL COLLATE pg_catalog."C",
    call_id text NOT NULL,
    name text NOT NULL,
    effect text NOT NULL,
    state text NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint,
    CONSTRAINT intents_state_check CHECK ((state = ANY (ARRAY['intent'::text, 'done'::text, 'unknown'::text])))
);
CREATE TABLE public.jobs (
    seq bigint NOT NULL,
    turn_id text NOT NULL COLLATE pg_catalog."C",
    session_key text NOT NULL COLLATE pg_catalog."C",
    agent_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    lane text NOT NULL,
    priority bigint NOT NULL,
    state text NOT NULL,
    held bigint NOT NULL,
    was_held bigint NOT NULL,
    inputs bigint NOT NULL,
    steers bigint NOT NULL,
    hop bigint NOT NULL,
    trace_id text NOT NULL,
    node text,
    lease_until bigint,
    attempt bigint DEFAULT 0 NOT NULL,
    cancel bigint DEFAULT 0 NOT NULL,
    model text,
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    reply_id text,
    continued_by text,
    error_code text,
    error text,
    queued_at bigint NOT NULL,
    started_at bigint,
    ended_at bigint,
    CONSTRAINT jobs_kind_check CHECK ((kind = ANY (ARRAY['turn'::text, 'compact'::text]))),
    CONSTRAINT jobs_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'running'::text, 'done'::text, 'failed'::text, 'cancelled'::text, 'steered'::text])))
);
ALTER TABLE public.jobs ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.jobs_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.ledgers (
    team_id text NOT NULL COLLATE pg_catalog."C",
    next_task bigint NOT NULL
);
CREATE TABLE public.letters (
    seq bigint NOT NULL,
    letter_id text NOT NULL COLLATE pg_catalog."C",
    team_id text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    recipient text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    content text NOT NULL,
    summary text NOT NULL,
    request_id text COLLATE pg_catalog."C",
    approve bigint,
    reason text,
    state text NOT NULL,
    turn_id text COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    read_at bigint,
    is_copied bigint DEFAULT 1 NOT NULL,
    shown_at bigint,
    CONSTRAINT letters_state_check CHECK ((state = ANY (ARRAY['queued'::text, 'in_prompt'::text, 'read'::text, 'undeliverable'::text])))
);
ALTER TABLE public.letters ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.letters_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.media (
    hash text NOT NULL,
    media_type text NOT NULL,
    bytes bytea NOT NULL,
    created_at bigint NOT NULL,
    CONSTRAINT media_hash_check CHECK ((length(hash) = 64))
);
CREATE TABLE public.media_rounds (
    round_id text NOT NULL COLLATE pg_catalog."C",
    hash text NOT NULL
);
CREATE TABLE public.media_uses (
    message_id text NOT NULL,
    hash text NOT NULL
);
CREATE TABLE public.members (
    team_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    session_key text NOT NULL COLLATE pg_catalog."C",
    agent_id text NOT NULL COLLATE pg_catalog."C",
    role text NOT NULL,
    capabilities_json text NOT NULL,
    color text NOT NULL,
    state text NOT NULL,
    joined_at bigint NOT NULL,
    last_active_at bigint NOT NULL,
    ended_turn text COLLATE pg_catalog."C",
    ended_badly bigint DEFAULT 0 NOT NULL,
    CONSTRAINT members_state_check CHECK ((state = ANY (ARRAY['active'::text, 'closed'::text, 'lost'::text])))
);
CREATE TABLE public.messages (
    id text NOT NULL COLLATE pg_catalog."C",
    session_key text NOT NULL COLLATE pg_catalog."C",
    session_id text NOT NULL,
    ticket bigint NOT NULL,
    role text NOT NULL,
    text text NOT NULL,
    parts_json text,
    origin text NOT NULL,
    channel text NOT NULL,
    deliver bigint NOT NULL,
    address_json text,
    meta_json text,
    idempotency_key text,
    turn_id text NOT NULL COLLATE pg_catalog."C",
    created_at bigint NOT NULL,
    CONSTRAINT messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'tool'::text])))
);
CREATE TABLE public.outbox (
    id text NOT NULL COLLATE pg_catalog."C",
    part_key text NOT NULL,
    session_key text NOT NULL COLLATE pg_catalog."C",
    turn_id text NOT NULL COLLATE pg_catalog."C",
    part bigint NOT NULL,
    channel text NOT NULL,
    address_json text NOT NULL,
    text text NOT NULL,
    state text NOT NULL,
    attempts bigint DEFAULT 0 NOT NULL,
    node text,
    lease_until bigint,
    next_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    platform_id text,
    error text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    account text DEFAULT ''::text NOT NULL,
    CONSTRAINT outbox_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'sending'::text, 'sent'::text, 'unknown'::text, 'failed'::text])))
);
CREATE TABLE public.pairings (
    channel text NOT NULL COLLATE pg_catalog."C",
    account text NOT NULL COLLATE pg_catalog."C",
    sender text NOT NULL COLLATE pg_catalog."C",
    sender_name text,
    code text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL,
    slot bigint,
    address_json text NOT NULL,
    told_at bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    CONSTRAINT pairings_check CHECK (((state = 'pending'::text) = (slot IS NOT NULL))),
    CONSTRAINT pairings_slot_check CHECK (((slot >= 1) AND (slot <= 3))),
    CONSTRAINT pairings_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'approved'::text])))
);
CREATE TABLE public.reservations (
    purse text NOT NULL COLLATE pg_catalog."C",
    turn_id text NOT NULL COLLATE pg_catalog."C",
    node text NOT NULL,
    attempt bigint NOT NULL,
    tokens bigint NOT NULL,
    nanos bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.rounds (
    round_id text NOT NULL COLLATE pg_catalog."C",
    text text NOT NULL,
    parts_json text,
    address_json text NOT NULL,
    meta_json text,
    priority bigint NOT NULL,
    in_turn bigint NOT NULL,
    see_previous bigint NOT NULL,
    is_open bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.runs (
    run_id text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    child_key text NOT NULL COLLATE pg_catalog."C",
    agent_id text NOT NULL COLLATE pg_catalog."C",
    owner_key text NOT NULL COLLATE pg_catalog."C",
    owner_turn text NOT NULL COLLATE pg_catalog."C",
    trace_id text NOT NULL COLLATE pg_catalog."C",
    hop bigint NOT NULL,
    task_json text NOT NULL,
    reply_to_json text NOT NULL,
    awaited_by text,
    deadline bigint,
    is_deleted_after bigint NOT NULL,
    status text NOT NULL,
    is_announced bigint DEFAULT 0 NOT NULL,
    result_json text,
    created_at bigint NOT NULL,
    ended_at bigint,
    caller_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    archive_after_ms bigint,
    put_away_at bigint,
    held_code text,
    audience_json text,
    is_stopped bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.schedules (
    schedule_id text NOT NULL COLLATE pg_catalog."C",
    rule text NOT NULL,
    last_due bigint NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.schema_version (
    version bigint NOT NULL
);
CREATE TABLE public.seats (
    round_id text NOT NULL COLLATE pg_catalog."C",
    seat bigint NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    session_key text NOT NULL COLLATE pg_catalog."C",
    turn_id text COLLATE pg_catalog."C"
);
CREATE TABLE public.sessions (
    session_key text NOT NULL COLLATE pg_catalog."C",
    session_id text NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    active_agent_id text NOT NULL,
    provider_override text,
    model_override text,
    deliver_policy bigint DEFAULT 1 NOT NULL,
    send_policy bigint DEFAULT 1 NOT NULL,
    owner_session_key text COLLATE pg_catalog."C",
    channel text,
    account text,
    peer text,
    thread text,
    lane text NOT NULL,
    spawn_depth bigint DEFAULT 0 NOT NULL,
    delegation_depth bigint DEFAULT 0 NOT NULL,
    team text,
    team_role text,
    status text DEFAULT 'active'::text NOT NULL,
    title text,
    next_ticket bigint DEFAULT 1 NOT NULL,
    summary text,
    compacted_ticket bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    focus_session_key text COLLATE pg_catalog."C",
    ttl_ms bigint,
    lent_json text,
    thinking text,
    untold_from bigint,
    CONSTRAINT sessions_status_check CHECK ((status = ANY (ARRAY['active'::text, 'archived'::text])))
);
CREATE TABLE public.setbacks (
    team_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    since bigint NOT NULL,
    code text NOT NULL,
    failures bigint NOT NULL,
    retry_at bigint
);
CREATE TABLE public.shutdown_calls (
    call_id text NOT NULL,
    team_id text NOT NULL
);
CREATE TABLE public.shutdown_requests (
    request_id text NOT NULL COLLATE pg_catalog."C",
    team_id text NOT NULL COLLATE pg_catalog."C",
    member text NOT NULL COLLATE pg_catalog."C",
    deadline bigint NOT NULL,
    answer_json text,
    created_at bigint NOT NULL
);
CREATE TABLE public.spending (
    day bigint NOT NULL,
    purse text NOT NULL COLLATE pg_catalog."C",
    tokens bigint NOT NULL,
    nanos bigint NOT NULL,
    unknown_calls bigint NOT NULL,
    warned bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.task_events (
    seq bigint NOT NULL,
    team_id text NOT NULL COLLATE pg_catalog."C",
    task_no bigint NOT NULL,
    kind text NOT NULL,
    actor text NOT NULL COLLATE pg_catalog."C",
    data_json text NOT NULL,
    is_relayed bigint DEFAULT 0 NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE public.task_events ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.task_events_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.task_needs (
    team_id text NOT NULL COLLATE pg_catalog."C",
    task_no bigint NOT NULL,
    needs bigint NOT NULL
);
CREATE TABLE public.teams (
    team_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text NOT NULL,
    agent_type text NOT NULL,
    status text NOT NULL,
    lead_key text NOT NULL COLLATE pg_catalog."C",
    lead_agent text NOT NULL COLLATE pg_catalog."C",
    trace_id text NOT NULL COLLATE pg_catalog."C",
    reply_to_json text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    CONSTRAINT teams_status_check CHECK ((status = ANY (ARRAY['active'::text, 'shutting_down'::text, 'shutdown'::text])))
);
CREATE TABLE public.todos (
    session_key text NOT NULL COLLATE pg_catalog."C",
    items_json text NOT NULL,
    updated_at bigint NOT NULL
);
CREATE TABLE public.told (
    team_id text NOT NULL COLLATE pg_catalog."C",
    seq bigint NOT NULL
);
CREATE TABLE public.traces (
    trace_id text NOT NULL,
    automatic_turns bigint NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE public.usage (
    seq bigint NOT NULL,
    session_key text NOT NULL COLLATE pg_catalog."C",
    turn_id text NOT NULL COLLATE pg_catalog."C",
    agent_id text NOT NULL COLLATE pg_catalog."C",
    model text NOT NULL COLLATE pg_catalog."C",
    input_tokens bigint,
    output_tokens bigint,
    cached_tokens bigint,
    created_at bigint NOT NULL,
    cost_nanos bigint
);
ALTER TABLE public.usage ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.usage_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
INSERT INTO public.agent_specs VALUES ('main', 'main', '{"agent_id":"main","name":"main","description":"answers people","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{"allow":["*","group:memory","group:cron","group:agents","group:team","group:fs","group:sessions"]},"skills":{}},"context_policy":{"memory":true,"scope":"shared","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"allow_agents":["*"],"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60},"delegation":{"allow_agents":["expert"],"max_concurrent":4,"max_depth":2}}', 'config', 1795128715727, 1795128715727);
INSERT INTO public.agent_specs VALUES ('ops', 'ops', '{"agent_id":"ops","name":"ops","description":"looks after the servers","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{"approvals":{"write_file":"always"}},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"dir":".","overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}', 'config', 1795128715727, 1795128715727);
INSERT INTO public.agent_specs VALUES ('expert', 'expert', '{"agent_id":"expert","name":"expert","description":"knows","defaults":{"model":"lab/demo","fallbacks":[]},"policy":{"tools":{},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}', 'config', 1795128715727, 1795128715727);
INSERT INTO public.agent_specs VALUES ('made', 'Made', '{"agent_id":"made","name":"Made","description":"created at run time","defaults":{"model":"lab/demo","fallbacks":[],"temperature":0.5,"system_prompt":"You are careful."},"policy":{"tools":{"deny":["shell"]},"skills":{}},"context_policy":{"memory":true,"scope":"agent","recall_budget_tokens":800},"workspace":{"overlay":true},"identity":{"emoji":"🦀"},"isolation":"in_process","sandbox":{"mode":"off"},"budget":{},"subagents":{"max_spawn_depth":2,"max_children_per_agent":5,"max_concurrent":8,"run_timeout_seconds":900,"archive_after_minutes":60}}', 'api', 1795128715762, 1795128715762);
INSERT INTO public.approvals VALUES ('01m7v04ymrkc8yd5qndbkq1kzc', 'agent:ops:decided', '01m7v04ymhnqg9bv8nyssnn3r1', 'call_6cfcf72164e5_0', 'write_file', '{"path":"a.txt","content":"hello"}', 'denied', 'not today', 1795130520024, 1795128720024, 1795128720226, 'dbf91d4591ccbb334ba85403357ecb2bc9438aaade16062bba3202fb2820e412', NULL, 'write_file {"path":"a.txt","content":"hello"}', 'owner');
INSERT INTO public.approvals VALUES ('01m7v04yvdak9hemn0k4eyst82', 'agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0e', 'call_28519da69bb6_0', 'write_file', '{"path":"b.txt","content":"hello"}', 'pending', NULL, 1795130520237, 1795128720237, NULL, 'fbedc7cdab7dd533bfe99cf79d3a2ace362a2a2f7cc757dcdf4960ebfb12b939', NULL, 'write_file {"path":"b.txt","content":"hello"}', NULL);
INSERT INTO public.backlog OVERRIDING SYSTEM VALUE VALUES (1, 'agent:main:steered', '01m7v05g9eqjcj366qfnchn083', '01m7v05g9eqjcj366qfnchn084', 1, NULL, 1795128741154);
INSERT INTO public.drafts VALUES ('01m7v05qt89wmze729h16q1yb4', '{"channel":"telegram","account":"main","peer":"42"}', '15', 1795128747009);
INSERT INTO public.errands VALUES ('tide', '{"id":"tide","schedule":"every 6h","agent":"main","message":"Look at the tide.","catch_up":"once","enabled":true}', 'main', 1795128716040, 1795128716040, '["web:default:agent:main:main"]');
INSERT INTO public.errands VALUES ('report', '{"id":"report","schedule":"0 9 * * 1","agent":"ops","message":"Write the report.","deliver_to":{"channel":"webhook","account":"desk","peer":"boss"},"catch_up":"once","enabled":true}', NULL, 1795128716123, 1795128716123, NULL);
INSERT INTO public.errands VALUES ('asleep', '{"id":"asleep","schedule":"at 2030-01-01 09:00","message":"Later.","catch_up":"skip","enabled":false}', NULL, 1795128716127, 1795128716127, NULL);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (1, 'memory.flushed', 'agent:main:folded', '01m7v04v5rwsge1z67q6fmnw41', 'main', '01m7v04v5rztz6k79nsrqh710q', '{"memories":0}', 1795128716480);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (2, 'session.compacted', 'agent:main:folded', '01m7v04v5rwsge1z67q6fmnw41', 'main', '01m7v04v5rztz6k79nsrqh710q', '{"through_ticket":11}', 1795128716482);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (3, 'session.renewed', 'agent:main:folded', NULL, NULL, NULL, '{"session_id":"01m7v04y63jcjwdj3zkky12g7d"}', 1795128719555);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (4, 'gate.kept', 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', '01m7v04y9wyzqr918jpx5erpb4', 'main', '01m7v04y83z794fm7kx5cj7v8t', '{"kept":"internal","channel":"internal"}', 1795128719727);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (5, 'message.waiting', 'agent:main:family', '01m7v04ybfnfbmstwyj9pzc3eh', 'main', NULL, '{"waiting":1,"steers":false}', 1795128719727);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (6, 'announce.told', 'agent:main:family', NULL, 'main', '01m7v04y83z794fm7kx5cj7v8t', '{"run_id":"01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0","status":"ok","from":"agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b"}', 1795128719727);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (7, 'gate.kept', 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', '01m7v04yapm097ewhhvzh1genr', 'main', '01m7v04ya9rn6rs9zr7yy8ypfc', '{"kept":"internal","channel":"internal"}', 1795128719760);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (8, 'announce.told', 'agent:main:chain', NULL, 'main', '01m7v04ya9rn6rs9zr7yy8ypfc', '{"run_id":"01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0","status":"ok","from":"agent:main:subagent:9dc1155c33d94b53c7283696de1e337a"}', 1795128719760);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (9, 'gate.kept', 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', '01m7v04ybfeca4xnwpj8x7hrw0', 'expert', '01m7v04yb3y47k3r0jbye9fksr', '{"kept":"internal","channel":"internal"}', 1795128719779);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (10, 'announce.told', 'agent:main:family', NULL, 'expert', '01m7v04yb3y47k3r0jbye9fksr', '{"run_id":"01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0","status":"ok","from":"agent:expert:delegate:75635401afef85a85a75f15a120f4220"}', 1795128719787);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (11, 'gate.kept', 'agent:main:chain', '01m7v04ycggkwx2h94771ecahj', 'main', '01m7v04ya9rn6rs9zr7yy8ypfc', '{"kept":"internal","channel":"internal"}', 1795128719830);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (12, 'gate.kept', 'agent:main:family', '01m7v04ybfnfbmstwyj9pzc3eh', 'main', '01m7v04y83z794fm7kx5cj7v8t', '{"kept":"internal","channel":"internal"}', 1795128719839);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (13, 'gate.kept', 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', '01m7v04yefpp7axsgqk74apmqx', 'main', '01m7v04ya9rn6rs9zr7yy8ypfc', '{"kept":"internal","channel":"internal"}', 1795128719871);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (14, 'message.waiting', 'agent:main:chain', '01m7v04yfzrv8ee1cwbk4cgjeg', 'main', NULL, '{"waiting":1,"steers":false}', 1795128719871);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (15, 'announce.held', 'agent:main:chain', NULL, 'main', '01m7v04ya9rn6rs9zr7yy8ypfc', '{"run_id":"01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0","code":"automatic_budget_spent"}', 1795128719871);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (16, 'approval.asked', 'agent:ops:decided', '01m7v04ymhnqg9bv8nyssnn3r1', 'ops', '01m7v04ymhtdq41s6jd521812c', '{"approval_id":"01m7v04ymrkc8yd5qndbkq1kzc","tool":"write_file"}', 1795128720024);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (17, 'gate.kept', 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', '01m7v04ym7m8pc8n6q4wr12dz0', 'main', '01m7v04ykwyqsa7054h2mprpm6', '{"kept":"internal","channel":"internal"}', 1795128720059);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (18, 'announce.told', 'agent:main:fish', NULL, 'main', '01m7v04ykwyqsa7054h2mprpm6', '{"run_id":"01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0","status":"ok","from":"agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09"}', 1795128720059);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (19, 'turn.failed', 'agent:main:fish', '01m7v04ynvny5dqbmb4vghfnf8', 'main', '01m7v04ykwyqsa7054h2mprpm6', '{"code":"provider_failed"}', 1795128720113);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (20, 'gate.kept', 'agent:main:fish', '01m7v04ynvny5dqbmb4vghfnf8', 'main', '01m7v04ykwyqsa7054h2mprpm6', '{"kept":"internal","channel":"internal"}', 1795128720113);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (21, 'approval.decided', 'agent:ops:decided', '01m7v04ymhnqg9bv8nyssnn3r1', NULL, NULL, '{"approval_id":"01m7v04ymrkc8yd5qndbkq1kzc","tool":"write_file","state":"denied","by":"owner"}', 1795128720226);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (22, 'approval.asked', 'agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0e', 'ops', '01m7v04yv4p4sn3pjgc2p6ph0g', '{"approval_id":"01m7v04yvdak9hemn0k4eyst82","tool":"write_file"}', 1795128720237);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (23, 'delivery.queued', 'agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47861', 'main', '01m7v04yv7r7ky3rgb3hh47863', '{"channel":"webhook"}', 1795128720284);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (24, 'delivery.queued', 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87h', 'main', '01m7v04zwan4yya038yy7nnycv', '{"channel":"webhook"}', 1795128721301);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (25, 'delivery.failed', 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87h', NULL, NULL, '{"outbox_id":"01m7v04zwnw68zqde67k0v27yr","channel":"webhook","reason":"the platform answered 400 Bad Request"}', 1795128721307);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (26, 'delivery.queued', 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk31', 'main', '01m7v04zwrxv695fq6jd4smk33', '{"channel":"webhook"}', 1795128721362);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (27, 'delivery.unknown', 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk31', NULL, NULL, '{"outbox_id":"01m7v04zykbmgnqj1hqe472p2n","channel":"webhook","reason":"the connection broke before an answer came: connection closed before message completed"}', 1795128721367);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (28, 'pairing.asked', NULL, NULL, NULL, NULL, '{"channel":"telegram","account":"main","sender":"7"}', 1795128723508);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (29, 'pairing.asked', NULL, NULL, NULL, NULL, '{"channel":"telegram","account":"main","sender":"8"}', 1795128723510);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (30, 'pairing.approved', NULL, NULL, NULL, NULL, '{"channel":"telegram","account":"main","sender":"8"}', 1795128723575);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (31, 'team.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","change":"created"}', 1795128723600);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (32, 'team.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","change":"joined","member":"ann","session_key":"agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb"}', 1795128723615);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (33, 'team.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","change":"joined","member":"bob","session_key":"agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z"}', 1795128723624);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (34, 'team.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","change":"joined","member":"carl","session_key":"agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx"}', 1795128723635);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (35, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":1,"change":"created","by":"operator","state":"pending","subject":"Draw the header"}', 1795128723641);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (36, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v0524a5akkjtvrhr465hxv-1-1","from":"team","to":"ann","type":"task","summary":"Task #1 is free: Draw the header. Claim it with..."}', 1795128723641);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (37, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":2,"change":"created","by":"operator","state":"pending","subject":"Put it on the page"}', 1795128723653);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (38, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":3,"change":"created","by":"operator","state":"pending","subject":"Publish"}', 1795128723661);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (39, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":4,"change":"created","by":"operator","state":"pending","subject":"Write the text"}', 1795128723665);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (40, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v0524a5akkjtvrhr465hxv-4-4","from":"team","to":"bob","type":"task","summary":"Task #4 is free: Write the text. Claim it with..."}', 1795128723665);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (41, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":5,"change":"created","by":"operator","state":"pending","subject":"Impossible"}', 1795128723674);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (42, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v0524a5akkjtvrhr465hxv-5-5","from":"team","to":"carl","type":"task","summary":"Task #5 is free: Impossible. Claim it with TaskClaim if..."}', 1795128723674);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (48, 'gate.kept', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v0526hxf2hvx6h4yd18a8y', 'expert', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128723729);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (57, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":6,"change":"claimed","by":"carl","state":"claimed","subject":"Under way"}', 1795128723782);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (71, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v05d3h56pve0mvsm5h6zrt-carl","from":"operator","to":"carl","type":"message","summary":"This is unread."}', 1795128734836);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (72, 'team.changed', 'agent:main:second', NULL, 'main', '01m7v05d3rvj9szax7xtf708w3', '{"team":"dock","change":"created"}', 1795128734862);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (73, 'team.changed', 'agent:main:second', NULL, 'main', '01m7v05d3rvj9szax7xtf708w3', '{"team":"dock","change":"joined","member":"dora","session_key":"agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0"}', 1795128734892);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (80, 'turn.steered', 'agent:main:steered', '01m7v05g9eqjcj366qfnchn084', 'main', '01m7v05g9eqjcj366qfnchn086', '{"skipped_calls":0,"tasks":1}', 1795128741154);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (82, 'message.waiting', 'agent:main:held', '01m7v05q4rze5bvat74jqwsw45', 'main', NULL, '{"waiting":2,"steers":true}', 1795128745116);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (83, 'delivery.queued', 'agent:main:webhook:desk:dm:down', '01m7v05q51e170k6dz9pmd776m', 'main', '01m7v05q51wht58mdk1sh07exr', '{"channel":"webhook"}', 1795128745127);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (43, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":6,"change":"created","by":"operator","state":"pending","subject":"Under way"}', 1795128723689);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (44, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":1,"change":"claimed","by":"ann","state":"claimed","subject":"Draw the header"}', 1795128723704);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (45, 'gate.kept', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0526ttps9g1gpqks447a6', 'made', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128723699);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (46, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":1,"change":"completed","by":"ann","state":"completed","subject":"Draw the header"}', 1795128723716);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (49, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":2,"change":"claimed","by":"ann","state":"claimed","subject":"Put it on the page"}', 1795128723742);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (51, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":5,"change":"claimed","by":"carl","state":"claimed","subject":"Impossible"}', 1795128723749);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (53, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":5,"change":"failed","by":"carl","state":"failed","subject":"Impossible"}', 1795128723755);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (55, 'message.waiting', 'agent:main:lead', '01m7v0529bf88j7z6p33y57g91', 'made', NULL, '{"waiting":1,"steers":false}', 1795128723755);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (59, 'gate.kept', 'agent:main:lead', '01m7v05284xv2338p2wdke1k1h', 'main', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128723796);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (60, 'gate.kept', 'agent:main:lead', '01m7v0529bf88j7z6p33y57g91', 'main', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128723860);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (64, 'gate.kept', 'agent:main:lead', '01m7v0559yzwh97s0bztssc19q', 'main', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128726868);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (69, 'gate.kept', 'agent:main:lead', '01m7v05792ds6ffg9xz6mp8a1w', 'main', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128728880);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (70, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v05a5hhppdt88hc1mrhagz-carl","from":"operator","to":"carl","type":"message","summary":"This hangs."}', 1795128731827);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (76, 'mail.sent', 'agent:main:second', NULL, 'main', '01m7v05g4bvkzx9pmybnyf3zjy', '{"team":"dock","message_id":"01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora","from":"lead","to":"dora","type":"shutdown_request","summary":"the team is to end"}', 1795128737954);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (77, 'team.changed', 'agent:main:second', NULL, 'main', '01m7v05g4bvkzx9pmybnyf3zjy', '{"team":"dock","change":"shutting_down"}', 1795128737964);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (78, 'round.begun', NULL, NULL, NULL, NULL, '{"round":"01m7v05g8ngkrwvsek6s8s74pv","agents":["main","ops"],"in_turn":true}', 1795128738070);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (79, 'message.waiting', 'agent:main:steered', '01m7v05h8wv1e0ext8e1dxqjvt', 'main', NULL, '{"waiting":1,"steers":true}', 1795128739100);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (81, 'message.waiting', 'agent:main:held', '01m7v05q4rze5bvat74jqwsw45', 'main', NULL, '{"waiting":1,"steers":true}', 1795128745112);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (47, 'gate.kept', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0525sspjvq8xv71dsyrvg', 'ops', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128723706);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (50, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"idle-01m7v0526ttps9g1gpqks447a6","from":"carl","to":"lead","type":"idle","summary":"carl is idle: available."}', 1795128723742);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (52, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"idle-01m7v0525sspjvq8xv71dsyrvg","from":"ann","to":"lead","type":"idle","summary":"ann is idle: waiting. It holds a task, and goes..."}', 1795128723751);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (54, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"idle-01m7v0526hxf2hvx6h4yd18a8y","from":"bob","to":"lead","type":"idle","summary":"bob is idle: available."}', 1795128723756);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (56, 'delivery.queued', 'agent:main:telegram:dm:8', '01m7v0529m5jmnmy8dbbn58acb', 'main', '01m7v0529mecnap1y8hdz20a6s', '{"channel":"telegram"}', 1795128723771);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (58, 'task.changed', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","task_id":6,"change":"started","by":"carl","state":"in_progress","subject":"Under way"}', 1795128723796);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (61, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v0558gzhd2ze4rtr98gry6-ann","from":"operator","to":"ann","type":"message","summary":"Please read this."}', 1795128726805);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (62, 'gate.kept', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0558myb2t56pedg143ffj', 'ops', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128726836);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (63, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"idle-01m7v0558myb2t56pedg143ffj","from":"ann","to":"lead","type":"idle","summary":"ann is idle: waiting. It holds a task, and goes..."}', 1795128726846);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (65, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"01m7v0577d06k4k4sq5d7pfq2t-bob","from":"operator","to":"bob","type":"message","summary":"This fails."}', 1795128728816);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (66, 'turn.failed', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v0577fb552gmwc4c7b3jfe', 'expert', '01m7v0524b12gqasymrhkrc6g3', '{"code":"provider_failed"}', 1795128728852);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (67, 'gate.kept', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v0577fb552gmwc4c7b3jfe', 'expert', '01m7v0524b12gqasymrhkrc6g3', '{"kept":"internal","channel":"internal"}', 1795128728852);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (68, 'mail.sent', 'agent:main:lead', NULL, 'main', '01m7v0524b12gqasymrhkrc6g3', '{"team":"site","message_id":"idle-01m7v0577fb552gmwc4c7b3jfe","from":"bob","to":"lead","type":"idle","summary":"bob is idle: failed. (provider_failed) It is tried again while..."}', 1795128728866);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (74, 'task.changed', 'agent:main:second', NULL, 'main', '01m7v05d3rvj9szax7xtf708w3', '{"team":"dock","task_id":1,"change":"created","by":"lead","state":"pending","subject":"Sweep"}', 1795128734912);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (75, 'mail.sent', 'agent:main:second', NULL, 'main', '01m7v05d3rvj9szax7xtf708w3', '{"team":"dock","message_id":"01m7v05d3r90v7ngvfpqfg22f0-call_0f2811d2ec63_0-dora","from":"lead","to":"dora","type":"message","summary":"hello"}', 1795128734921);
INSERT INTO public.events OVERRIDING SYSTEM VALUE VALUES (84, 'delivery.queued', 'agent:main:telegram:dm:8', '01m7v05qth4cqm2m903jbb2mtn', 'main', '01m7v05qtha41p63rp8rtk9x60', '{"channel":"telegram"}', 1795128745874);
INSERT INTO public.holders VALUES ('telegram', 'main', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775758);
INSERT INTO public.ingress VALUES ('webhook', 'desk', 'd1', '01m7v04yv78sfy2mwfy2f7e11d', 1795128720231);
INSERT INTO public.ingress VALUES ('webhook', 'desk', 'd2', '01m7v04zwaehdt5xhfm5pya8t1', 1795128721290);
INSERT INTO public.ingress VALUES ('webhook', 'bell', 'b1', '01m7v04zwrxv695fq6jd4smk30', 1795128721304);
INSERT INTO public.ingress VALUES ('telegram', 'main', '7:51287233', '01m7v0521na6ftgb0aw44x29ab', 1795128723509);
INSERT INTO public.ingress VALUES ('telegram', 'main', '8:51287233', '01m7v0521q5h94kx0dqs9a6g48', 1795128723511);
INSERT INTO public.ingress VALUES ('telegram', 'main', '8:51287235', '01m7v0529m4ggy9ehfmpmjbqw9', 1795128723764);
INSERT INTO public.ingress VALUES ('telegram', 'main', '42:51287235', '01m7v0529rh5dge9m71tnezwn7', 1795128723768);
INSERT INTO public.ingress VALUES ('webhook', 'desk', 'd3', '01m7v05q51e170k6dz9pmd776k', 1795128745121);
INSERT INTO public.ingress VALUES ('telegram', 'main', '42:51287451', '01m7v05qt89wmze729h16q1yb3', 1795128745800);
INSERT INTO public.ingress VALUES ('telegram', 'main', '8:51287451', '01m7v05qth4cqm2m903jbb2mtm', 1795128745809);
INSERT INTO public.intents VALUES ('01m7v04tgrddrqww744vsg0a1n', 'call_3be6efaff32e_0', 'todo', 'idempotent', 'done', 1795128715828, 1795128715830);
INSERT INTO public.intents VALUES ('01m7v04tgrddrqww744vsg0a1n', 'call_7292856320b1_0', 'memory_store', 'idempotent', 'done', 1795128715844, 1795128715845);
INSERT INTO public.intents VALUES ('01m7v04tpevrhfkgjk3c5y2z06', 'call_b90e16b77d6c_0', 'cron_add', 'effect', 'done', 1795128716037, 1795128716043);
INSERT INTO public.intents VALUES ('01m7v04trmff1ee2xx1kxcvctg', 'call_2683ef1e1f1b_0', 'read_file', 'pure', 'done', 1795128716109, 1795128716110);
INSERT INTO public.intents VALUES ('01m7v04y83wzstmp9rdv6d714m', 'call_5814b633695f_0', 'sessions_spawn', 'idempotent', 'done', 1795128719673, 1795128719681);
INSERT INTO public.intents VALUES ('01m7v04ya9eed9gmtmxrhq8wg3', 'call_0ded34785cff_0', 'sessions_spawn', 'idempotent', 'done', 1795128719699, 1795128719708);
INSERT INTO public.intents VALUES ('01m7v04yb3hx15b4a4tzyv04th', 'call_c9ad97d6012e_0', 'delegate_to_agent', 'idempotent', 'done', 1795128719725, 1795128719784);
INSERT INTO public.intents VALUES ('01m7v04ycggkwx2h94771ecahj', 'call_469eeca9351f_0', 'sessions_spawn', 'idempotent', 'done', 1795128719821, 1795128719826);
INSERT INTO public.intents VALUES ('01m7v04ykwyqsa7054h2mprpm4', 'call_5425beec18fc_0', 'sessions_spawn', 'idempotent', 'done', 1795128720005, 1795128720011);
INSERT INTO public.intents VALUES ('01m7v05d3r90v7ngvfpqfg22f0', 'call_aa6c70d390c3_0', 'TeamCreate', 'idempotent', 'done', 1795128734854, 1795128734863);
INSERT INTO public.intents VALUES ('01m7v05d3r90v7ngvfpqfg22f0', 'call_43673a7331a8_0', 'TeammateSpawn', 'idempotent', 'done', 1795128734878, 1795128734893);
INSERT INTO public.intents VALUES ('01m7v05d3r90v7ngvfpqfg22f0', 'call_678c53b5217c_0', 'TaskCreate', 'idempotent', 'done', 1795128734906, 1795128734914);
INSERT INTO public.intents VALUES ('01m7v05d3r90v7ngvfpqfg22f0', 'call_0f2811d2ec63_0', 'SendMessage', 'idempotent', 'done', 1795128734919, 1795128734923);
INSERT INTO public.intents VALUES ('01m7v05g4bfhf0hny0s88n7mmc', 'call_06227b4ae3cb_0', 'TeamShutdown', 'idempotent', 'done', 1795128737952, 1795128737977);
INSERT INTO public.intents VALUES ('01m7v05g64ddeyj6php4yzz307', 'call_d68d4a4f983c_0', 'delegate_to_agent', 'idempotent', 'intent', 1795128738003, NULL);
INSERT INTO public.intents VALUES ('01m7v05g69mp3y6csbgwnactdz', 'call_c6aea5bdcccd_0', 'sessions_spawn', 'idempotent', 'done', 1795128738050, 1795128738055);
INSERT INTO public.intents VALUES ('01m7v05g99hhj6gr63hrk0md9m', 'call_ed8248febaad_0', 'shell', 'effect', 'intent', 1795128738106, NULL);
INSERT INTO public.intents VALUES ('01m7v05g92y3kcrq4wsz9wafcc', 'call_02ceba20285c_0', 'todo', 'idempotent', 'done', 1795128738138, 1795128738139);
INSERT INTO public.intents VALUES ('01m7v05g9eqjcj366qfnchn084', 'call_51371626d466_0', 'todo', 'idempotent', 'done', 1795128741153, 1795128741154);
INSERT INTO public.intents VALUES ('01m7v05qth4cqm2m903jbb2mtn', 'call_7f8eb6175cb9_0', 'sessions_spawn', 'idempotent', 'done', 1795128745863, 1795128745868);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (1, '01m7v04tgrddrqww744vsg0a1n', 'agent:main:main', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tgrddrqww744vsg0a1q', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 397, 36, 30, '01m7v04tjgbt6fjvx461h843de', NULL, NULL, NULL, 1795128715800, 1795128715805, 1795128715856);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (2, '01m7v04tjvwty36az2hz0hjbk0', 'agent:main:main', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tjvwty36az2hz0hjbk2', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 147, 12, 10, '01m7v04tmgtxsvxs087bt48ap2', NULL, NULL, NULL, 1795128715867, 1795128715868, 1795128715920);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (3, '01m7v04tmmhtbagzfnenam01ee', 'agent:main:main', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tmmsqysm8eyr4hseq2w', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 150, 12, 10, '01m7v04tp9nh4kc61g3m36r68p', NULL, NULL, NULL, 1795128715924, 1795128715925, 1795128715977);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (4, '01m7v04tpevrhfkgjk3c5y2z06', 'agent:main:main', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tpevrhfkgjk3c5y2z08', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 337, 24, 20, '01m7v04trgpqnwpsd7fdx7gzgc', NULL, NULL, NULL, 1795128715982, 1795128715983, 1795128716048);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (5, '01m7v04trmff1ee2xx1kxcvctg', 'agent:main:main', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04trmh5zw5hrar5rrtj9e', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 370, 24, 20, '01m7v04ttnenk4hnh939nksv5v', NULL, NULL, NULL, 1795128716052, 1795128716053, 1795128716117);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (6, '01m7v04tv3zz54zfpqw4wng8bp', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tv3zz54zfpqw4wng8br', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 117, 12, 10, '01m7v04twwgp8dzpcccvrmv00t', NULL, NULL, NULL, 1795128716131, 1795128716132, 1795128716188);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (7, '01m7v04tx1packjaggt19199g5', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tx1packjaggt19199g7', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 119, 12, 10, '01m7v04tymmev66bmkr08ny7nv', NULL, NULL, NULL, 1795128716193, 1795128716193, 1795128716244);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (8, '01m7v04tyreg1nnmngfc2rpcnf', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04tyryzrq36adg675gpnh', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 123, 12, 10, '01m7v04v0cbkj61v4v064jh7ca', NULL, NULL, NULL, 1795128716248, 1795128716249, 1795128716300);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (9, '01m7v04v0jfna82zna2ts24s7b', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04v0jzk2pdc654an7rd9g', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 127, 12, 10, '01m7v04v24tgbzc41eajfaqa7f', NULL, NULL, NULL, 1795128716306, 1795128716307, 1795128716356);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (10, '01m7v04v28fsadw1enk4rtdz2m', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04v28r1eckdqs25e5m45h', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 131, 12, 10, '01m7v04v40t1gmxkcjsg5swhcp', NULL, NULL, NULL, 1795128716360, 1795128716361, 1795128716416);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (11, '01m7v04v44xnbbzg9m5swcp0sh', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04v44xnbbzg9m5swcp0sk', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 136, 12, 10, '01m7v04v5mvxn515jcya0xx7kw', NULL, NULL, NULL, 1795128716420, 1795128716421, 1795128716468);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (12, '01m7v04v5rwsge1z67q6fmnw41', 'agent:main:folded', 'main', 'compact', 'main', 3, 'done', 0, 0, 0, 0, 0, '01m7v04v5rztz6k79nsrqh710q', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 247, 24, 20, NULL, NULL, NULL, NULL, 1795128716472, 1795128716475, 1795128716484);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (13, '01m7v04y3jrzb16war5bcwprdv', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04y3js7zcj1rcbjjz4arf', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 117, 12, 10, '01m7v04y3wvf4erj6h1s14h0a1', NULL, NULL, NULL, 1795128719474, 1795128719475, 1795128719484);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (14, '01m7v04y41tp0nhdd8j5xcxhey', 'agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', 'made', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04y41tp0nhdd8j5xcxhf0', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 107, 12, 10, '01m7v04y5rmjnv3a4hen6wc8bt', NULL, NULL, NULL, 1795128719489, 1795128719490, 1795128719544);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (15, '01m7v04y69bjww4mf1983qyfrn', 'agent:main:folded', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04y69z39jg5v6df6ft7t4', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 109, 12, 10, '01m7v04y80vd9bx45ek53d35as', NULL, NULL, NULL, 1795128719561, 1795128719561, 1795128719616);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (16, '01m7v04y83wzstmp9rdv6d714m', 'agent:main:family', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04y83z794fm7kx5cj7v8t', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 258, 24, 20, '01m7v04ya5dre7rzgyvw2v9nr0', NULL, NULL, NULL, 1795128719619, 1795128719619, 1795128719685);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (18, '01m7v04ya9eed9gmtmxrhq8wg3', 'agent:main:chain', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04ya9rn6rs9zr7yy8ypfc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 270, 24, 20, '01m7v04yb0rak254sdjnk6svam', NULL, NULL, NULL, 1795128719689, 1795128719689, 1795128719712);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (17, '01m7v04y9wyzqr918jpx5erpb4', 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', 'main', 'turn', 'subagent', 3, 'done', 0, 0, 1, 0, 1, '01m7v04y83z794fm7kx5cj7v8t', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 120, 12, 10, '01m7v04ybfvv864g59tws5eagw', NULL, NULL, NULL, 1795128719676, 1795128719680, 1795128719727);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (19, '01m7v04yapm097ewhhvzh1genr', 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', 'main', 'turn', 'subagent', 3, 'done', 0, 0, 1, 0, 1, '01m7v04ya9rn6rs9zr7yy8ypfc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 122, 12, 10, '01m7v04ycggkwx2h94771ecahm', NULL, NULL, NULL, 1795128719702, 1795128719706, 1795128719760);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (20, '01m7v04yb3hx15b4a4tzyv04th', 'agent:main:family', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04yb3y47k3r0jbye9fksr', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 304, 24, 20, '01m7v04ydbvj3tn4vyfyrka7aa', NULL, NULL, NULL, 1795128719715, 1795128719715, 1795128719787);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (23, '01m7v04ycggkwx2h94771ecahj', 'agent:main:chain', 'main', 'turn', 'internal_announce', 3, 'done', 0, 0, 1, 0, 1, '01m7v04ya9rn6rs9zr7yy8ypfc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 341, 24, 20, '01m7v04yepcnd1j6f92necmrt3', NULL, NULL, NULL, 1795128719760, 1795128719767, 1795128719830);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (31, '01m7v04yv7r7ky3rgb3hh47861', 'agent:main:webhook:desk:dm:cust', 'main', 'turn', 'main', 2, 'done', 0, 0, 1, 0, 0, '01m7v04yv7r7ky3rgb3hh47863', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 117, 12, 10, '01m7v04ywwsgrjys6k4zbe2z8h', NULL, NULL, NULL, 1795128720231, 1795128720233, 1795128720284);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (21, '01m7v04ybfeca4xnwpj8x7hrw0', 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', 'expert', 'turn', 'subagent', 3, 'done', 0, 0, 1, 0, 1, '01m7v04yb3y47k3r0jbye9fksr', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 112, 12, 10, '01m7v04yd3z7ymdq0h3re4e616', NULL, NULL, NULL, 1795128719727, 1795128719729, 1795128719779);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (25, '01m7v04yfzrv8ee1cwbk4cgjeg', 'agent:main:chain', 'main', 'turn', 'internal_announce', 3, 'queued', 2, 1, 1, 0, 2, '01m7v04ya9rn6rs9zr7yy8ypfc', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128719871, NULL, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (26, '01m7v04ykwyqsa7054h2mprpm4', 'agent:main:fish', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04ykwyqsa7054h2mprpm6', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 253, 24, 20, '01m7v04ymeka41kvz2k4s3fkah', NULL, NULL, NULL, 1795128719996, 1795128719998, 1795128720014);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (27, '01m7v04ym7m8pc8n6q4wr12dz0', 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', 'main', 'turn', 'subagent', 3, 'done', 0, 0, 1, 0, 1, '01m7v04ykwyqsa7054h2mprpm6', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 112, 12, 10, '01m7v04ynvyjg224zcvcwbfnt2', NULL, NULL, NULL, 1795128720007, 1795128720009, 1795128720059);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (29, '01m7v04ynvny5dqbmb4vghfnf8', 'agent:main:fish', 'main', 'turn', 'internal_announce', 3, 'failed', 0, 0, 1, 0, 1, '01m7v04ykwyqsa7054h2mprpm6', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, NULL, 0, 0, 0, '01m7v04yqhsrvda8c8rb80a11b', NULL, 'provider_failed', 'I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).', 1795128720059, 1795128720063, 1795128720113);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (28, '01m7v04ymhnqg9bv8nyssnn3r1', 'agent:ops:decided', 'ops', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v04ymhtdq41s6jd521812c', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 233, 24, 20, '01m7v04yvjw3gxdvhtxhz7adg4', NULL, NULL, NULL, 1795128720017, 1795128720018, 1795128720242);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (33, '01m7v04zwrxv695fq6jd4smk31', 'agent:main:webhook:bell:dm:cust', 'main', 'turn', 'main', 2, 'done', 0, 0, 1, 0, 0, '01m7v04zwrxv695fq6jd4smk33', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 118, 12, 10, '01m7v04zyjppvaq8hz5fzfxnja', NULL, NULL, NULL, 1795128721304, 1795128721309, 1795128721362);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (34, '01m7v0523wk83qrwww94kj95cc', 'agent:main:lead', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v0523wk83qrwww94kj95ce', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 118, 12, 10, '01m7v05247vqpf1pxfp303fy02', NULL, NULL, NULL, 1795128723580, 1795128723584, 1795128723591);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (37, '01m7v0526ttps9g1gpqks447a6', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', 'made', 'turn', 'teammate', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 138, 12, 10, '01m7v0527kyakj6nkc12e0tgns', NULL, NULL, NULL, 1795128723674, 1795128723676, 1795128723699);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (35, '01m7v0525sspjvq8xv71dsyrvg', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', 'ops', 'turn', 'teammate', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 140, 12, 10, '01m7v0527tkt0m6cfrtkf1zj4a', NULL, NULL, NULL, 1795128723641, 1795128723645, 1795128723706);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (36, '01m7v0526hxf2hvx6h4yd18a8y', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', 'expert', 'turn', 'teammate', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 141, 12, 10, '01m7v0528hzx4k97951wmncv0t', NULL, NULL, NULL, 1795128723665, 1795128723668, 1795128723729);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (40, '01m7v0529m5jmnmy8dbbn58acb', 'agent:main:telegram:dm:8', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v0529mecnap1y8hdz20a6s', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 109, 12, 10, '01m7v0529vwqk75p81np3afwen', NULL, NULL, NULL, 1795128723764, 1795128723765, 1795128723771);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (22, '01m7v04ybfnfbmstwyj9pzc3eh', 'agent:main:family', 'main', 'turn', 'internal_announce', 3, 'done', 0, 1, 1, 0, 1, '01m7v04y83z794fm7kx5cj7v8t', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 183, 12, 10, '01m7v04yezhdq3wj5yjn9cpzjm', NULL, NULL, NULL, 1795128719727, 1795128719790, 1795128719839);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (24, '01m7v04yefpp7axsgqk74apmqx', 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', 'main', 'turn', 'subagent', 3, 'done', 0, 0, 1, 0, 2, '01m7v04ya9rn6rs9zr7yy8ypfc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 119, 12, 10, '01m7v04yfztzynsw6en2mj3rzh', NULL, NULL, NULL, 1795128719823, 1795128719824, 1795128719871);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (32, '01m7v04zwamh8vqvtvvpsmd87h', 'agent:main:webhook:desk:dm:refused', 'main', 'turn', 'main', 2, 'done', 0, 0, 1, 0, 0, '01m7v04zwan4yya038yy7nnycv', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 111, 12, 10, '01m7v04zwnw68zqde67k0v27yq', NULL, NULL, NULL, 1795128721290, 1795128721293, 1795128721301);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (38, '01m7v05284xv2338p2wdke1k1h', 'agent:main:lead', 'main', 'turn', 'internal_announce', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 162, 12, 10, '01m7v052ams44n4nmb4tngfsz9', NULL, NULL, NULL, 1795128723716, 1795128723733, 1795128723796);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (39, '01m7v0529bf88j7z6p33y57g91', 'agent:main:lead', 'main', 'turn', 'internal_announce', 3, 'done', 0, 1, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 160, 12, 10, '01m7v052cmemaq4eqfqwqvdans', NULL, NULL, NULL, 1795128723755, 1795128723803, 1795128723860);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (41, '01m7v0558myb2t56pedg143ffj', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', 'ops', 'turn', 'teammate', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 147, 12, 10, '01m7v0559my49ecsk480t07hfn', NULL, NULL, NULL, 1795128726804, 1795128726811, 1795128726836);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (42, '01m7v0559yzwh97s0bztssc19q', 'agent:main:lead', 'main', 'turn', 'internal_announce', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 158, 12, 10, '01m7v055amjy76em92er876fm0', NULL, NULL, NULL, 1795128726846, 1795128726855, 1795128726868);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (43, '01m7v0577fb552gmwc4c7b3jfe', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', 'expert', 'turn', 'teammate', 3, 'failed', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, NULL, 0, 0, 0, '01m7v0578mybdk7h6pm8awy1x1', NULL, 'provider_failed', 'I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).', 1795128728815, 1795128728821, 1795128728852);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (44, '01m7v05792ds6ffg9xz6mp8a1w', 'agent:main:lead', 'main', 'turn', 'internal_announce', 3, 'done', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 168, 12, 10, '01m7v0579gvb4cv5vxfs3rx6qj', NULL, NULL, NULL, 1795128728866, 1795128728869, 1795128728880);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (46, '01m7v05d3r90v7ngvfpqfg22f0', 'agent:main:second', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v05d3rvj9szax7xtf708w3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 797, 60, 50, '01m7v05d6fmkjjv33mg8n80fw8', NULL, NULL, NULL, 1795128734840, 1795128734842, 1795128734927);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (48, '01m7v05g4bfhf0hny0s88n7mmc', 'agent:main:second', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v05g4bvkzx9pmybnyf3zjy', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 389, 24, 20, '01m7v05g60vh5sjgnm5gd3ae0n', NULL, NULL, NULL, 1795128737931, 1795128737932, 1795128737984);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (50, '01m7v05g69mp3y6csbgwnactdz', 'agent:main:parent', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v05g69zp7dtmn83e997he3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 253, 24, 20, '01m7v05g8gnh3pmrn5xn530tfe', NULL, NULL, NULL, 1795128737993, 1795128737994, 1795128738064);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (56, '01m7v05g9eqjcj366qfnchn084', 'agent:main:steered', 'main', 'turn', 'main', 0, 'steered', 0, 0, 1, 1, 0, '01m7v05g9eqjcj366qfnchn086', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 118, 12, 10, NULL, NULL, NULL, NULL, 1795128738094, 1795128738095, 1795128741154);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (45, '01m7v05a5kw0nc52n4t0b01r03', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', 'made', 'turn', 'teammate', 3, 'running', 0, 0, 1, 0, 1, '01m7v0524b12gqasymrhkrc6g3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128731827, 1795128731832, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (59, '01m7v05q4rze5bvat74jqwsw45', 'agent:main:held', 'main', 'turn', 'main', 0, 'queued', 1, 1, 2, 1, 0, '01m7v05q4rze5bvat74jqwsw47', NULL, NULL, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128745112, NULL, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (60, '01m7v05q51e170k6dz9pmd776m', 'agent:main:webhook:desk:dm:down', 'main', 'turn', 'main', 2, 'done', 0, 0, 1, 0, 0, '01m7v05q51wht58mdk1sh07exr', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 119, 12, 10, '01m7v05q57vhf0t52xp3k6tw1q', NULL, NULL, NULL, 1795128745121, 1795128745122, 1795128745127);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (57, '01m7v05h8wv1e0ext8e1dxqjvt', 'agent:main:steered', 'main', 'turn', 'main', 0, 'running', 0, 1, 1, 1, 0, '01m7v05h8wv1e0ext8e1dxqjvw', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128739100, 1795128741157, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (53, '01m7v05g8saaer3q237grrz60c', 'agent:main:club', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05g8sy1fg0nr4n4jqphmx', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128738073, 1795128738075, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (58, '01m7v05n63w7z0mfgg0jknpjhk', 'agent:main:held', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05n63w7z0mfgg0jknpjhn', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128743107, 1795128743109, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (52, '01m7v05g84tvh4jvhvj5k3yegc', 'agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', 'main', 'turn', 'subagent', 3, 'running', 0, 0, 1, 0, 1, '01m7v05g69zp7dtmn83e997he3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128738052, 1795128738053, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (54, '01m7v05g92y3kcrq4wsz9wafcc', 'agent:main:cut', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05g92y3kcrq4wsz9wafce', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775746, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128738082, 1795128738083, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (47, '01m7v05d52j39m0grnx4s5ha5r', 'agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', 'expert', 'turn', 'teammate', 3, 'running', 0, 0, 1, 0, 1, '01m7v05d3rvj9szax7xtf708w3', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775747, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128734882, 1795128734884, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (51, '01m7v05g6m6qyr7fkhnk0pghd5', 'agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', 'expert', 'turn', 'subagent', 3, 'running', 0, 0, 1, 0, 1, '01m7v05g64ddeyj6php4yzz309', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775747, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128738004, 1795128738008, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (30, '01m7v04yv4p4sn3pjgc2p6ph0e', 'agent:ops:waiting', 'ops', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v04yv4p4sn3pjgc2p6ph0g', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775747, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128720228, 1795128720228, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (49, '01m7v05g64ddeyj6php4yzz307', 'agent:main:waits', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05g64ddeyj6php4yzz309', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775747, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128737988, 1795128737990, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (55, '01m7v05g99hhj6gr63hrk0md9m', 'agent:main:tool', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05g99t2rmx5k8yp2ynj1z', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775749, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128738089, 1795128738090, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (61, '01m7v05qt89wmze729h16q1yb4', 'agent:main:telegram:dm:42', 'main', 'turn', 'main', 0, 'running', 0, 0, 1, 1, 0, '01m7v05qt89wmze729h16q1yb6', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775801, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128745800, 1795128745801, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (63, '01m7v05qw977d38s0xs0d1w9be', 'agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', 'main', 'turn', 'subagent', 3, 'running', 0, 0, 1, 0, 1, '01m7v05qtha41p63rp8rtk9x60', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1795128775868, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1795128745865, 1795128745868, NULL);
INSERT INTO public.jobs OVERRIDING SYSTEM VALUE VALUES (62, '01m7v05qth4cqm2m903jbb2mtn', 'agent:main:telegram:dm:8', 'main', 'turn', 'main', 0, 'done', 0, 0, 1, 1, 0, '01m7v05qtha41p63rp8rtk9x60', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', NULL, 1, 0, 'lab/demo', 257, 24, 20, '01m7v05qwjqne6qdkwmvfzn5p8', NULL, NULL, NULL, 1795128745809, 1795128745809, 1795128745874);
INSERT INTO public.ledgers VALUES ('01m7v0524a5akkjtvrhr465hxv', 7);
INSERT INTO public.ledgers VALUES ('01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 2);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (3, '01m7v0524a5akkjtvrhr465hxv-5-5', '01m7v0524a5akkjtvrhr465hxv', 'team', 'carl', 'task', 'Task #5 is free: Impossible. Claim it with TaskClaim if you can do it.', 'Task #5 is free: Impossible. Claim it with TaskClaim if...', NULL, NULL, NULL, 'read', '01m7v0526ttps9g1gpqks447a6', 1795128723674, 1795128723699, 1, 1795128723691);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (1, '01m7v0524a5akkjtvrhr465hxv-1-1', '01m7v0524a5akkjtvrhr465hxv', 'team', 'ann', 'task', 'Task #1 is free: Draw the header. Claim it with TaskClaim if you can do it.', 'Task #1 is free: Draw the header. Claim it with...', NULL, NULL, NULL, 'read', '01m7v0525sspjvq8xv71dsyrvg', 1795128723641, 1795128723706, 1, 1795128723688);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (2, '01m7v0524a5akkjtvrhr465hxv-4-4', '01m7v0524a5akkjtvrhr465hxv', 'team', 'bob', 'task', 'Task #4 is free: Write the text. Claim it with TaskClaim if you can do it.', 'Task #4 is free: Write the text. Claim it with...', NULL, NULL, NULL, 'read', '01m7v0526hxf2hvx6h4yd18a8y', 1795128723665, 1795128723729, 1, 1795128723724);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (4, 'idle-01m7v0526ttps9g1gpqks447a6', '01m7v0524a5akkjtvrhr465hxv', 'carl', 'lead', 'idle', 'carl is idle: available.', 'carl is idle: available.', NULL, NULL, 'available', 'read', '01m7v05284xv2338p2wdke1k1h', 1795128723742, 1795128723796, 1, 1795128723788);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (5, 'idle-01m7v0525sspjvq8xv71dsyrvg', '01m7v0524a5akkjtvrhr465hxv', 'ann', 'lead', 'idle', 'ann is idle: waiting. It holds a task, and goes on when somebody writes to it.', 'ann is idle: waiting. It holds a task, and goes...', NULL, NULL, 'waiting', 'read', '01m7v05284xv2338p2wdke1k1h', 1795128723751, 1795128723796, 1, 1795128723788);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (6, 'idle-01m7v0526hxf2hvx6h4yd18a8y', '01m7v0524a5akkjtvrhr465hxv', 'bob', 'lead', 'idle', 'bob is idle: available.', 'bob is idle: available.', NULL, NULL, 'available', 'read', '01m7v05284xv2338p2wdke1k1h', 1795128723756, 1795128723796, 1, 1795128723788);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (7, '01m7v0558gzhd2ze4rtr98gry6-ann', '01m7v0524a5akkjtvrhr465hxv', 'operator', 'ann', 'message', 'Please read this. DO [{"say": "read"}]', 'Please read this.', NULL, NULL, NULL, 'read', '01m7v0558myb2t56pedg143ffj', 1795128726804, 1795128726836, 1, 1795128726822);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (8, 'idle-01m7v0558myb2t56pedg143ffj', '01m7v0524a5akkjtvrhr465hxv', 'ann', 'lead', 'idle', 'ann is idle: waiting. It holds a task, and goes on when somebody writes to it.', 'ann is idle: waiting. It holds a task, and goes...', NULL, NULL, 'waiting', 'read', '01m7v0559yzwh97s0bztssc19q', 1795128726846, 1795128726868, 1, 1795128726862);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (9, '01m7v0577d06k4k4sq5d7pfq2t-bob', '01m7v0524a5akkjtvrhr465hxv', 'operator', 'bob', 'message', 'This fails. DO [{"fail": 400}]', 'This fails.', NULL, NULL, NULL, 'queued', NULL, 1795128728815, NULL, 1, 1795128728837);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (10, 'idle-01m7v0577fb552gmwc4c7b3jfe', '01m7v0524a5akkjtvrhr465hxv', 'bob', 'lead', 'idle', 'bob is idle: failed. (provider_failed) It is tried again while mail or a task waits for it.', 'bob is idle: failed. (provider_failed) It is tried again while...', NULL, NULL, 'failed', 'read', '01m7v05792ds6ffg9xz6mp8a1w', 1795128728866, 1795128728880, 1, 1795128728878);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (11, '01m7v05a5hhppdt88hc1mrhagz-carl', '01m7v0524a5akkjtvrhr465hxv', 'operator', 'carl', 'message', 'This hangs. DO [{"hang": true}]', 'This hangs.', NULL, NULL, NULL, 'in_prompt', '01m7v05a5kw0nc52n4t0b01r03', 1795128731827, NULL, 1, 1795128731839);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (12, '01m7v05d3h56pve0mvsm5h6zrt-carl', '01m7v0524a5akkjtvrhr465hxv', 'operator', 'carl', 'message', 'This is unread.', 'This is unread.', NULL, NULL, NULL, 'queued', NULL, 1795128734835, NULL, 1, NULL);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (13, '01m7v05d3r90v7ngvfpqfg22f0-call_0f2811d2ec63_0-dora', '01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 'lead', 'dora', 'message', 'Hello Dora', 'hello', NULL, NULL, NULL, 'queued', NULL, 1795128734921, NULL, 1, NULL);
INSERT INTO public.letters OVERRIDING SYSTEM VALUE VALUES (14, '01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora', '01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 'lead', 'dora', 'shutdown_request', 'The team is to end. done
Finish what you are doing, then answer with SendMessage, type shutdown_response, request_id 01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora-stop, approve true or false, and a reason if false.', 'the team is to end', '01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora-stop', NULL, 'done', 'queued', NULL, 1795128737954, NULL, 1, NULL);
INSERT INTO public.media VALUES ('2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20', 'image/png', '\x89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415478da63f8cfc0000003010100f70341430000000049454e44ae426082', 1795128738070);
INSERT INTO public.media_rounds VALUES ('01m7v05g8ngkrwvsek6s8s74pv', '2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
INSERT INTO public.media_uses VALUES ('01m7v04tmmh8ddxb5a5049ydem', '2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
INSERT INTO public.media_uses VALUES ('01m7v05g8saaer3q237grrz60b', '2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20');
INSERT INTO public.members VALUES ('01m7v0524a5akkjtvrhr465hxv', 'carl', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', 'made', 'member', '["sql"]', 'yellow', 'active', 1795128723627, 1795128723699, NULL, 0);
INSERT INTO public.members VALUES ('01m7v0524a5akkjtvrhr465hxv', 'ann', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', 'ops', 'painter', '["css"]', 'blue', 'active', 1795128723604, 1795128726836, NULL, 0);
INSERT INTO public.members VALUES ('01m7v0524a5akkjtvrhr465hxv', 'bob', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', 'expert', 'member', '[]', 'green', 'active', 1795128723618, 1795128728852, NULL, 0);
INSERT INTO public.members VALUES ('01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 'dora', 'agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', 'expert', 'member', '[]', 'blue', 'active', 1795128734882, 1795128734882, NULL, 0);
INSERT INTO public.messages VALUES ('01m7v04tgr23jjaywsx8xsw7m1', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 1, 'user', 'Plan the day. DO [{"call": ["todo", {"items": [{"text": "paint the boat", "state": "doing"}, {"text": "buy rope"}]}]}, {"call": ["memory_store", {"content": "The boat is called Wanda.", "key": "wanda"}]}, {"say": "The list is stored."}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:main"}', NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715800);
INSERT INTO public.messages VALUES ('01m7v04thg2xktqjb5zn5k5j7d', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_3be6efaff32e_0","name":"todo","arguments":{"items":[{"text":"paint the boat","state":"doing"},{"text":"buy rope"}]}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715824);
INSERT INTO public.messages VALUES ('01m7v04thp3vs2mtn81d6a2bfb', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 3, 'tool', '1. [~] paint the boat
2. [ ] buy rope
0 of 2 done', '[{"type":"tool_result","call_id":"call_3be6efaff32e_0","name":"todo","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715830);
INSERT INTO public.messages VALUES ('01m7v04tj2qyamdqhfyvk0wk5a', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 4, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_7292856320b1_0","name":"memory_store","arguments":{"content":"The boat is called Wanda.","key":"wanda"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715842);
INSERT INTO public.messages VALUES ('01m7v04tj5pcpjwdxtwh8xtqcc', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 5, 'tool', 'Remembered: {"id":"01m7v04tj5pcpjwdxtwh8xtqcb","key":"wanda","scope":"shared"}', '[{"type":"tool_result","call_id":"call_7292856320b1_0","name":"memory_store","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715845);
INSERT INTO public.messages VALUES ('01m7v04tjgbt6fjvx461h843de', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 6, 'assistant', 'The list is stored.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tgrddrqww744vsg0a1n', 1795128715856);
INSERT INTO public.messages VALUES ('01m7v04tjvqngmctegwtkh3x7b', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 7, 'user', 'And now a second question.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:main"}', NULL, NULL, '01m7v04tjvwty36az2hz0hjbk0', 1795128715867);
INSERT INTO public.messages VALUES ('01m7v04tmgtxsvxs087bt48ap2', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 8, 'assistant', 'Noted: And now a second question.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tjvwty36az2hz0hjbk0', 1795128715920);
INSERT INTO public.messages VALUES ('01m7v04tmmh8ddxb5a5049ydem', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 9, 'user', 'Look at this. DO [{"say": "I see a pixel."}]', '[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"},{"type":"attachment","name":"note.md","media_type":"text/markdown","text":"A note."}]', 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:main"}', NULL, NULL, '01m7v04tmmhtbagzfnenam01ee', 1795128715924);
INSERT INTO public.messages VALUES ('01m7v04tp9nh4kc61g3m36r68p', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 10, 'assistant', 'I see a pixel.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tmmhtbagzfnenam01ee', 1795128715977);
INSERT INTO public.messages VALUES ('01m7v04tpe8yh56pvn540zvvam', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 11, 'user', 'Make a cron job. DO [{"call": ["cron_add", {"id": "tide", "schedule": "every 6h", "message": "Look at the tide.", "catch_up": true}]}, {"say": "ok"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:main"}', NULL, NULL, '01m7v04tpevrhfkgjk3c5y2z06', 1795128715982);
INSERT INTO public.messages VALUES ('01m7v04tr3pkxz4p9qjg64cv8b', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 12, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_b90e16b77d6c_0","name":"cron_add","arguments":{"id":"tide","schedule":"every 6h","message":"Look at the tide.","catch_up":true}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tpevrhfkgjk3c5y2z06', 1795128716035);
INSERT INTO public.messages VALUES ('01m7v04trbma93p11x2yde0cbc', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 13, 'tool', '{"id":"tide","next":"2026-11-20T00:00:00.000Z","session_key":"cron:tide"}', '[{"type":"tool_result","call_id":"call_b90e16b77d6c_0","name":"cron_add","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04tpevrhfkgjk3c5y2z06', 1795128716043);
INSERT INTO public.messages VALUES ('01m7v04trgpqnwpsd7fdx7gzgc', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 14, 'assistant', 'ok', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tpevrhfkgjk3c5y2z06', 1795128716048);
INSERT INTO public.messages VALUES ('01m7v04trmff1ee2xx1kxcvctf', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 15, 'user', 'Read a file. DO [{"call": ["read_file", {"path": "missing.txt"}]}, {"say": "There is no such file."}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:main"}', NULL, NULL, '01m7v04trmff1ee2xx1kxcvctg', 1795128716052);
INSERT INTO public.messages VALUES ('01m7v04ttc8zvxrzxm5s8ec0qm', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 16, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_2683ef1e1f1b_0","name":"read_file","arguments":{"path":"missing.txt"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04trmff1ee2xx1kxcvctg', 1795128716108);
INSERT INTO public.messages VALUES ('01m7v04tteysgkk1sar3d3mmy5', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 17, 'tool', '''missing.txt'': there is no such file or folder', '[{"type":"tool_result","call_id":"call_2683ef1e1f1b_0","name":"read_file","is_error":true}]', 'agent:main', 'internal', 0, NULL, '{"sandbox":{"line":"sandbox off · openat2: beneath, no_symlinks, no_magiclinks","facts":{"mode":"off","isolation":"in_process","files":{"resolved":"openat2: beneath, no_symlinks, no_magiclinks"}}}}', NULL, '01m7v04trmff1ee2xx1kxcvctg', 1795128716110);
INSERT INTO public.messages VALUES ('01m7v04ttnenk4hnh939nksv5v', 'agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 18, 'assistant', 'There is no such file.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04trmff1ee2xx1kxcvctg', 1795128716117);
INSERT INTO public.messages VALUES ('01m7v04tv3zx00m02xvxmyh215', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 1, 'user', 'Fact number 0: the harbour has 0 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04tv3zz54zfpqw4wng8bp', 1795128716131);
INSERT INTO public.messages VALUES ('01m7v04twwgp8dzpcccvrmv00t', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 2, 'assistant', 'Noted: Fact number 0: the harbour has 0 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tv3zz54zfpqw4wng8bp', 1795128716188);
INSERT INTO public.messages VALUES ('01m7v04tx1packjaggt19199g4', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 3, 'user', 'Fact number 1: the harbour has 1 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04tx1packjaggt19199g5', 1795128716193);
INSERT INTO public.messages VALUES ('01m7v04tymmev66bmkr08ny7nv', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 4, 'assistant', 'Noted: Fact number 1: the harbour has 1 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tx1packjaggt19199g5', 1795128716244);
INSERT INTO public.messages VALUES ('01m7v04tyrazk9a046ykkcmssg', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 5, 'user', 'Fact number 2: the harbour has 2 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04tyreg1nnmngfc2rpcnf', 1795128716248);
INSERT INTO public.messages VALUES ('01m7v04v0cbkj61v4v064jh7ca', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 6, 'assistant', 'Noted: Fact number 2: the harbour has 2 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04tyreg1nnmngfc2rpcnf', 1795128716300);
INSERT INTO public.messages VALUES ('01m7v04v0jfna82zna2ts24s7a', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 7, 'user', 'Fact number 3: the harbour has 3 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04v0jfna82zna2ts24s7b', 1795128716306);
INSERT INTO public.messages VALUES ('01m7v04v24tgbzc41eajfaqa7f', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 8, 'assistant', 'Noted: Fact number 3: the harbour has 3 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04v0jfna82zna2ts24s7b', 1795128716356);
INSERT INTO public.messages VALUES ('01m7v04v28fsadw1enk4rtdz2k', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 9, 'user', 'Fact number 4: the harbour has 4 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04v28fsadw1enk4rtdz2m', 1795128716360);
INSERT INTO public.messages VALUES ('01m7v04v40t1gmxkcjsg5swhcp', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 10, 'assistant', 'Noted: Fact number 4: the harbour has 4 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04v28fsadw1enk4rtdz2m', 1795128716416);
INSERT INTO public.messages VALUES ('01m7v04v44j24xa8brqwfqfzsp', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 11, 'user', 'Fact number 5: the harbour has 5 boats.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04v44xnbbzg9m5swcp0sh', 1795128716420);
INSERT INTO public.messages VALUES ('01m7v04v5mvxn515jcya0xx7kw', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 12, 'assistant', 'Noted: Fact number 5: the harbour has 5 boats.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04v44xnbbzg9m5swcp0sh', 1795128716468);
INSERT INTO public.messages VALUES ('01m7v04y41tp0nhdd8j5xcxhex', 'agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', '01m7v04y3zxyvmv1588kf3t6gr', 1, 'user', 'hello made', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq"}', NULL, NULL, '01m7v04y41tp0nhdd8j5xcxhey', 1795128719489);
INSERT INTO public.messages VALUES ('01m7v04y5rmjnv3a4hen6wc8bt', 'agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', '01m7v04y3zxyvmv1588kf3t6gr', 2, 'assistant', 'Noted: hello made', NULL, 'agent:made', 'web', 1, NULL, NULL, NULL, '01m7v04y41tp0nhdd8j5xcxhey', 1795128719544);
INSERT INTO public.messages VALUES ('01m7v04y699hj40cqhfspcgv2d', 'agent:main:folded', '01m7v04y63jcjwdj3zkky12g7d', 15, 'user', 'A new conversation under the same key.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04y69bjww4mf1983qyfrn', 1795128719561);
INSERT INTO public.messages VALUES ('01m7v04y80vd9bx45ek53d35as', 'agent:main:folded', '01m7v04y63jcjwdj3zkky12g7d', 16, 'assistant', 'Noted: A new conversation under the same key.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04y69bjww4mf1983qyfrn', 1795128719616);
INSERT INTO public.messages VALUES ('01m7v04y83bvjjbknrxxe1mrbw', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 1, 'user', 'Begin one. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"The child is done.\"}]", "label": "first child", "tags": ["a", "b"], "result_schema": {"type": "string"}}]}, {"say": "started"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:family"}', NULL, NULL, '01m7v04y83wzstmp9rdv6d714m', 1795128719619);
INSERT INTO public.messages VALUES ('01m7v04y9rre45qhywj2r9mg6e', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_5814b633695f_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"The child is done.\"}]","label":"first child","tags":["a","b"],"result_schema":{"type":"string"}}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04y83wzstmp9rdv6d714m', 1795128719672);
INSERT INTO public.messages VALUES ('01m7v04y9w8pj4503ax79enx4j', 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', '01m7v04y9wyzqr918jpx5erpb5', 1, 'user', 'DO [{"say": "The child is done."}]
Answer with JSON alone that fits this schema:
{"type":"string"}', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0', '01m7v04y9wyzqr918jpx5erpb4', 1795128719676);
INSERT INTO public.messages VALUES ('01m7v04ya1h65vpj7xp0zd1rdw', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 3, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b","run_id":"01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0"}', '[{"type":"tool_result","call_id":"call_5814b633695f_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04y83wzstmp9rdv6d714m', 1795128719681);
INSERT INTO public.messages VALUES ('01m7v04ybbjha6t7qfv6fkaynr', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 6, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_c9ad97d6012e_0","name":"delegate_to_agent","arguments":{"agent_id":"expert","task":"DO [{\"say\": \"The expert answer.\"}]","mode":"sync"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04yb3hx15b4a4tzyv04th', 1795128719723);
INSERT INTO public.messages VALUES ('01m7v04ybfeca4xnwpj8x7hrvz', 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', '01m7v04ybfeca4xnwpj8x7hrw1', 1, 'user', 'DO [{"say": "The expert answer."}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0', '01m7v04ybfeca4xnwpj8x7hrw0', 1795128719727);
INSERT INTO public.messages VALUES ('01m7v04yd884r52ea2yxqqbkst', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 8, 'tool', '{"status":"completed","code":null,"cause":null,"streamed":false,"response":"The expert answer.","partial_response":null,"run_id":"01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0","session_key":"agent:expert:delegate:75635401afef85a85a75f15a120f4220","agent_id":"expert","duration_ms":57}', '[{"type":"tool_result","call_id":"call_c9ad97d6012e_0","name":"delegate_to_agent","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04yb3hx15b4a4tzyv04th', 1795128719784);
INSERT INTO public.messages VALUES ('announce:01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 9, 'user', '[@agent:expert#expert] finish', NULL, 'agent:expert', 'internal', 0, NULL, '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v04yb3y47k3r0jbye9fksr","hop":1,"idempotency_key":"announce:01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0","source_agent_id":"expert","source_agent_name":"expert","source_session_key":"agent:expert:delegate:75635401afef85a85a75f15a120f4220","source_run_id":"01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0","task":{"label":"DO [{\"say\": \"The expert answer.\"}]","prompt":"DO [{\"say\": \"The expert answer.\"}]","tags":[]},"result":{"status":"ok","summary":"The expert answer.","artifacts":[],"error_code":null},"stats":{"duration_ms":60,"tokens":124,"cost_usd":0.000136},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:family"}],"asked_by":["web:default:agent:main:family"]}', 'announce:01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0', '01m7v04yb3hx15b4a4tzyv04th', 1795128719787);
INSERT INTO public.messages VALUES ('01m7v04ydbvj3tn4vyfyrka7aa', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 10, 'assistant', 'asked', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04yb3hx15b4a4tzyv04th', 1795128719787);
INSERT INTO public.messages VALUES ('01m7v04yecd4b9er49f0xxn4gy', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 6, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_469eeca9351f_0","name":"sessions_spawn","arguments":{"task":"second of the chain","label":"second"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ycggkwx2h94771ecahj', 1795128719820);
INSERT INTO public.messages VALUES ('01m7v04yefpp7axsgqk74apmqw', 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', '01m7v04yefpp7axsgqk74apmqy', 1, 'user', 'second of the chain', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0', '01m7v04yefpp7axsgqk74apmqx', 1795128719823);
INSERT INTO public.messages VALUES ('01m7v04yej6472vvr2c4nmebre', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 7, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:f14734f3c7bc154097c5dc668e59c189","run_id":"01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0"}', '[{"type":"tool_result","call_id":"call_469eeca9351f_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ycggkwx2h94771ecahj', 1795128719826);
INSERT INTO public.messages VALUES ('01m7v04y3jrzb16war5bcwprdt', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 13, 'user', 'After the fold.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:folded"}', NULL, NULL, '01m7v04y3jrzb16war5bcwprdv', 1795128719474);
INSERT INTO public.messages VALUES ('01m7v04y3wvf4erj6h1s14h0a1', 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bq', 14, 'assistant', 'Noted: After the fold.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04y3jrzb16war5bcwprdv', 1795128719484);
INSERT INTO public.messages VALUES ('01m7v04ya5dre7rzgyvw2v9nr0', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 4, 'assistant', 'started', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04y83wzstmp9rdv6d714m', 1795128719685);
INSERT INTO public.messages VALUES ('01m7v04ya9eed9gmtmxrhq8wg2', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 1, 'user', 'Begin a chain. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]", "label": "chained"}]}, {"say": "started"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:chain"}', NULL, NULL, '01m7v04ya9eed9gmtmxrhq8wg3', 1795128719689);
INSERT INTO public.messages VALUES ('01m7v04yafwqen88d8h967gfkw', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_0ded34785cff_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","label":"chained"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ya9eed9gmtmxrhq8wg3', 1795128719695);
INSERT INTO public.messages VALUES ('01m7v04yapm097ewhhvzh1genq', 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', '01m7v04yapqyf7121nfsvfcgqs', 1, 'user', 'DO [{"say": "DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]"}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0', '01m7v04yapm097ewhhvzh1genr', 1795128719702);
INSERT INTO public.messages VALUES ('01m7v04yawddz83v2xhhnvtadq', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 3, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:9dc1155c33d94b53c7283696de1e337a","run_id":"01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0"}', '[{"type":"tool_result","call_id":"call_0ded34785cff_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ya9eed9gmtmxrhq8wg3', 1795128719708);
INSERT INTO public.messages VALUES ('01m7v04yb0rak254sdjnk6svam', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 4, 'assistant', 'started', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04ya9eed9gmtmxrhq8wg3', 1795128719712);
INSERT INTO public.messages VALUES ('01m7v04yb3hx15b4a4tzyv04tg', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 5, 'user', 'Delegate. DO [{"call": ["delegate_to_agent", {"agent_id": "expert", "task": "DO [{\"say\": \"The expert answer.\"}]", "mode": "sync"}]}, {"say": "asked"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:family"}', NULL, NULL, '01m7v04yb3hx15b4a4tzyv04th', 1795128719715);
INSERT INTO public.messages VALUES ('01m7v04ybfvv864g59tws5eagw', 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', '01m7v04y9wyzqr918jpx5erpb5', 2, 'assistant', 'The child is done.', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04y9wyzqr918jpx5erpb4', 1795128719727);
INSERT INTO public.messages VALUES ('01m7v04ycggkwx2h94771ecahm', 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', '01m7v04yapqyf7121nfsvfcgqs', 2, 'assistant', 'DO [{"call": ["sessions_spawn", {"task": "second of the chain", "label": "second"}]}, {"say": "second started"}]', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04yapm097ewhhvzh1genr', 1795128719760);
INSERT INTO public.messages VALUES ('01m7v04ycggkwx2h94771ecahh', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 5, 'user', '[@agent:main#main] finish', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v04ya9rn6rs9zr7yy8ypfc","hop":1,"idempotency_key":"announce:01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:9dc1155c33d94b53c7283696de1e337a","source_run_id":"01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0","task":{"label":"chained","prompt":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","tags":[]},"result":{"status":"ok","summary":"DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]","artifacts":[],"error_code":null},"stats":{"duration_ms":58,"tokens":134,"cost_usd":0.000146},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:chain"}],"asked_by":["web:default:agent:main:chain"]}', 'announce:01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0', '01m7v04ycggkwx2h94771ecahj', 1795128719760);
INSERT INTO public.messages VALUES ('01m7v04yd3z7ymdq0h3re4e616', 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', '01m7v04ybfeca4xnwpj8x7hrw1', 2, 'assistant', 'The expert answer.', NULL, 'agent:expert', 'internal', 0, NULL, NULL, NULL, '01m7v04ybfeca4xnwpj8x7hrw0', 1795128719779);
INSERT INTO public.messages VALUES ('01m7v04ybfnfbmstwyj9pzc3eg', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 11, 'user', '[@agent:main#main] finish', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v04y83z794fm7kx5cj7v8t","hop":1,"idempotency_key":"announce:01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b","source_run_id":"01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0","task":{"label":"first child","prompt":"DO [{\"say\": \"The child is done.\"}]\n\nAnswer with JSON alone that fits this schema:\n{\"type\":\"string\"}","tags":["a","b"]},"result":{"status":"ok","summary":"The child is done.","artifacts":[],"error_code":null},"stats":{"duration_ms":51,"tokens":132,"cost_usd":0.000144},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:family"}],"asked_by":["web:default:agent:main:family"]}', 'announce:01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0', '01m7v04ybfnfbmstwyj9pzc3eh', 1795128719727);
INSERT INTO public.messages VALUES ('01m7v04yepcnd1j6f92necmrt3', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 8, 'assistant', 'second started', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04ycggkwx2h94771ecahj', 1795128719830);
INSERT INTO public.messages VALUES ('01m7v04yezhdq3wj5yjn9cpzjm', 'agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 12, 'assistant', 'Noted: g"} Result: ok The child is done. Artifacts: none [/Context]', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04ybfnfbmstwyj9pzc3eh', 1795128719839);
INSERT INTO public.messages VALUES ('01m7v04yfztzynsw6en2mj3rzh', 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', '01m7v04yefpp7axsgqk74apmqy', 2, 'assistant', 'Noted: second of the chain', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04yefpp7axsgqk74apmqx', 1795128719871);
INSERT INTO public.messages VALUES ('01m7v04yv4p4sn3pjgc2p6ph0d', 'agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0f', 1, 'user', 'Write b. DO [{"call": ["write_file", {"path": "b.txt", "content": "hello"}]}, {"say": "written"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:ops:waiting"}', NULL, NULL, '01m7v04yv4p4sn3pjgc2p6ph0e', 1795128720228);
INSERT INTO public.messages VALUES ('01m7v04yv78sfy2mwfy2f7e11d', 'agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47862', 1, 'user', 'first question', NULL, 'hook', 'webhook', 1, '{"channel":"webhook","account":"desk","peer":"cust"}', NULL, NULL, '01m7v04yv7r7ky3rgb3hh47861', 1795128720231);
INSERT INTO public.messages VALUES ('01m7v05247vqpf1pxfp303fy02', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 2, 'assistant', 'Noted: I lead a team.', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v0523wk83qrwww94kj95cc', 1795128723591);
INSERT INTO public.messages VALUES ('01m7v04yfzrv8ee1cwbk4cgjef', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 9, 'user', '[@agent:main#main] finish', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v04ya9rn6rs9zr7yy8ypfc","hop":2,"idempotency_key":"announce:01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:f14734f3c7bc154097c5dc668e59c189","source_run_id":"01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0","task":{"label":"second","prompt":"second of the chain","tags":[]},"result":{"status":"ok","summary":"Noted: second of the chain","artifacts":[],"error_code":null},"stats":{"duration_ms":48,"tokens":131,"cost_usd":0.000143},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:chain"}],"asked_by":["internal::","web:default:agent:main:chain"]}', 'announce:01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0', '01m7v04yfzrv8ee1cwbk4cgjeg', 1795128719871);
INSERT INTO public.messages VALUES ('01m7v04ykwckcenhn6sgdv1ph5', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 1, 'user', 'Go fishing. DO [{"call": ["sessions_spawn", {"task": "DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]", "label": "fishing"}]}, {"say": "started"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:fish"}', NULL, NULL, '01m7v04ykwyqsa7054h2mprpm4', 1795128719996);
INSERT INTO public.messages VALUES ('01m7v04ym4ry3z3z8jdjr228pj', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_5425beec18fc_0","name":"sessions_spawn","arguments":{"task":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","label":"fishing"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ykwyqsa7054h2mprpm4', 1795128720004);
INSERT INTO public.messages VALUES ('01m7v04ym7awdjems1ywdxbx0s', 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', '01m7v04ym7m8pc8n6q4wr12dz1', 1, 'user', 'DO [{"say": "DO [{\"fail\": 400}] The catch is twelve fish."}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0', '01m7v04ym7m8pc8n6q4wr12dz0', 1795128720007);
INSERT INTO public.messages VALUES ('01m7v04ymb7f8gt0w9q8wwbybb', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 3, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09","run_id":"01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0"}', '[{"type":"tool_result","call_id":"call_5425beec18fc_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ykwyqsa7054h2mprpm4', 1795128720011);
INSERT INTO public.messages VALUES ('01m7v04ymeka41kvz2k4s3fkah', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 4, 'assistant', 'started', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v04ykwyqsa7054h2mprpm4', 1795128720014);
INSERT INTO public.messages VALUES ('01m7v04ymhnqg9bv8nyssnn3r0', 'agent:ops:decided', '01m7v04ymhtdq41s6jd521812b', 1, 'user', 'Write. DO [{"call": ["write_file", {"path": "a.txt", "content": "hello"}]}, {"say": "written"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:ops:decided"}', NULL, NULL, '01m7v04ymhnqg9bv8nyssnn3r1', 1795128720017);
INSERT INTO public.messages VALUES ('01m7v04ymqne9n0qb3fd41r31d', 'agent:ops:decided', '01m7v04ymhtdq41s6jd521812b', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_6cfcf72164e5_0","name":"write_file","arguments":{"path":"a.txt","content":"hello"}}]', 'agent:ops', 'internal', 0, NULL, NULL, NULL, '01m7v04ymhnqg9bv8nyssnn3r1', 1795128720023);
INSERT INTO public.messages VALUES ('01m7v04ynvyjg224zcvcwbfnt2', 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', '01m7v04ym7m8pc8n6q4wr12dz1', 2, 'assistant', 'DO [{"fail": 400}] The catch is twelve fish.', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v04ym7m8pc8n6q4wr12dz0', 1795128720059);
INSERT INTO public.messages VALUES ('01m7v04ynvny5dqbmb4vghfnf7', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 5, 'user', '[@agent:main#main] finish', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v04ykwyqsa7054h2mprpm6","hop":1,"idempotency_key":"announce:01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0","source_agent_id":"main","source_agent_name":"main","source_session_key":"agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09","source_run_id":"01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0","task":{"label":"fishing","prompt":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","tags":[]},"result":{"status":"ok","summary":"DO [{\"fail\": 400}] The catch is twelve fish.","artifacts":[],"error_code":null},"stats":{"duration_ms":52,"tokens":124,"cost_usd":0.000136},"reply_to":[{"channel":"web","account":"default","peer":"agent:main:fish"}],"asked_by":["web:default:agent:main:fish"]}', 'announce:01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0', '01m7v04ynvny5dqbmb4vghfnf8', 1795128720059);
INSERT INTO public.messages VALUES ('01m7v04yqhsrvda8c8rb80a11b', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 6, 'assistant', 'I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).', NULL, 'agent:main', 'web', 1, NULL, '{"error":"provider_failed"}', NULL, '01m7v04ynvny5dqbmb4vghfnf8', 1795128720113);
INSERT INTO public.messages VALUES ('01m7v04yvf3915vg8d8t5wkygk', 'agent:ops:decided', '01m7v04ymhtdq41s6jd521812b', 3, 'tool', 'The user did not allow this. not today', '[{"type":"tool_result","call_id":"call_6cfcf72164e5_0","name":"write_file","is_error":true}]', 'agent:ops', 'internal', 0, NULL, NULL, NULL, '01m7v04ymhnqg9bv8nyssnn3r1', 1795128720239);
INSERT INTO public.messages VALUES ('01m7v04yvjw3gxdvhtxhz7adg4', 'agent:ops:decided', '01m7v04ymhtdq41s6jd521812b', 4, 'assistant', 'written', NULL, 'agent:ops', 'web', 1, NULL, NULL, NULL, '01m7v04ymhnqg9bv8nyssnn3r1', 1795128720242);
INSERT INTO public.messages VALUES ('01m7v04ywwsgrjys6k4zbe2z8h', 'agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47862', 2, 'assistant', 'Noted: first question', NULL, 'agent:main', 'webhook', 1, NULL, NULL, NULL, '01m7v04yv7r7ky3rgb3hh47861', 1795128720284);
INSERT INTO public.messages VALUES ('01m7v04zwrxv695fq6jd4smk30', 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk32', 1, 'user', 'a question whose reply is cut', NULL, 'hook', 'webhook', 1, '{"channel":"webhook","account":"bell","peer":"cust"}', NULL, NULL, '01m7v04zwrxv695fq6jd4smk31', 1795128721304);
INSERT INTO public.messages VALUES ('01m7v04zyjppvaq8hz5fzfxnja', 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk32', 2, 'assistant', 'Noted: a question whose reply is cut', NULL, 'agent:main', 'webhook', 1, NULL, NULL, NULL, '01m7v04zwrxv695fq6jd4smk31', 1795128721362);
INSERT INTO public.messages VALUES ('01m7v0523wk83qrwww94kj95cb', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 1, 'user', 'I lead a team.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:lead"}', NULL, NULL, '01m7v0523wk83qrwww94kj95cc', 1795128723580);
INSERT INTO public.messages VALUES ('01m7v0527tkt0m6cfrtkf1zj4a', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0524msdneja6wv7qf5c6g', 2, 'assistant', 'Noted: : Draw the header. Claim it with TaskClaim if you can do it.', NULL, 'agent:ops', 'internal', 0, NULL, NULL, NULL, '01m7v0525sspjvq8xv71dsyrvg', 1795128723706);
INSERT INTO public.messages VALUES ('01m7v0529vwqk75p81np3afwen', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 2, 'assistant', 'Noted: hello from a paired person', NULL, 'agent:main', 'telegram', 1, NULL, NULL, NULL, '01m7v0529m5jmnmy8dbbn58acb', 1795128723771);
INSERT INTO public.messages VALUES ('01m7v04yva3e03s38k4ztmt7m7', 'agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0f', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_28519da69bb6_0","name":"write_file","arguments":{"path":"b.txt","content":"hello"}}]', 'agent:ops', 'internal', 0, NULL, NULL, NULL, '01m7v04yv4p4sn3pjgc2p6ph0e', 1795128720234);
INSERT INTO public.messages VALUES ('01m7v04zwaehdt5xhfm5pya8t1', 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87j', 1, 'user', 'a question whose reply is refused', NULL, 'hook', 'webhook', 1, '{"channel":"webhook","account":"desk","peer":"refused"}', NULL, NULL, '01m7v04zwamh8vqvtvvpsmd87h', 1795128721290);
INSERT INTO public.messages VALUES ('01m7v04zwnw68zqde67k0v27yq', 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87j', 2, 'assistant', 'Noted: a question whose reply is refused', NULL, 'agent:main', 'webhook', 1, NULL, NULL, NULL, '01m7v04zwamh8vqvtvvpsmd87h', 1795128721301);
INSERT INTO public.messages VALUES ('01m7v05284xv2338p2wdke1k1g', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 3, 'user', '[@agent:ops#ops] finish', NULL, 'agent:ops', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v0524b12gqasymrhkrc6g3","hop":1,"idempotency_key":"announce:01m7v0524a5akkjtvrhr465hxv-8","source_agent_id":"ops","source_agent_name":"ann (ops)","source_session_key":"agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb","source_run_id":"site#1","task":{"label":"#1 Draw the header","prompt":"In blue","tags":[]},"result":{"status":"ok","summary":"Drawn\nUnblocked: #2 Put it on the page","artifacts":[{"kind":"file","path":"header.svg"}],"error_code":null},"stats":{"duration_ms":11,"tokens":null,"cost_usd":null},"reply_to":[],"asked_by":[]}', 'announce:01m7v0524a5akkjtvrhr465hxv-8', '01m7v05284xv2338p2wdke1k1h', 1795128723716);
INSERT INTO public.messages VALUES ('01m7v052ams44n4nmb4tngfsz9', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 5, 'assistant', 'Noted:  goes on when somebody writes to it. bob is idle: available.', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05284xv2338p2wdke1k1h', 1795128723796);
INSERT INTO public.messages VALUES ('01m7v0529bf88j7z6p33y57g90', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 6, 'user', '[@agent:Made#made] finish', NULL, 'agent:made', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"subagent_announce","trace_id":"01m7v0524b12gqasymrhkrc6g3","hop":1,"idempotency_key":"announce:01m7v0524a5akkjtvrhr465hxv-11","source_agent_id":"made","source_agent_name":"carl (Made)","source_session_key":"agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx","source_run_id":"site#5","task":{"label":"#5 Impossible","prompt":"","tags":[]},"result":{"status":"error","summary":"No way\nWhat waits for it stays blocked until you decide: TaskUpdate with dropDependsOn lets it go on without.","artifacts":[],"error_code":null},"stats":{"duration_ms":7,"tokens":null,"cost_usd":null},"reply_to":[],"asked_by":[]}', 'announce:01m7v0524a5akkjtvrhr465hxv-11', '01m7v0529bf88j7z6p33y57g91', 1795128723755);
INSERT INTO public.messages VALUES ('01m7v052cmemaq4eqfqwqvdans', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 7, 'assistant', 'Noted: pDependsOn lets it go on without. Artifacts: none [/Context]', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v0529bf88j7z6p33y57g91', 1795128723860);
INSERT INTO public.messages VALUES ('01m7v0525sspjvq8xv71dsyrvf', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0524msdneja6wv7qf5c6g', 1, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v0525sspjvq8xv71dsyrvg', '01m7v0525sspjvq8xv71dsyrvg', 1795128723641);
INSERT INTO public.messages VALUES ('01m7v0526hxf2hvx6h4yd18a8x', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v05252w2kgqs58hdhcdwba', 1, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v0526hxf2hvx6h4yd18a8y', '01m7v0526hxf2hvx6h4yd18a8y', 1795128723665);
INSERT INTO public.messages VALUES ('01m7v0526tb6dwgbjnyxjp3p5v', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0525bzr9ayjn18p5nked1', 1, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v0526ttps9g1gpqks447a6', '01m7v0526ttps9g1gpqks447a6', 1795128723674);
INSERT INTO public.messages VALUES ('01m7v0527kyakj6nkc12e0tgns', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0525bzr9ayjn18p5nked1', 2, 'assistant', 'Noted:  free: Impossible. Claim it with TaskClaim if you can do it.', NULL, 'agent:made', 'internal', 0, NULL, NULL, NULL, '01m7v0526ttps9g1gpqks447a6', 1795128723699);
INSERT INTO public.messages VALUES ('01m7v0528hzx4k97951wmncv0t', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v05252w2kgqs58hdhcdwba', 2, 'assistant', 'Noted: e: Write the text. Claim it with TaskClaim if you can do it.', NULL, 'agent:expert', 'internal', 0, NULL, NULL, NULL, '01m7v0526hxf2hvx6h4yd18a8y', 1795128723729);
INSERT INTO public.messages VALUES ('01m7v0529m4ggy9ehfmpmjbqw9', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 1, 'user', 'hello from a paired person', NULL, 'user', 'telegram', 1, '{"channel":"telegram","account":"main","peer":"8"}', '{"sender":"8","sender_name":"Person 8","shared":false}', NULL, '01m7v0529m5jmnmy8dbbn58acb', 1795128723764);
INSERT INTO public.messages VALUES ('01m7v0558myb2t56pedg143ffh', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0524msdneja6wv7qf5c6g', 3, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v0558myb2t56pedg143ffj', '01m7v0558myb2t56pedg143ffj', 1795128726804);
INSERT INTO public.messages VALUES ('01m7v0559my49ecsk480t07hfn', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0524msdneja6wv7qf5c6g', 4, 'assistant', 'read', NULL, 'agent:ops', 'internal', 0, NULL, NULL, NULL, '01m7v0558myb2t56pedg143ffj', 1795128726836);
INSERT INTO public.messages VALUES ('01m7v0559yjfqzjfsn6ferzh2k', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 8, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[],"reply_to":[]}', 'news:01m7v0559yzwh97s0bztssc19q', '01m7v0559yzwh97s0bztssc19q', 1795128726846);
INSERT INTO public.messages VALUES ('01m7v055amjy76em92er876fm0', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 9, 'assistant', 'Noted: ng. It holds a task, and goes on when somebody writes to it.', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v0559yzwh97s0bztssc19q', 1795128726868);
INSERT INTO public.messages VALUES ('01m7v0577fa4fbh9g26vzx98jj', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v05252w2kgqs58hdhcdwba', 3, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v0577fb552gmwc4c7b3jfe', '01m7v0577fb552gmwc4c7b3jfe', 1795128728815);
INSERT INTO public.messages VALUES ('01m7v0578mybdk7h6pm8awy1x1', 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v05252w2kgqs58hdhcdwba', 4, 'assistant', 'I could not get an answer from the model (lab/demo: the provider refused the request (HTTP 400): scripted failure).', NULL, 'agent:expert', 'internal', 0, NULL, '{"error":"provider_failed"}', NULL, '01m7v0577fb552gmwc4c7b3jfe', 1795128728852);
INSERT INTO public.messages VALUES ('01m7v05792ds6ffg9xz6mp8a1v', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 10, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[],"reply_to":[]}', 'news:01m7v05792ds6ffg9xz6mp8a1w', '01m7v05792ds6ffg9xz6mp8a1w', 1795128728866);
INSERT INTO public.messages VALUES ('01m7v0579gvb4cv5vxfs3rx6qj', 'agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 11, 'assistant', 'Noted: failed) It is tried again while mail or a task waits for it.', NULL, 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05792ds6ffg9xz6mp8a1w', 1795128728880);
INSERT INTO public.messages VALUES ('01m7v05a5kedx5vm88bhvtpctz', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0525bzr9ayjn18p5nked1', 3, 'user', '[@team:site] news', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"internal":true,"kind":"team_news","team":"site","asked_by":[]}', 'news:01m7v05a5kw0nc52n4t0b01r03', '01m7v05a5kw0nc52n4t0b01r03', 1795128731827);
INSERT INTO public.messages VALUES ('01m7v05d3r29k6bv4apcwhjka0', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 1, 'user', 'Make a team. DO [{"call": ["TeamCreate", {"team_name": "dock", "description": "By tools"}]}, {"call": ["TeammateSpawn", {"team_name": "dock", "name": "dora", "agent_id": "expert", "task": "DO [{\"hang\": true}]"}]}, {"call": ["TaskCreate", {"team_name": "dock", "subject": "Sweep", "description": "All of it"}]}, {"call": ["SendMessage", {"team_name": "dock", "recipient": "dora", "content": "Hello Dora", "summary": "hello"}]}, {"say": "made"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:second"}', NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734840);
INSERT INTO public.messages VALUES ('01m7v05d44jjr9x6ww6p77ndst', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_aa6c70d390c3_0","name":"TeamCreate","arguments":{"team_name":"dock","description":"By tools"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734852);
INSERT INTO public.messages VALUES ('01m7v05d4fneda6vwkx90zteyj', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 3, 'tool', '{"team_id":"01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0","team_name":"dock","lead_session_key":"agent:main:second"}', '[{"type":"tool_result","call_id":"call_aa6c70d390c3_0","name":"TeamCreate","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734863);
INSERT INTO public.messages VALUES ('01m7v05d4xq3j8945rtsy74700', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 4, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_43673a7331a8_0","name":"TeammateSpawn","arguments":{"team_name":"dock","name":"dora","agent_id":"expert","task":"DO [{\"hang\": true}]"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734877);
INSERT INTO public.messages VALUES ('01m7v05d52ca5paaagcp8ztrhe', 'agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', '01m7v05d52j39m0grnx4s5ha5s', 1, 'user', 'DO [{"hang": true}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', '{"asked_by":["web:default:agent:main:second"]}', 'begin:agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', '01m7v05d52j39m0grnx4s5ha5r', 1795128734882);
INSERT INTO public.messages VALUES ('01m7v05d5ds2y3rp4kypkxyj6e', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 5, 'tool', '{"name":"dora","session_key":"agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0","inherited":[]}', '[{"type":"tool_result","call_id":"call_43673a7331a8_0","name":"TeammateSpawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734893);
INSERT INTO public.messages VALUES ('01m7v05g4tvysc5jppn3nv47hx', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 12, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_06227b4ae3cb_0","name":"TeamShutdown","arguments":{"team_name":"dock","reason":"done"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g4bfhf0hny0s88n7mmc', 1795128737946);
INSERT INTO public.messages VALUES ('01m7v05d5msywa34257be2cj8g', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 6, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_678c53b5217c_0","name":"TaskCreate","arguments":{"team_name":"dock","subject":"Sweep","description":"All of it"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734900);
INSERT INTO public.messages VALUES ('01m7v05d6272jvqnt70ex7em95', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 7, 'tool', '{"task_id":1}', '[{"type":"tool_result","call_id":"call_678c53b5217c_0","name":"TaskCreate","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734914);
INSERT INTO public.messages VALUES ('01m7v05d664qza64gfkra5t497', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 8, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_0f2811d2ec63_0","name":"SendMessage","arguments":{"team_name":"dock","recipient":"dora","content":"Hello Dora","summary":"hello"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734918);
INSERT INTO public.messages VALUES ('01m7v05d6b6veqcb5bexx6epr0', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 9, 'tool', '{"message_ids":["01m7v05d3r90v7ngvfpqfg22f0-call_0f2811d2ec63_0-dora"],"recipients":["dora"],"request_id":null}', '[{"type":"tool_result","call_id":"call_0f2811d2ec63_0","name":"SendMessage","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734923);
INSERT INTO public.messages VALUES ('01m7v05d6fmkjjv33mg8n80fw8', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 10, 'assistant', 'made', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0', 1795128734927);
INSERT INTO public.messages VALUES ('01m7v05g4be6adtx8pyevxdphf', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 11, 'user', 'End it. DO [{"call": ["TeamShutdown", {"team_name": "dock", "reason": "done"}]}, {"say": "asked"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:second"}', NULL, NULL, '01m7v05g4bfhf0hny0s88n7mmc', 1795128737931);
INSERT INTO public.messages VALUES ('01m7v05g64ddeyj6php4yzz306', 'agent:main:waits', '01m7v05g64ddeyj6php4yzz308', 1, 'user', 'Delegate and wait. DO [{"call": ["delegate_to_agent", {"agent_id": "expert", "task": "DO [{\"hang\": true, \"partial\": \"So far \"}]", "mode": "sync", "stream": true, "timeout_ms": 300000}]}, {"say": "done"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:waits"}', NULL, NULL, '01m7v05g64ddeyj6php4yzz307', 1795128737988);
INSERT INTO public.messages VALUES ('01m7v05g687mrbq4akg2j7rvwn', 'agent:main:parent', '01m7v05g69zp7dtmn83e997he2', 1, 'user', 'Begin one that runs. DO [{"call": ["sessions_spawn", {"task": "DO [{\"hang\": true}]", "label": "still running", "cleanup": "delete"}]}, {"say": "started"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:parent"}', NULL, NULL, '01m7v05g69mp3y6csbgwnactdz', 1795128737993);
INSERT INTO public.messages VALUES ('01m7v05qt89wmze729h16q1yb3', 'agent:main:telegram:dm:42', '01m7v05qt89wmze729h16q1yb5', 1, 'user', 'DO [{"hang": true, "partial": "A long thought that is not yet at its end, and so is shown as a draft in the chat while it grows. "}]', NULL, 'user', 'telegram', 1, '{"channel":"telegram","account":"main","peer":"42"}', '{"sender":"42","sender_name":"Person 42","shared":false}', NULL, '01m7v05qt89wmze729h16q1yb4', 1795128745800);
INSERT INTO public.messages VALUES ('01m7v05qth4cqm2m903jbb2mtm', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 3, 'user', 'DO [{"call": ["sessions_spawn", {"task": "Work for a paired person. DO [{\"hang\": true}]", "label": "of a person"}]}, {"say": "started"}]', NULL, 'user', 'telegram', 1, '{"channel":"telegram","account":"main","peer":"8"}', '{"sender":"8","sender_name":"Person 8","shared":false}', NULL, '01m7v05qth4cqm2m903jbb2mtn', 1795128745809);
INSERT INTO public.messages VALUES ('01m7v05qw55pg6s0khnjfhxyhc', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 4, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_7f8eb6175cb9_0","name":"sessions_spawn","arguments":{"task":"Work for a paired person. DO [{\"hang\": true}]","label":"of a person"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05qth4cqm2m903jbb2mtn', 1795128745861);
INSERT INTO public.messages VALUES ('01m7v05qw90sn9tkh8gd34b6k3', 'agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', '01m7v05qw9abg5fa1abaqp4fzm', 1, 'user', 'Work for a paired person. DO [{"hang": true}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v05qth4cqm2m903jbb2mtn-call_7f8eb6175cb9_0', '01m7v05qw977d38s0xs0d1w9be', 1795128745865);
INSERT INTO public.messages VALUES ('01m7v05qwc47d1v2jajhb5f7xq', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 5, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:004c9eac6fb276315aa261fd7fef763a","run_id":"01m7v05qth4cqm2m903jbb2mtn-call_7f8eb6175cb9_0"}', '[{"type":"tool_result","call_id":"call_7f8eb6175cb9_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05qth4cqm2m903jbb2mtn', 1795128745868);
INSERT INTO public.messages VALUES ('01m7v05qwjqne6qdkwmvfzn5p8', 'agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 6, 'assistant', 'started', NULL, 'agent:main', 'telegram', 1, NULL, NULL, NULL, '01m7v05qth4cqm2m903jbb2mtn', 1795128745874);
INSERT INTO public.messages VALUES ('01m7v05g5sbaj363mkn26eznv3', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 13, 'tool', '{"status":"shutting_down","members":[{"name":"dora","request_id":"01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora-stop","answer":null}]}', '[{"type":"tool_result","call_id":"call_06227b4ae3cb_0","name":"TeamShutdown","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g4bfhf0hny0s88n7mmc', 1795128737977);
INSERT INTO public.messages VALUES ('01m7v05g60vh5sjgnm5gd3ae0n', 'agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 14, 'assistant', 'asked', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v05g4bfhf0hny0s88n7mmc', 1795128737984);
INSERT INTO public.messages VALUES ('01m7v05g80acpj0tb5nxgz3m1v', 'agent:main:parent', '01m7v05g69zp7dtmn83e997he2', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_c6aea5bdcccd_0","name":"sessions_spawn","arguments":{"task":"DO [{\"hang\": true}]","label":"still running","cleanup":"delete"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g69mp3y6csbgwnactdz', 1795128738048);
INSERT INTO public.messages VALUES ('01m7v05g84tvh4jvhvj5k3yegb', 'agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', '01m7v05g84tvh4jvhvj5k3yegd', 1, 'user', 'DO [{"hang": true}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v05g69mp3y6csbgwnactdz-call_c6aea5bdcccd_0', '01m7v05g84tvh4jvhvj5k3yegc', 1795128738052);
INSERT INTO public.messages VALUES ('01m7v05g87rfzy4ba8j2852yj8', 'agent:main:parent', '01m7v05g69zp7dtmn83e997he2', 3, 'tool', '{"status":"accepted","child_session_key":"agent:main:subagent:29a765fb1c028292e3a8c7310fab610c","run_id":"01m7v05g69mp3y6csbgwnactdz-call_c6aea5bdcccd_0"}', '[{"type":"tool_result","call_id":"call_c6aea5bdcccd_0","name":"sessions_spawn","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g69mp3y6csbgwnactdz', 1795128738055);
INSERT INTO public.messages VALUES ('01m7v05g8saaer3q237grrz60b', 'agent:main:club', '01m7v05g8sy1fg0nr4n4jqphmw', 1, 'user', 'What do all of you think? DO [{"hang": true}]', '[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"}]', 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:club"}', '{"round":{"id":"01m7v05g8ngkrwvsek6s8s74pv","seat":0}}', 'round-01m7v05g8ngkrwvsek6s8s74pv', '01m7v05g8saaer3q237grrz60c', 1795128738073);
INSERT INTO public.messages VALUES ('01m7v05g9246ye92vzft4hnznw', 'agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcd', 1, 'user', 'Do two steps. DO [{"call": ["todo", {"items": [{"text": "step one", "state": "done"}]}]}, {"hang": true}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:cut"}', NULL, NULL, '01m7v05g92y3kcrq4wsz9wafcc', 1795128738082);
INSERT INTO public.messages VALUES ('01m7v05g99072xajjt3gd98fdf', 'agent:main:tool', '01m7v05g99hhj6gr63hrk0md9n', 1, 'user', 'Sleep in a shell. DO [{"call": ["shell", {"command": "sleep 40"}]}, {"say": "slept"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:tool"}', NULL, NULL, '01m7v05g99hhj6gr63hrk0md9m', 1795128738089);
INSERT INTO public.messages VALUES ('01m7v05g9eqjcj366qfnchn083', 'agent:main:steered', '01m7v05g9eqjcj366qfnchn085', 1, 'user', 'A long task. DO [{"slow": 3}, {"call": ["todo", {"items": [{"text": "long task"}]}]}, {"say": "the long task is done"}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:steered"}', NULL, NULL, '01m7v05g9eqjcj366qfnchn084', 1795128738094);
INSERT INTO public.messages VALUES ('01m7v05h8wv1e0ext8e1dxqjvs', 'agent:main:steered', '01m7v05g9eqjcj366qfnchn085', 5, 'user', 'Quick, something else. DO [{"hang": true}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:steered"}', NULL, NULL, '01m7v05h8wv1e0ext8e1dxqjvt', 1795128739100);
INSERT INTO public.messages VALUES ('01m7v05n639tq489tnma92gddn', 'agent:main:held', '01m7v05n63w7z0mfgg0jknpjhm', 1, 'user', 'First of three. DO [{"hang": true}]', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:held"}', NULL, NULL, '01m7v05n63w7z0mfgg0jknpjhk', 1795128743107);
INSERT INTO public.messages VALUES ('01m7v05q4rze5bvat74jqwsw44', 'agent:main:held', '01m7v05n63w7z0mfgg0jknpjhm', 2, 'user', 'Second of three.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:held"}', NULL, 'second', '01m7v05q4rze5bvat74jqwsw45', 1795128745112);
INSERT INTO public.messages VALUES ('01m7v05q51e170k6dz9pmd776k', 'agent:main:webhook:desk:dm:down', '01m7v05q51vvk90mew7k23ddmb', 1, 'user', 'a question whose reply waits', NULL, 'hook', 'webhook', 1, '{"channel":"webhook","account":"desk","peer":"down"}', NULL, NULL, '01m7v05q51e170k6dz9pmd776m', 1795128745121);
INSERT INTO public.messages VALUES ('01m7v05g6gq81abz70sg84drmm', 'agent:main:waits', '01m7v05g64ddeyj6php4yzz308', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_d68d4a4f983c_0","name":"delegate_to_agent","arguments":{"agent_id":"expert","task":"DO [{\"hang\": true, \"partial\": \"So far \"}]","mode":"sync","stream":true,"timeout_ms":300000}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g64ddeyj6php4yzz307', 1795128738000);
INSERT INTO public.messages VALUES ('01m7v05g6m5d9he0mha04m7q18', 'agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', '01m7v05g6mftvj7p42z4j646ty', 1, 'user', 'DO [{"hang": true, "partial": "So far "}]', NULL, 'agent:main', 'internal', 0, '{"channel":"internal","account":"","peer":""}', NULL, '01m7v05g64ddeyj6php4yzz307-call_d68d4a4f983c_0', '01m7v05g6m6qyr7fkhnk0pghd5', 1795128738004);
INSERT INTO public.messages VALUES ('01m7v05g8gnh3pmrn5xn530tfe', 'agent:main:parent', '01m7v05g69zp7dtmn83e997he2', 4, 'assistant', 'started', NULL, 'agent:main', 'web', 1, NULL, NULL, NULL, '01m7v05g69mp3y6csbgwnactdz', 1795128738064);
INSERT INTO public.messages VALUES ('01m7v05g9q6ap9kf6fw8xw9a87', 'agent:main:tool', '01m7v05g99hhj6gr63hrk0md9n', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_ed8248febaad_0","name":"shell","arguments":{"command":"sleep 40"}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g99hhj6gr63hrk0md9m', 1795128738103);
INSERT INTO public.messages VALUES ('01m7v05gasyz065kc7zs3rt3hh', 'agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcd', 2, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_02ceba20285c_0","name":"todo","arguments":{"items":[{"text":"step one","state":"done"}]}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g92y3kcrq4wsz9wafcc', 1795128738137);
INSERT INTO public.messages VALUES ('01m7v05gavzstv5k29wjqvhbwm', 'agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcd', 3, 'tool', '1. [x] step one
1 of 1 done', '[{"type":"tool_result","call_id":"call_02ceba20285c_0","name":"todo","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g92y3kcrq4wsz9wafcc', 1795128738139);
INSERT INTO public.messages VALUES ('01m7v05k8znc1byxkyd4bpd0aq', 'agent:main:steered', '01m7v05g9eqjcj366qfnchn085', 3, 'assistant', 'I will call a tool.', '[{"type":"tool_call","id":"call_51371626d466_0","name":"todo","arguments":{"items":[{"text":"long task"}]}}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g9eqjcj366qfnchn084', 1795128741151);
INSERT INTO public.messages VALUES ('01m7v05k920vzv6zcgbm5wham3', 'agent:main:steered', '01m7v05g9eqjcj366qfnchn085', 4, 'tool', '1. [ ] long task
0 of 1 done', '[{"type":"tool_result","call_id":"call_51371626d466_0","name":"todo","is_error":false}]', 'agent:main', 'internal', 0, NULL, NULL, NULL, '01m7v05g9eqjcj366qfnchn084', 1795128741154);
INSERT INTO public.messages VALUES ('01m7v05q4w97c83ccmmera3tba', 'agent:main:held', '01m7v05n63w7z0mfgg0jknpjhm', 3, 'user', 'Third of three.', NULL, 'user', 'web', 1, '{"channel":"web","account":"default","peer":"agent:main:held"}', NULL, NULL, '01m7v05q4rze5bvat74jqwsw45', 1795128745116);
INSERT INTO public.messages VALUES ('01m7v05q57vhf0t52xp3k6tw1q', 'agent:main:webhook:desk:dm:down', '01m7v05q51vvk90mew7k23ddmb', 2, 'assistant', 'Noted: a question whose reply waits', NULL, 'agent:main', 'webhook', 1, NULL, NULL, NULL, '01m7v05q51e170k6dz9pmd776m', 1795128745127);
INSERT INTO public.outbox VALUES ('01m7v04ywxjrkkahkzyf2gnf1f', '01m7v04yv7r7ky3rgb3hh47861-0', 'agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47861', 0, 'webhook', '{"channel":"webhook","account":"desk","peer":"cust"}', 'Noted: first question', 'sent', 1, NULL, NULL, 1795128720290, 1795129620284, 'p1', NULL, 1795128720284, 1795128720290, 'desk');
INSERT INTO public.outbox VALUES ('01m7v04zwnw68zqde67k0v27yr', '01m7v04zwamh8vqvtvvpsmd87h-0', 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87h', 0, 'webhook', '{"channel":"webhook","account":"desk","peer":"refused"}', 'Noted: a question whose reply is refused', 'failed', 1, NULL, NULL, 1795128721307, 1795129621301, NULL, 'the platform answered 400 Bad Request', 1795128721301, 1795128721307, 'desk');
INSERT INTO public.outbox VALUES ('01m7v04zykbmgnqj1hqe472p2n', '01m7v04zwrxv695fq6jd4smk31-0', 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk31', 0, 'webhook', '{"channel":"webhook","account":"bell","peer":"cust"}', 'Noted: a question whose reply is cut', 'unknown', 1, NULL, NULL, 1795128721366, 1795129621362, NULL, 'the connection broke before an answer came: connection closed before message completed', 1795128721362, 1795128721366, 'bell');
INSERT INTO public.outbox VALUES ('01m7v0521psag28akw7b448kxn', 'answer-01m7v0521na6ftgb0aw44x29ab-0', 'agent:main:telegram:dm:7', '01m7v0521na6ftgb0aw44x29ab', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"7"}', 'I do not know you yet. Show this code to the owner of this assistant: 5U3FNHJE
It is good for an hour: polyclaw pairing approve 5U3FNHJE', 'sent', 1, NULL, NULL, 1795128723513, 1795129623509, '9', NULL, 1795128723509, 1795128723513, 'main');
INSERT INTO public.outbox VALUES ('01m7v0521q6chzy3ec9hkxzg80', 'answer-01m7v0521q5h94kx0dqs9a6g48-0', 'agent:main:telegram:dm:8', '01m7v0521q5h94kx0dqs9a6g48', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"8"}', 'I do not know you yet. Show this code to the owner of this assistant: TLBBS687
It is good for an hour: polyclaw pairing approve TLBBS687', 'sent', 1, NULL, NULL, 1795128723515, 1795129623511, '10', NULL, 1795128723511, 1795128723515, 'main');
INSERT INTO public.outbox VALUES ('01m7v0523s1z24t1hnwnrscyqd', '01m7v0523qverzb6dhgc04kxk1-0', 'agent:main:main', '01m7v0523qverzb6dhgc04kxk1', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"8"}', 'You are let in: write to me now.', 'sent', 1, NULL, NULL, 1795128723582, 1795129623575, '11', NULL, 1795128723575, 1795128723582, 'main');
INSERT INTO public.outbox VALUES ('01m7v0529svy4dk42ggmxzz0ft', 'answer-01m7v0529rh5dge9m71tnezwn7-0', 'agent:main:telegram:dm:42', '01m7v0529rh5dge9m71tnezwn7', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"42"}', 'Nothing was said here yet.', 'sent', 1, NULL, NULL, 1795128723772, 1795129623768, '12', NULL, 1795128723768, 1795128723772, 'main');
INSERT INTO public.outbox VALUES ('01m7v0529vwqk75p81np3afwep', '01m7v0529m5jmnmy8dbbn58acb-0', 'agent:main:telegram:dm:8', '01m7v0529m5jmnmy8dbbn58acb', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"8"}', 'Noted: hello from a paired person', 'sent', 1, NULL, NULL, 1795128723775, 1795129623771, '13', NULL, 1795128723771, 1795128723775, 'main');
INSERT INTO public.outbox VALUES ('01m7v05qwjqne6qdkwmvfzn5p9', '01m7v05qth4cqm2m903jbb2mtn-0', 'agent:main:telegram:dm:8', '01m7v05qth4cqm2m903jbb2mtn', 0, 'telegram', '{"channel":"telegram","account":"main","peer":"8"}', 'started', 'sent', 1, NULL, NULL, 1795128745880, 1795129645874, '14', NULL, 1795128745874, 1795128745880, 'main');
INSERT INTO public.outbox VALUES ('01m7v05q57vhf0t52xp3k6tw1r', '01m7v05q51e170k6dz9pmd776m-0', 'agent:main:webhook:desk:dm:down', '01m7v05q51e170k6dz9pmd776m', 0, 'webhook', '{"channel":"webhook","account":"desk","peer":"down"}', 'Noted: a question whose reply waits', 'pending', 3, NULL, NULL, 1795128757146, 1795129645127, NULL, 'the platform answered 503 Service Unavailable', 1795128745127, 1795128749146, 'desk');
INSERT INTO public.pairings VALUES ('telegram', 'main', '7', 'Person 7', '5U3FNHJE', 'pending', 1, '{"channel":"telegram","account":"main","peer":"7"}', 1795128723508, 1795128723508, 1795132323508);
INSERT INTO public.pairings VALUES ('telegram', 'main', '8', 'Person 8', 'TLBBS687', 'approved', NULL, '{"channel":"telegram","account":"main","peer":"8"}', 1795128723510, 1795128723510, 1795132323510);
INSERT INTO public.reservations VALUES ('instance', '01m7v05a5kw0nc52n4t0b01r03', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12907, 21099000, 1795128731841);
INSERT INTO public.reservations VALUES ('session:agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v05a5kw0nc52n4t0b01r03', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12907, 21099000, 1795128731841);
INSERT INTO public.reservations VALUES ('session:agent:main:lead', '01m7v05a5kw0nc52n4t0b01r03', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12907, 21099000, 1795128731841);
INSERT INTO public.reservations VALUES ('team:site', '01m7v05a5kw0nc52n4t0b01r03', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12907, 21099000, 1795128731841);
INSERT INTO public.reservations VALUES ('instance', '01m7v05d52j39m0grnx4s5ha5r', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12670, 20862000, 1795128734901);
INSERT INTO public.reservations VALUES ('session:agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', '01m7v05d52j39m0grnx4s5ha5r', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12670, 20862000, 1795128734901);
INSERT INTO public.reservations VALUES ('session:agent:main:second', '01m7v05d52j39m0grnx4s5ha5r', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12670, 20862000, 1795128734901);
INSERT INTO public.reservations VALUES ('team:dock', '01m7v05d52j39m0grnx4s5ha5r', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 12670, 20862000, 1795128734901);
INSERT INTO public.reservations VALUES ('instance', '01m7v05g6m6qyr7fkhnk0pghd5', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 10921, 19113000, 1795128738012);
INSERT INTO public.reservations VALUES ('session:agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', '01m7v05g6m6qyr7fkhnk0pghd5', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 10921, 19113000, 1795128738012);
INSERT INTO public.reservations VALUES ('session:agent:main:waits', '01m7v05g6m6qyr7fkhnk0pghd5', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 10921, 19113000, 1795128738012);
INSERT INTO public.reservations VALUES ('instance', '01m7v05g8saaer3q237grrz60c', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 14660, 22852000, 1795128738079);
INSERT INTO public.reservations VALUES ('session:agent:main:club', '01m7v05g8saaer3q237grrz60c', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 14660, 22852000, 1795128738079);
INSERT INTO public.reservations VALUES ('instance', '01m7v05g84tvh4jvhvj5k3yegc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11258, 19450000, 1795128738101);
INSERT INTO public.reservations VALUES ('session:agent:main:parent', '01m7v05g84tvh4jvhvj5k3yegc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11258, 19450000, 1795128738101);
INSERT INTO public.reservations VALUES ('session:agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', '01m7v05g84tvh4jvhvj5k3yegc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11258, 19450000, 1795128738101);
INSERT INTO public.reservations VALUES ('instance', '01m7v05g92y3kcrq4wsz9wafcc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13184, 21376000, 1795128738140);
INSERT INTO public.reservations VALUES ('session:agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcc', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13184, 21376000, 1795128738140);
INSERT INTO public.reservations VALUES ('instance', '01m7v05h8wv1e0ext8e1dxqjvt', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13189, 21381000, 1795128741161);
INSERT INTO public.reservations VALUES ('session:agent:main:steered', '01m7v05h8wv1e0ext8e1dxqjvt', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13189, 21381000, 1795128741161);
INSERT INTO public.reservations VALUES ('instance', '01m7v05n63w7z0mfgg0jknpjhk', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13048, 21240000, 1795128743113);
INSERT INTO public.reservations VALUES ('session:agent:main:held', '01m7v05n63w7z0mfgg0jknpjhk', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13048, 21240000, 1795128743113);
INSERT INTO public.reservations VALUES ('instance', '01m7v05qt89wmze729h16q1yb4', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13136, 21328000, 1795128745805);
INSERT INTO public.reservations VALUES ('session:agent:main:telegram:dm:42', '01m7v05qt89wmze729h16q1yb4', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 13136, 21328000, 1795128745805);
INSERT INTO public.reservations VALUES ('instance', '01m7v05qw977d38s0xs0d1w9be', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11120, 19312000, 1795128745917);
INSERT INTO public.reservations VALUES ('session:agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', '01m7v05qw977d38s0xs0d1w9be', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11120, 19312000, 1795128745917);
INSERT INTO public.reservations VALUES ('session:agent:main:telegram:dm:8', '01m7v05qw977d38s0xs0d1w9be', 'node-1012deea35ff/01m7v04tebphxpd9e5dz4h31rw', 1, 11120, 19312000, 1795128745917);
INSERT INTO public.rounds VALUES ('01m7v05g8ngkrwvsek6s8s74pv', 'What do all of you think? DO [{"hang": true}]', '[{"type":"attachment","name":"pixel.png","media_type":"image/png","media":"2e9b06dc65a4dec84a3eb3124553ec93ca27c78221e64ab2177d0f1412cfcb20"}]', '{"channel":"web","account":"default","peer":"agent:main:club"}', NULL, 0, 1, 1, 1, 1795128738070);
INSERT INTO public.runs VALUES ('01m7v04y83wzstmp9rdv6d714m-call_5814b633695f_0', 'subagent', 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', 'main', 'agent:main:family', '01m7v04y83wzstmp9rdv6d714m', '01m7v04y83z794fm7kx5cj7v8t', 1, '{"label":"first child","prompt":"DO [{\"say\": \"The child is done.\"}]\n\nAnswer with JSON alone that fits this schema:\n{\"type\":\"string\"}","tags":["a","b"],"schema":{"type":"string"},"asked_by":["web:default:agent:main:family"]}', '[{"channel":"web","account":"default","peer":"agent:main:family"}]', NULL, 1795129619676, 0, 'ok', 1, '{"text":"The child is done.","tokens":132,"cost_usd":0.000144}', 1795128719676, 1795128719727, 'main', 3600000, 1795132319727, NULL, NULL, 0);
INSERT INTO public.runs VALUES ('01m7v04ya9eed9gmtmxrhq8wg3-call_0ded34785cff_0', 'subagent', 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', 'main', 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg3', '01m7v04ya9rn6rs9zr7yy8ypfc', 1, '{"label":"chained","prompt":"DO [{\"say\": \"DO [{\\\"call\\\": [\\\"sessions_spawn\\\", {\\\"task\\\": \\\"second of the chain\\\", \\\"label\\\": \\\"second\\\"}]}, {\\\"say\\\": \\\"second started\\\"}]\"}]","tags":[],"asked_by":["web:default:agent:main:chain"]}', '[{"channel":"web","account":"default","peer":"agent:main:chain"}]', NULL, 1795129619702, 0, 'ok', 1, '{"text":"DO [{\"call\": [\"sessions_spawn\", {\"task\": \"second of the chain\", \"label\": \"second\"}]}, {\"say\": \"second started\"}]","tokens":134,"cost_usd":0.000146}', 1795128719702, 1795128719760, 'main', 3600000, 1795132319760, NULL, NULL, 0);
INSERT INTO public.runs VALUES ('01m7v04yb3hx15b4a4tzyv04th-call_c9ad97d6012e_0', 'delegate', 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', 'expert', 'agent:main:family', '01m7v04yb3hx15b4a4tzyv04th', '01m7v04yb3y47k3r0jbye9fksr', 1, '{"label":"DO [{\"say\": \"The expert answer.\"}]","prompt":"DO [{\"say\": \"The expert answer.\"}]","tags":[],"asked_by":["web:default:agent:main:family"]}', '[{"channel":"web","account":"default","peer":"agent:main:family"}]', '01m7v04yb3hx15b4a4tzyv04th', 1795128779727, 0, 'ok', 1, '{"text":"The expert answer.","tokens":124,"cost_usd":0.000136}', 1795128719727, 1795128719779, 'main', 3600000, 1795132319779, NULL, NULL, 0);
INSERT INTO public.runs VALUES ('01m7v04ycggkwx2h94771ecahj-call_469eeca9351f_0', 'subagent', 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', 'main', 'agent:main:chain', '01m7v04ycggkwx2h94771ecahj', '01m7v04ya9rn6rs9zr7yy8ypfc', 2, '{"label":"second","prompt":"second of the chain","tags":[],"asked_by":["internal::","web:default:agent:main:chain"]}', '[{"channel":"web","account":"default","peer":"agent:main:chain"}]', NULL, 1795129619823, 0, 'ok', 1, '{"text":"Noted: second of the chain","tokens":131,"cost_usd":0.000143}', 1795128719823, 1795128719871, 'main', 3600000, 1795132319871, 'automatic_budget_spent', NULL, 0);
INSERT INTO public.runs VALUES ('01m7v04ykwyqsa7054h2mprpm4-call_5425beec18fc_0', 'subagent', 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', 'main', 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm4', '01m7v04ykwyqsa7054h2mprpm6', 1, '{"label":"fishing","prompt":"DO [{\"say\": \"DO [{\\\"fail\\\": 400}] The catch is twelve fish.\"}]","tags":[],"asked_by":["web:default:agent:main:fish"]}', '[{"channel":"web","account":"default","peer":"agent:main:fish"}]', NULL, 1795129620007, 0, 'ok', 1, '{"text":"DO [{\"fail\": 400}] The catch is twelve fish.","tokens":124,"cost_usd":0.000136}', 1795128720007, 1795128720059, 'main', 3600000, 1795132320059, NULL, NULL, 0);
INSERT INTO public.runs VALUES ('01m7v05g64ddeyj6php4yzz307-call_d68d4a4f983c_0', 'delegate', 'agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', 'expert', 'agent:main:waits', '01m7v05g64ddeyj6php4yzz307', '01m7v05g64ddeyj6php4yzz309', 1, '{"label":"DO [{\"hang\": true, \"partial\": \"So far \"}]","prompt":"DO [{\"hang\": true, \"partial\": \"So far \"}]","tags":[],"asked_by":["web:default:agent:main:waits"]}', '[{"channel":"web","account":"default","peer":"agent:main:waits"}]', '01m7v05g64ddeyj6php4yzz307', 1795129038004, 0, 'running', 0, NULL, 1795128738004, NULL, 'main', 3600000, NULL, NULL, '{"session_key":"agent:main:waits","turn_id":"01m7v05g64ddeyj6php4yzz307","addresses":[{"channel":"web","account":"default","peer":"agent:main:waits"}]}', 0);
INSERT INTO public.runs VALUES ('01m7v05g69mp3y6csbgwnactdz-call_c6aea5bdcccd_0', 'subagent', 'agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', 'main', 'agent:main:parent', '01m7v05g69mp3y6csbgwnactdz', '01m7v05g69zp7dtmn83e997he3', 1, '{"label":"still running","prompt":"DO [{\"hang\": true}]","tags":[],"asked_by":["web:default:agent:main:parent"]}', '[{"channel":"web","account":"default","peer":"agent:main:parent"}]', NULL, 1795129638052, 1, 'running', 0, NULL, 1795128738052, NULL, 'main', 3600000, NULL, NULL, NULL, 0);
INSERT INTO public.runs VALUES ('01m7v05qth4cqm2m903jbb2mtn-call_7f8eb6175cb9_0', 'subagent', 'agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', 'main', 'agent:main:telegram:dm:8', '01m7v05qth4cqm2m903jbb2mtn', '01m7v05qtha41p63rp8rtk9x60', 1, '{"label":"of a person","prompt":"Work for a paired person. DO [{\"hang\": true}]","tags":[],"asked_by":["telegram:main:8"]}', '[{"channel":"telegram","account":"main","peer":"8"}]', NULL, 1795129645865, 0, 'running', 0, NULL, 1795128745865, NULL, 'main', 3600000, NULL, NULL, NULL, 0);
INSERT INTO public.schedules VALUES ('morning', '30 8 * * 1-5 Europe/Berlin', 1795128715755, 1795128715755);
INSERT INTO public.schedules VALUES ('heartbeat:main', '6h UTC', 1795128715757, 1795128715757);
INSERT INTO public.schedules VALUES ('tide', 'every 6h UTC', 1795128716043, 1795128716043);
INSERT INTO public.schedules VALUES ('report', '0 9 * * 1 UTC', 1795128716125, 1795128716125);
INSERT INTO public.schema_version VALUES (1);
INSERT INTO public.schema_version VALUES (2);
INSERT INTO public.schema_version VALUES (3);
INSERT INTO public.schema_version VALUES (4);
INSERT INTO public.schema_version VALUES (5);
INSERT INTO public.schema_version VALUES (6);
INSERT INTO public.schema_version VALUES (7);
INSERT INTO public.schema_version VALUES (8);
INSERT INTO public.schema_version VALUES (9);
INSERT INTO public.schema_version VALUES (10);
INSERT INTO public.schema_version VALUES (11);
INSERT INTO public.schema_version VALUES (12);
INSERT INTO public.schema_version VALUES (13);
INSERT INTO public.schema_version VALUES (14);
INSERT INTO public.schema_version VALUES (15);
INSERT INTO public.schema_version VALUES (16);
INSERT INTO public.schema_version VALUES (17);
INSERT INTO public.schema_version VALUES (18);
INSERT INTO public.schema_version VALUES (19);
INSERT INTO public.schema_version VALUES (20);
INSERT INTO public.schema_version VALUES (21);
INSERT INTO public.seats VALUES ('01m7v05g8ngkrwvsek6s8s74pv', 1, 'ops', 'agent:ops:club', NULL);
INSERT INTO public.seats VALUES ('01m7v05g8ngkrwvsek6s8s74pv', 0, 'main', 'agent:main:club', '01m7v05g8saaer3q237grrz60c');
INSERT INTO public.sessions VALUES ('agent:main:lead', '01m7v0523wk83qrwww94kj95cd', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:lead', NULL, 'main', 0, 0, NULL, 'lead', 'active', 'I lead a team.', 12, NULL, 0, 1795128723580, 1795128728880, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:main', '01m7v04tgrddrqww744vsg0a1p', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:main', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Plan the day. DO [{"call": ["todo", {"items": [{"text": "pai', 19, NULL, 0, 1795128715800, 1795128716117, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:second', '01m7v05d3rvj9szax7xtf708w2', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:second', NULL, 'main', 0, 0, NULL, 'lead', 'active', 'Make a team. DO [{"call": ["TeamCreate", {"team_name": "dock', 15, NULL, 0, 1795128734840, 1795128737984, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', '01m7v05g6mftvj7p42z4j646ty', 'expert', 'expert', NULL, NULL, 0, 0, 'agent:main:waits', 'internal', '', '', NULL, 'subagent', 1, 1, NULL, NULL, 'active', 'DO [{"hang": true, "partial": "So far "}]', 2, NULL, 0, 1795128738004, 1795128738004, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', '01m7v04y3zxyvmv1588kf3t6gr', 'made', 'made', 'lab', 'demo', 1, 1, NULL, NULL, NULL, NULL, NULL, 'main', 0, 0, NULL, NULL, 'active', 'A titled session', 3, NULL, 0, 1795128719487, 1795128719553, 'agent:main:folded', NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:folded', '01m7v04y63jcjwdj3zkky12g7d', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:folded', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Fact number 0: the harbour has 0 boats.', 17, NULL, 14, 1795128716131, 1795128719616, NULL, 43200000, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', '01m7v04y9wyzqr918jpx5erpb5', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:family', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'first child', 3, NULL, 0, 1795128719676, 1795128719727, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', '01m7v04yapqyf7121nfsvfcgqs', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:chain', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'chained', 3, NULL, 0, 1795128719702, 1795128719760, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:expert:delegate:75635401afef85a85a75f15a120f4220', '01m7v04ybfeca4xnwpj8x7hrw1', 'expert', 'expert', NULL, NULL, 0, 0, 'agent:main:family', 'internal', '', '', NULL, 'subagent', 1, 1, NULL, NULL, 'active', 'DO [{"say": "The expert answer."}]', 3, NULL, 0, 1795128719727, 1795128719779, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:family', '01m7v04y83z794fm7kx5cj7v8s', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:family', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Begin one. DO [{"call": ["sessions_spawn", {"task": "DO [{\"', 13, NULL, 0, 1795128719619, 1795128719839, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', '01m7v04yefpp7axsgqk74apmqy', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:chain', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'second', 3, NULL, 0, 1795128719823, 1795128719871, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg4', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:chain', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Begin a chain. DO [{"call": ["sessions_spawn", {"task": "DO ', 10, NULL, 0, 1795128719689, 1795128719871, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', '01m7v04ym7m8pc8n6q4wr12dz1', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:fish', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'fishing', 3, NULL, 0, 1795128720007, 1795128720059, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:fish', '01m7v04ykwyqsa7054h2mprpm5', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:fish', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Go fishing. DO [{"call": ["sessions_spawn", {"task": "DO [{\', 7, NULL, 0, 1795128719996, 1795128720113, NULL, NULL, NULL, NULL, 5);
INSERT INTO public.sessions VALUES ('agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0f', 'ops', 'ops', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:ops:waiting', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Write b. DO [{"call": ["write_file", {"path": "b.txt", "cont', 3, NULL, 0, 1795128720228, 1795128720234, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:ops:decided', '01m7v04ymhtdq41s6jd521812b', 'ops', 'ops', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:ops:decided', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Write. DO [{"call": ["write_file", {"path": "a.txt", "conten', 5, NULL, 0, 1795128720017, 1795128720242, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47862', 'main', 'main', NULL, NULL, 1, 1, NULL, 'webhook', 'desk', 'cust', NULL, 'main', 0, 0, NULL, NULL, 'active', 'first question', 3, NULL, 0, 1795128720231, 1795128720284, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87j', 'main', 'main', NULL, NULL, 1, 1, NULL, 'webhook', 'desk', 'refused', NULL, 'main', 0, 0, NULL, NULL, 'active', 'a question whose reply is refused', 3, NULL, 0, 1795128721290, 1795128721301, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk32', 'main', 'main', NULL, NULL, 1, 1, NULL, 'webhook', 'bell', 'cust', NULL, 'main', 0, 0, NULL, NULL, 'active', 'a question whose reply is cut', 3, NULL, 0, 1795128721304, 1795128721362, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v05252w2kgqs58hdhcdwba', 'expert', 'expert', NULL, NULL, 0, 0, 'agent:main:lead', 'internal', '', '', NULL, 'teammate', 1, 0, NULL, 'member', 'active', 'bob', 5, NULL, 0, 1795128723618, 1795128728852, NULL, NULL, '{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, 3);
INSERT INTO public.sessions VALUES ('agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0525bzr9ayjn18p5nked1', 'made', 'made', NULL, NULL, 0, 0, 'agent:main:lead', 'internal', '', '', NULL, 'teammate', 1, 0, NULL, 'member', 'active', 'carl', 4, NULL, 0, 1795128723627, 1795128734835, NULL, NULL, '{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', '01m7v05d52j39m0grnx4s5ha5s', 'expert', 'expert', NULL, NULL, 0, 0, 'agent:main:second', 'internal', '', '', NULL, 'teammate', 1, 0, NULL, 'member', 'active', 'dora', 2, NULL, 0, 1795128734882, 1795128737954, NULL, NULL, '{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', '01m7v05g84tvh4jvhvj5k3yegd', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:parent', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'still running', 2, NULL, 0, 1795128738052, 1795128738052, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:club', '01m7v05g8sy1fg0nr4n4jqphmw', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:club', NULL, 'main', 0, 0, NULL, NULL, 'active', 'What do all of you think? DO [{"hang": true}]', 2, NULL, 0, 1795128738073, 1795128738073, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:held', '01m7v05n63w7z0mfgg0jknpjhm', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:held', NULL, 'main', 0, 0, NULL, NULL, 'active', 'First of three. DO [{"hang": true}]', 4, NULL, 0, 1795128743107, 1795128745116, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:tool', '01m7v05g99hhj6gr63hrk0md9n', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:tool', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Sleep in a shell. DO [{"call": ["shell", {"command": "sleep ', 3, NULL, 0, 1795128738089, 1795128738103, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcd', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:cut', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Do two steps. DO [{"call": ["todo", {"items": [{"text": "ste', 4, NULL, 0, 1795128738082, 1795128738139, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:steered', '01m7v05g9eqjcj366qfnchn085', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:steered', NULL, 'main', 0, 0, NULL, NULL, 'active', 'A long task. DO [{"slow": 3}, {"call": ["todo", {"items": [{', 6, NULL, 0, 1795128738094, 1795128741154, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:webhook:desk:dm:down', '01m7v05q51vvk90mew7k23ddmb', 'main', 'main', NULL, NULL, 1, 1, NULL, 'webhook', 'desk', 'down', NULL, 'main', 0, 0, NULL, NULL, 'active', 'a question whose reply waits', 3, NULL, 0, 1795128745121, 1795128745127, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0524msdneja6wv7qf5c6g', 'ops', 'ops', NULL, NULL, 0, 0, 'agent:main:lead', 'internal', '', '', NULL, 'teammate', 1, 0, NULL, 'member', 'active', 'ann', 5, NULL, 0, 1795128723604, 1795128726836, NULL, NULL, '{"tools":["SendMessage","TaskClaim","TaskComplete","TaskCreate","TaskList","TaskUpdate","TeamCreate","TeamShutdown","TeamStatus","TeammateSpawn","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","read_file","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', '01m7v05qw9abg5fa1abaqp4fzm', 'main', 'main', NULL, NULL, 0, 0, 'agent:main:telegram:dm:8', 'internal', '', '', NULL, 'subagent', 1, 0, NULL, NULL, 'active', 'of a person', 2, NULL, 0, 1795128745865, 1795128745865, NULL, NULL, '{"tools":["TeamCreate","agent_create","agent_update","agents_list","agents_wait","apply_patch","cron_add","cron_list","cron_remove","cron_run","delegate_to_agent","edit_file","http_fetch","image_view","list_dir","memory_forget","memory_search","memory_store","models_list","search_files","session_set_agent","session_set_model","sessions_history","sessions_list","sessions_send","sessions_spawn","sessions_yield","shell","todo","write_file"],"sandbox":"off"}', NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:waits', '01m7v05g64ddeyj6php4yzz308', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:waits', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Delegate and wait. DO [{"call": ["delegate_to_agent", {"agen', 3, NULL, 0, 1795128737988, 1795128738004, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:parent', '01m7v05g69zp7dtmn83e997he2', 'main', 'main', NULL, NULL, 1, 1, NULL, 'web', 'default', 'agent:main:parent', NULL, 'main', 0, 0, NULL, NULL, 'active', 'Begin one that runs. DO [{"call": ["sessions_spawn", {"task"', 5, NULL, 0, 1795128737993, 1795128738064, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:telegram:dm:42', '01m7v05qt89wmze729h16q1yb5', 'main', 'main', NULL, NULL, 1, 1, NULL, 'telegram', 'main', '42', NULL, 'main', 0, 0, NULL, NULL, 'active', 'DO [{"hang": true, "partial": "A long thought that is not ye', 2, NULL, 0, 1795128745800, 1795128745800, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.sessions VALUES ('agent:main:telegram:dm:8', '01m7v0529mbsadbgdyp4n3txy6', 'main', 'main', NULL, NULL, 1, 1, NULL, 'telegram', 'main', '8', NULL, 'main', 0, 0, NULL, NULL, 'active', 'hello from a paired person', 7, NULL, 0, 1795128723764, 1795128745874, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.setbacks VALUES ('01m7v0524a5akkjtvrhr465hxv', 'bob', 1795128728852, 'provider_failed', 1, 1795128758852);
INSERT INTO public.shutdown_calls VALUES ('01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0', '01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0');
INSERT INTO public.shutdown_requests VALUES ('01m7v05g4bfhf0hny0s88n7mmc-call_06227b4ae3cb_0-dora-stop', '01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 'dora', 1795128797954, NULL, 1795128737954);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:chain', 924, 996000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', 131, 143000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:expert:teammate:01m7v05d3r90v7ngvfpqfg22f0-call_43673a7331a8_0', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'team:dock', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:fish', 401, 437000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', 124, 136000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:main', 1509, 1617000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:ops:waiting', 124, 136000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:ops:decided', 257, 281000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:webhook:desk:dm:cust', 129, 141000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:webhook:desk:dm:refused', 123, 135000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:webhook:bell:dm:cust', 130, 142000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:second', 1270, 1354000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', 119, 131000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', 150, 162000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:folded', 1346, 1466000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:waits', 133, 145000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:expert:delegate:d1172ba193a5d4137b4efdbd2e18dc77', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', 153, 165000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:parent', 277, 301000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', 132, 144000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:club', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', 134, 146000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:expert:delegate:75635401afef85a85a75f15a120f4220', 124, 136000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:29a765fb1c028292e3a8c7310fab610c', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:tool', 129, 141000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', 311, 335000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:cut', 131, 143000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:family', 1061, 1145000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'team:site', 614, 662000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:steered', 130, 142000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:lead', 1440, 1548000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:held', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:webhook:desk:dm:down', 131, 143000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:telegram:dm:42', 0, 0, 0, 0);
INSERT INTO public.spending VALUES (20776, 'instance', 10166, 10982000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:telegram:dm:8', 402, 438000, 0, 0);
INSERT INTO public.spending VALUES (20776, 'session:agent:main:subagent:004c9eac6fb276315aa261fd7fef763a', 0, 0, 0, 0);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (1, '01m7v0524a5akkjtvrhr465hxv', 1, 'created', 'operator', '{}', 1, 1795128723637);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (2, '01m7v0524a5akkjtvrhr465hxv', 2, 'created', 'operator', '{}', 1, 1795128723651);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (3, '01m7v0524a5akkjtvrhr465hxv', 3, 'created', 'operator', '{}', 1, 1795128723660);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (4, '01m7v0524a5akkjtvrhr465hxv', 4, 'created', 'operator', '{}', 1, 1795128723664);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (5, '01m7v0524a5akkjtvrhr465hxv', 5, 'created', 'operator', '{}', 1, 1795128723672);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (6, '01m7v0524a5akkjtvrhr465hxv', 6, 'created', 'operator', '{}', 1, 1795128723683);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (7, '01m7v0524a5akkjtvrhr465hxv', 1, 'claimed', 'ann', '{"fence":1,"session_key":"agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb"}', 1, 1795128723700);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (8, '01m7v0524a5akkjtvrhr465hxv', 1, 'completed', 'ann', '{"unblocked":[2]}', 1, 1795128723711);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (9, '01m7v0524a5akkjtvrhr465hxv', 2, 'claimed', 'ann', '{"fence":1,"session_key":"agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb"}', 1, 1795128723739);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (10, '01m7v0524a5akkjtvrhr465hxv', 5, 'claimed', 'carl', '{"fence":1,"session_key":"agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx"}', 1, 1795128723747);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (11, '01m7v0524a5akkjtvrhr465hxv', 5, 'failed', 'carl', '{"unblocked":[]}', 1, 1795128723754);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (12, '01m7v0524a5akkjtvrhr465hxv', 6, 'claimed', 'carl', '{"fence":1,"session_key":"agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx"}', 1, 1795128723778);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (13, '01m7v0524a5akkjtvrhr465hxv', 6, 'started', 'carl', '{}', 1, 1795128723791);
INSERT INTO public.task_events OVERRIDING SYSTEM VALUE VALUES (14, '01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 1, 'created', 'lead', '{}', 1, 1795128734908);
INSERT INTO public.task_needs VALUES ('01m7v0524a5akkjtvrhr465hxv', 2, 1);
INSERT INTO public.task_needs VALUES ('01m7v0524a5akkjtvrhr465hxv', 3, 2);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 3, 'Publish', '', NULL, NULL, NULL, 'sql', NULL, 'pending', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01m7v0526bghbajf7xvwgbw16t', 'operator', 1795128723660, NULL, NULL);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 4, 'Write the text', '', NULL, NULL, NULL, NULL, NULL, 'pending', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01m7v0526fmxgm8vd5gmsk12cc', 'operator', 1795128723664, NULL, NULL);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 1, 'Draw the header', 'In blue', NULL, '{"size":3}', NULL, NULL, NULL, 'completed', NULL, NULL, 1, NULL, NULL, 'ann', 'Drawn', NULL, '[{"kind":"file","path":"header.svg"}]', '01m7v0525mhfakkfje9hhfvfn5', 'operator', 1795128723637, 1795128723700, 1795128723711);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 2, 'Put it on the page', '', 'Putting it', NULL, 'ann', NULL, '{"command":"test -f header.svg"}', 'claimed', 'ann', 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', 1, 1795129323740, '01m7v0528t1t3qrfmc45nbsde6', NULL, NULL, NULL, NULL, '01m7v05262w8g492fsmqk93qyp', 'operator', 1795128723651, 1795128723739, NULL);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 5, 'Impossible', '', NULL, NULL, NULL, NULL, NULL, 'failed', NULL, NULL, 1, NULL, NULL, 'carl', 'No way', NULL, '[]', '01m7v0526pj4qrf0zq0rp6zttp', 'operator', 1795128723672, 1795128723747, 1795128723754);
INSERT INTO public.tasks VALUES ('01m7v0524a5akkjtvrhr465hxv', 6, 'Under way', '', NULL, NULL, NULL, NULL, NULL, 'in_progress', 'carl', 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', 1, 1795129323792, '01m7v0529k1tsdv6z3m25h5mb4', NULL, NULL, NULL, NULL, '01m7v05270y2syvy88d1xm3arv', 'operator', 1795128723683, 1795128723778, NULL);
INSERT INTO public.tasks VALUES ('01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 1, 'Sweep', 'All of it', NULL, NULL, NULL, NULL, NULL, 'pending', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, '01m7v05d3r90v7ngvfpqfg22f0-call_678c53b5217c_0', 'lead', 1795128734908, NULL, NULL);
INSERT INTO public.teams VALUES ('01m7v0524a5akkjtvrhr465hxv', 'site', 'Build the page', 'general-purpose', 'active', 'agent:main:lead', 'main', '01m7v0524b12gqasymrhkrc6g3', '[]', 1795128723595, 1795128723595);
INSERT INTO public.teams VALUES ('01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 'dock', 'By tools', 'general-purpose', 'shutting_down', 'agent:main:second', 'main', '01m7v05g4bvkzx9pmybnyf3zjy', '[{"channel":"web","account":"default","peer":"agent:main:second"}]', 1795128734856, 1795128737954);
INSERT INTO public.todos VALUES ('agent:main:main', '[{"text":"paint the boat","state":"doing"},{"text":"buy rope","state":"open"}]', 1795128715829);
INSERT INTO public.todos VALUES ('agent:main:cut', '[{"text":"step one","state":"done"}]', 1795128738138);
INSERT INTO public.todos VALUES ('agent:main:steered', '[{"text":"long task","state":"open"}]', 1795128741153);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 1);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 2);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 3);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 4);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 5);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 6);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 7);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 8);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 9);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 10);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 11);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 12);
INSERT INTO public.told VALUES ('01m7v0524a5akkjtvrhr465hxv', 13);
INSERT INTO public.told VALUES ('01m7v05d3r90v7ngvfpqfg22f0-call_aa6c70d390c3_0', 14);
INSERT INTO public.traces VALUES ('01m7v04y83z794fm7kx5cj7v8t', 1, 1795128719727);
INSERT INTO public.traces VALUES ('01m7v04ya9rn6rs9zr7yy8ypfc', 1, 1795128719760);
INSERT INTO public.traces VALUES ('01m7v04ykwyqsa7054h2mprpm6', 1, 1795128720059);
INSERT INTO public.traces VALUES ('01m7v0524b12gqasymrhkrc6g3', 10, 1795128723641);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (1, 'agent:main:main', '01m7v04tgrddrqww744vsg0a1n', 'main', 'lab/demo', 123, 12, 10, 1795128715824, 147000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (2, 'agent:main:main', '01m7v04tgrddrqww744vsg0a1n', 'main', 'lab/demo', 132, 12, 10, 1795128715842, 156000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (3, 'agent:main:main', '01m7v04tgrddrqww744vsg0a1n', 'main', 'lab/demo', 142, 12, 10, 1795128715856, 166000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (4, 'agent:main:main', '01m7v04tjvwty36az2hz0hjbk0', 'main', 'lab/demo', 147, 12, 10, 1795128715920, 171000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (5, 'agent:main:main', '01m7v04tmmhtbagzfnenam01ee', 'main', 'lab/demo', 150, 12, 10, 1795128715977, 174000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (6, 'agent:main:main', '01m7v04tpevrhfkgjk3c5y2z06', 'main', 'lab/demo', 163, 12, 10, 1795128716035, 187000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (7, 'agent:main:main', '01m7v04tpevrhfkgjk3c5y2z06', 'main', 'lab/demo', 174, 12, 10, 1795128716048, 198000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (8, 'agent:main:main', '01m7v04trmff1ee2xx1kxcvctg', 'main', 'lab/demo', 181, 12, 10, 1795128716108, 205000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (9, 'agent:main:main', '01m7v04trmff1ee2xx1kxcvctg', 'main', 'lab/demo', 189, 12, 10, 1795128716117, 213000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (10, 'agent:main:folded', '01m7v04tv3zz54zfpqw4wng8bp', 'main', 'lab/demo', 117, 12, 10, 1795128716188, 141000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (11, 'agent:main:folded', '01m7v04tx1packjaggt19199g5', 'main', 'lab/demo', 119, 12, 10, 1795128716244, 143000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (12, 'agent:main:folded', '01m7v04tyreg1nnmngfc2rpcnf', 'main', 'lab/demo', 123, 12, 10, 1795128716300, 147000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (13, 'agent:main:folded', '01m7v04v0jfna82zna2ts24s7b', 'main', 'lab/demo', 127, 12, 10, 1795128716356, 151000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (14, 'agent:main:folded', '01m7v04v28fsadw1enk4rtdz2m', 'main', 'lab/demo', 131, 12, 10, 1795128716416, 155000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (15, 'agent:main:folded', '01m7v04v44xnbbzg9m5swcp0sh', 'main', 'lab/demo', 136, 12, 10, 1795128716468, 160000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (16, 'agent:main:folded', '01m7v04v5rwsge1z67q6fmnw41', 'main', 'lab/demo', 127, 12, 10, 1795128716480, 151000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (17, 'agent:main:folded', '01m7v04v5rwsge1z67q6fmnw41', 'main', 'lab/demo', 120, 12, 10, 1795128716482, 144000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (18, 'agent:main:folded', '01m7v04y3jrzb16war5bcwprdv', 'main', 'lab/demo', 117, 12, 10, 1795128719484, 141000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (19, 'agent:made:web:dm:01m7v04y3zxyvmv1588kf3t6gq', '01m7v04y41tp0nhdd8j5xcxhey', 'made', 'lab/demo', 107, 12, 10, 1795128719544, 131000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (20, 'agent:main:folded', '01m7v04y69bjww4mf1983qyfrn', 'main', 'lab/demo', 109, 12, 10, 1795128719616, 133000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (21, 'agent:main:family', '01m7v04y83wzstmp9rdv6d714m', 'main', 'lab/demo', 122, 12, 10, 1795128719672, 146000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (22, 'agent:main:family', '01m7v04y83wzstmp9rdv6d714m', 'main', 'lab/demo', 136, 12, 10, 1795128719685, 160000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (23, 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg3', 'main', 'lab/demo', 126, 12, 10, 1795128719695, 150000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (24, 'agent:main:chain', '01m7v04ya9eed9gmtmxrhq8wg3', 'main', 'lab/demo', 144, 12, 10, 1795128719712, 168000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (25, 'agent:main:family', '01m7v04yb3hx15b4a4tzyv04th', 'main', 'lab/demo', 142, 12, 10, 1795128719723, 166000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (26, 'agent:main:subagent:2c0aa5a06a62a648003e22eee47bdf9b', '01m7v04y9wyzqr918jpx5erpb4', 'main', 'lab/demo', 120, 12, 10, 1795128719727, 144000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (27, 'agent:main:subagent:9dc1155c33d94b53c7283696de1e337a', '01m7v04yapm097ewhhvzh1genr', 'main', 'lab/demo', 122, 12, 10, 1795128719760, 146000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (28, 'agent:expert:delegate:75635401afef85a85a75f15a120f4220', '01m7v04ybfeca4xnwpj8x7hrw0', 'expert', 'lab/demo', 112, 12, 10, 1795128719779, 136000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (29, 'agent:main:family', '01m7v04yb3hx15b4a4tzyv04th', 'main', 'lab/demo', 162, 12, 10, 1795128719787, 186000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (30, 'agent:main:chain', '01m7v04ycggkwx2h94771ecahj', 'main', 'lab/demo', 165, 12, 10, 1795128719820, 189000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (31, 'agent:main:chain', '01m7v04ycggkwx2h94771ecahj', 'main', 'lab/demo', 176, 12, 10, 1795128719830, 200000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (32, 'agent:main:family', '01m7v04ybfnfbmstwyj9pzc3eh', 'main', 'lab/demo', 183, 12, 10, 1795128719839, 207000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (33, 'agent:main:subagent:f14734f3c7bc154097c5dc668e59c189', '01m7v04yefpp7axsgqk74apmqx', 'main', 'lab/demo', 119, 12, 10, 1795128719871, 143000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (34, 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm4', 'main', 'lab/demo', 120, 12, 10, 1795128720004, 144000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (35, 'agent:main:fish', '01m7v04ykwyqsa7054h2mprpm4', 'main', 'lab/demo', 133, 12, 10, 1795128720014, 157000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (36, 'agent:ops:decided', '01m7v04ymhnqg9bv8nyssnn3r1', 'ops', 'lab/demo', 112, 12, 10, 1795128720023, 136000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (37, 'agent:main:subagent:c7f223f100e3b24d1f2730c1fc1ecd09', '01m7v04ym7m8pc8n6q4wr12dz0', 'main', 'lab/demo', 112, 12, 10, 1795128720059, 136000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (38, 'agent:ops:waiting', '01m7v04yv4p4sn3pjgc2p6ph0e', 'ops', 'lab/demo', 112, 12, 10, 1795128720234, 136000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (39, 'agent:ops:decided', '01m7v04ymhnqg9bv8nyssnn3r1', 'ops', 'lab/demo', 121, 12, 10, 1795128720242, 145000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (40, 'agent:main:webhook:desk:dm:cust', '01m7v04yv7r7ky3rgb3hh47861', 'main', 'lab/demo', 117, 12, 10, 1795128720284, 141000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (41, 'agent:main:webhook:desk:dm:refused', '01m7v04zwamh8vqvtvvpsmd87h', 'main', 'lab/demo', 111, 12, 10, 1795128721301, 135000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (42, 'agent:main:webhook:bell:dm:cust', '01m7v04zwrxv695fq6jd4smk31', 'main', 'lab/demo', 118, 12, 10, 1795128721362, 142000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (43, 'agent:main:lead', '01m7v0523wk83qrwww94kj95cc', 'main', 'lab/demo', 118, 12, 10, 1795128723591, 142000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (44, 'agent:made:teammate:01m7v05259a1q8qdsxr9ny72nx', '01m7v0526ttps9g1gpqks447a6', 'made', 'lab/demo', 138, 12, 10, 1795128723699, 162000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (45, 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0525sspjvq8xv71dsyrvg', 'ops', 'lab/demo', 140, 12, 10, 1795128723706, 164000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (46, 'agent:expert:teammate:01m7v052507kh1rqsp5mwyye1z', '01m7v0526hxf2hvx6h4yd18a8y', 'expert', 'lab/demo', 141, 12, 10, 1795128723729, 165000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (47, 'agent:main:telegram:dm:8', '01m7v0529m5jmnmy8dbbn58acb', 'main', 'lab/demo', 109, 12, 10, 1795128723771, 133000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (48, 'agent:main:lead', '01m7v05284xv2338p2wdke1k1h', 'main', 'lab/demo', 162, 12, 10, 1795128723796, 186000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (49, 'agent:main:lead', '01m7v0529bf88j7z6p33y57g91', 'main', 'lab/demo', 160, 12, 10, 1795128723860, 184000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (50, 'agent:ops:teammate:01m7v0524jdj7farkq7p4zznvb', '01m7v0558myb2t56pedg143ffj', 'ops', 'lab/demo', 147, 12, 10, 1795128726836, 171000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (51, 'agent:main:lead', '01m7v0559yzwh97s0bztssc19q', 'main', 'lab/demo', 158, 12, 10, 1795128726868, 182000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (52, 'agent:main:lead', '01m7v05792ds6ffg9xz6mp8a1w', 'main', 'lab/demo', 168, 12, 10, 1795128728880, 192000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (53, 'agent:main:second', '01m7v05d3r90v7ngvfpqfg22f0', 'main', 'lab/demo', 130, 12, 10, 1795128734852, 154000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (54, 'agent:main:second', '01m7v05d3r90v7ngvfpqfg22f0', 'main', 'lab/demo', 150, 12, 10, 1795128734877, 174000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (55, 'agent:main:second', '01m7v05d3r90v7ngvfpqfg22f0', 'main', 'lab/demo', 163, 12, 10, 1795128734900, 187000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (56, 'agent:main:second', '01m7v05d3r90v7ngvfpqfg22f0', 'main', 'lab/demo', 171, 12, 10, 1795128734918, 195000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (57, 'agent:main:second', '01m7v05d3r90v7ngvfpqfg22f0', 'main', 'lab/demo', 183, 12, 10, 1795128734927, 207000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (67, 'agent:main:telegram:dm:8', '01m7v05qth4cqm2m903jbb2mtn', 'main', 'lab/demo', 122, 12, 10, 1795128745861, 146000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (68, 'agent:main:telegram:dm:8', '01m7v05qth4cqm2m903jbb2mtn', 'main', 'lab/demo', 135, 12, 10, 1795128745874, 159000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (58, 'agent:main:second', '01m7v05g4bfhf0hny0s88n7mmc', 'main', 'lab/demo', 189, 12, 10, 1795128737946, 213000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (59, 'agent:main:second', '01m7v05g4bfhf0hny0s88n7mmc', 'main', 'lab/demo', 200, 12, 10, 1795128737984, 224000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (61, 'agent:main:parent', '01m7v05g69mp3y6csbgwnactdz', 'main', 'lab/demo', 120, 12, 10, 1795128738048, 144000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (60, 'agent:main:waits', '01m7v05g64ddeyj6php4yzz307', 'main', 'lab/demo', 121, 12, 10, 1795128738000, 145000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (62, 'agent:main:parent', '01m7v05g69mp3y6csbgwnactdz', 'main', 'lab/demo', 133, 12, 10, 1795128738064, 157000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (63, 'agent:main:tool', '01m7v05g99hhj6gr63hrk0md9m', 'main', 'lab/demo', 117, 12, 10, 1795128738103, 141000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (64, 'agent:main:cut', '01m7v05g92y3kcrq4wsz9wafcc', 'main', 'lab/demo', 119, 12, 10, 1795128738137, 143000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (65, 'agent:main:steered', '01m7v05g9eqjcj366qfnchn084', 'main', 'lab/demo', 118, 12, 10, 1795128741151, 142000);
INSERT INTO public.usage OVERRIDING SYSTEM VALUE VALUES (66, 'agent:main:webhook:desk:dm:down', '01m7v05q51e170k6dz9pmd776m', 'main', 'lab/demo', 119, 12, 10, 1795128745127, 143000);
SELECT pg_catalog.setval('public.backlog_seq_seq', 1, true);
SELECT pg_catalog.setval('public.events_seq_seq', 84, true);
SELECT pg_catalog.setval('public.jobs_seq_seq', 63, true);
SELECT pg_catalog.setval('public.letters_seq_seq', 14, true);
SELECT pg_catalog.setval('public.task_events_seq_seq', 14, true);
SELECT pg_catalog.setval('public.usage_seq_seq', 68, true);
ALTER TABLE ONLY public.agent_specs
    ADD CONSTRAINT agent_specs_name_key UNIQUE (name);
ALTER TABLE ONLY public.agent_specs
    ADD CONSTRAINT agent_specs_pkey PRIMARY KEY (agent_id);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.approvals
    ADD CONSTRAINT approvals_turn_id_call_id_key UNIQUE (turn_id, call_id);
ALTER TABLE ONLY public.backlog
    ADD CONSTRAINT backlog_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.drafts
    ADD CONSTRAINT drafts_pkey PRIMARY KEY (turn_id, address_json);
ALTER TABLE ONLY public.errands
    ADD CONSTRAINT errands_pkey PRIMARY KEY (errand_id);
ALTER TABLE ONLY public.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.holders
    ADD CONSTRAINT holders_pkey PRIMARY KEY (channel, account);
ALTER TABLE ONLY public.ingress
    ADD CONSTRAINT ingress_pkey PRIMARY KEY (channel, account, platform_id);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_pkey PRIMARY KEY (turn_id, call_id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_turn_id_key UNIQUE (turn_id);
ALTER TABLE ONLY public.ledgers
    ADD CONSTRAINT ledgers_pkey PRIMARY KEY (team_id);
ALTER TABLE ONLY public.letters
    ADD CONSTRAINT letters_letter_id_key UNIQUE (letter_id);
ALTER TABLE ONLY public.letters
    ADD CONSTRAINT letters_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.media
    ADD CONSTRAINT media_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY public.media_rounds
    ADD CONSTRAINT media_rounds_pkey PRIMARY KEY (round_id, hash);
ALTER TABLE ONLY public.media_uses
    ADD CONSTRAINT media_uses_pkey PRIMARY KEY (message_id, hash);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (team_id, name);
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_part_key_key UNIQUE (part_key);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pairings
    ADD CONSTRAINT pairings_pkey PRIMARY KEY (channel, account, sender);
ALTER TABLE ONLY public.reservations
    ADD CONSTRAINT reservations_pkey PRIMARY KEY (purse, turn_id);
ALTER TABLE ONLY public.rounds
    ADD CONSTRAINT rounds_pkey PRIMARY KEY (round_id);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.schedules
    ADD CONSTRAINT schedules_pkey PRIMARY KEY (schedule_id);
ALTER TABLE ONLY public.seats
    ADD CONSTRAINT seats_pkey PRIMARY KEY (round_id, seat);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (session_key);
ALTER TABLE ONLY public.setbacks
    ADD CONSTRAINT setbacks_pkey PRIMARY KEY (team_id, name);
ALTER TABLE ONLY public.shutdown_calls
    ADD CONSTRAINT shutdown_calls_pkey PRIMARY KEY (call_id);
ALTER TABLE ONLY public.shutdown_requests
    ADD CONSTRAINT shutdown_requests_pkey PRIMARY KEY (request_id);
ALTER TABLE ONLY public.spending
    ADD CONSTRAINT spending_pkey PRIMARY KEY (day, purse);
ALTER TABLE ONLY public.task_events
    ADD CONSTRAINT task_events_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY public.task_needs
    ADD CONSTRAINT task_needs_pkey PRIMARY KEY (team_id, task_no, needs);
ALTER TABLE ONLY public.tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (team_id, task_no);
ALTER TABLE ONLY public.teams
    ADD CONSTRAINT teams_pkey PRIMARY KEY (team_id);
ALTER TABLE ONLY public.todos
    ADD CONSTRAINT todos_pkey PRIMARY KEY (session_key);
ALTER TABLE ONLY public.told
    ADD CONSTRAINT told_pkey PRIMARY KEY (team_id, seq);
ALTER TABLE ONLY public.traces
    ADD CONSTRAINT traces_pkey PRIMARY KEY (trace_id);
ALTER TABLE ONLY public.usage
    ADD CONSTRAINT usage_pkey PRIMARY KEY (seq);
CREATE INDEX approvals_pending ON public.approvals USING btree (expires_at) WHERE (state = 'pending'::text);
CREATE INDEX backlog_taken ON public.backlog USING btree (taken_by) WHERE (taken_by IS NOT NULL);
CREATE INDEX backlog_waiting ON public.backlog USING btree (session_key, seq) WHERE (taken_by IS NULL);
CREATE INDEX events_kind ON public.events USING btree (kind, seq);
CREATE INDEX events_session ON public.events USING btree (session_key, seq) WHERE (session_key IS NOT NULL);
CREATE INDEX ingress_age ON public.ingress USING btree (created_at);
CREATE UNIQUE INDEX jobs_one_queued ON public.jobs USING btree (session_key) WHERE (state = 'queued'::text);
CREATE UNIQUE INDEX jobs_one_running ON public.jobs USING btree (session_key) WHERE (state = 'running'::text);
CREATE INDEX jobs_ready ON public.jobs USING btree (lane, agent_id, priority, seq) WHERE ((state = 'queued'::text) AND (held = 0));
CREATE INDEX jobs_running ON public.jobs USING btree (lane, agent_id, started_at) WHERE (state = 'running'::text);
CREATE INDEX jobs_session ON public.jobs USING btree (session_key, seq);
CREATE INDEX letters_open ON public.letters USING btree (team_id, recipient, seq) WHERE (state = ANY (ARRAY['queued'::text, 'in_prompt'::text]));
CREATE INDEX letters_team ON public.letters USING btree (team_id, seq);
CREATE INDEX letters_turn ON public.letters USING btree (turn_id) WHERE (state = 'in_prompt'::text);
CREATE INDEX letters_uncopied ON public.letters USING btree (team_id, seq) WHERE (is_copied = 0);
CREATE INDEX media_rounds_hash ON public.media_rounds USING btree (hash);
CREATE INDEX media_uses_hash ON public.media_uses USING btree (hash);
CREATE UNIQUE INDEX members_session ON public.members USING btree (session_key);
CREATE UNIQUE INDEX messages_idempotency ON public.messages USING btree (session_key, idempotency_key) WHERE (idempotency_key IS NOT NULL);
CREATE UNIQUE INDEX messages_ticket ON public.messages USING btree (session_key, ticket);
CREATE INDEX messages_turn ON public.messages USING btree (turn_id, ticket);
CREATE INDEX outbox_order ON public.outbox USING btree (session_key, id) WHERE (state = ANY (ARRAY['pending'::text, 'sending'::text]));
CREATE INDEX outbox_pending ON public.outbox USING btree (next_at) WHERE (state = 'pending'::text);
CREATE INDEX outbox_sending ON public.outbox USING btree (lease_until) WHERE (state = 'sending'::text);
CREATE UNIQUE INDEX pairings_code ON public.pairings USING btree (code) WHERE (state = 'pending'::text);
CREATE UNIQUE INDEX pairings_slot ON public.pairings USING btree (channel, account, slot) WHERE (state = 'pending'::text);
CREATE INDEX reservations_turn ON public.reservations USING btree (turn_id);
CREATE INDEX rounds_age ON public.rounds USING btree (created_at);
CREATE INDEX rounds_open ON public.rounds USING btree (round_id) WHERE (is_open = 1);
CREATE INDEX runs_age ON public.runs USING btree (owner_key, created_at, run_id);
CREATE INDEX runs_awaited ON public.runs USING btree (awaited_by) WHERE ((awaited_by IS NOT NULL) AND (is_announced = 0));
CREATE INDEX runs_caller ON public.runs USING btree (caller_id, kind) WHERE (status = 'running'::text);
CREATE UNIQUE INDEX runs_child ON public.runs USING btree (child_key) WHERE (status = 'running'::text);
CREATE INDEX runs_deadline ON public.runs USING btree (deadline) WHERE (status = 'running'::text);
CREATE INDEX runs_held ON public.runs USING btree (created_at, run_id) WHERE (held_code IS NOT NULL);
CREATE INDEX runs_last ON public.runs USING btree (child_key, created_at);
CREATE INDEX runs_owner ON public.runs USING btree (owner_key, run_id);
CREATE INDEX runs_put_away ON public.runs USING btree (put_away_at) WHERE (put_away_at IS NOT NULL);
CREATE INDEX sessions_agent ON public.sessions USING btree (agent_id, session_key);
CREATE INDEX sessions_owner ON public.sessions USING btree (owner_session_key) WHERE (owner_session_key IS NOT NULL);
CREATE INDEX sessions_recent ON public.sessions USING btree (updated_at, session_key);
CREATE INDEX setbacks_due ON public.setbacks USING btree (retry_at) WHERE (retry_at IS NOT NULL);
CREATE UNIQUE INDEX shutdown_requests_member ON public.shutdown_requests USING btree (team_id, member);
CREATE INDEX task_events_due ON public.task_events USING btree (team_id, seq) WHERE (is_relayed = 0);
CREATE INDEX task_events_of ON public.task_events USING btree (team_id, seq);
CREATE INDEX task_needs_of ON public.task_needs USING btree (team_id, needs);
CREATE INDEX tasks_bound ON public.tasks USING btree (team_id, state, assignee, capability) WHERE ((state = 'pending'::text) AND ((assignee IS NOT NULL) OR (capability IS NOT NULL)));
CREATE INDEX tasks_claimed_once ON public.tasks USING btree (team_id, claim_key) WHERE (claim_key IS NOT NULL);
CREATE UNIQUE INDEX tasks_created_once ON public.tasks USING btree (team_id, create_key) WHERE (create_key IS NOT NULL);
CREATE INDEX tasks_ended ON public.tasks USING btree (team_id, ended_at) WHERE (ended_at IS NOT NULL);
CREATE INDEX tasks_owned ON public.tasks USING btree (team_id, lease_until) WHERE (owner IS NOT NULL);
CREATE INDEX tasks_pending ON public.tasks USING btree (team_id, task_no) WHERE (state = 'pending'::text);
CREATE INDEX teams_lead ON public.teams USING btree (lead_key);
CREATE UNIQUE INDEX teams_name ON public.teams USING btree (name) WHERE (status <> 'shutdown'::text);
CREATE INDEX usage_session ON public.usage USING btree (session_key);
CREATE INDEX usage_time ON public.usage USING btree (created_at);
CREATE INDEX usage_turn ON public.usage USING btree (turn_id);
ALTER TABLE ONLY public.backlog
    ADD CONSTRAINT backlog_session_key_fkey FOREIGN KEY (session_key) REFERENCES public.sessions(session_key) ON DELETE CASCADE;
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_session_key_fkey FOREIGN KEY (session_key) REFERENCES public.sessions(session_key) ON DELETE CASCADE;
ALTER TABLE ONLY public.letters
    ADD CONSTRAINT letters_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.media_rounds
    ADD CONSTRAINT media_rounds_hash_fkey FOREIGN KEY (hash) REFERENCES public.media(hash);
ALTER TABLE ONLY public.media_rounds
    ADD CONSTRAINT media_rounds_round_id_fkey FOREIGN KEY (round_id) REFERENCES public.rounds(round_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.media_uses
    ADD CONSTRAINT media_uses_hash_fkey FOREIGN KEY (hash) REFERENCES public.media(hash);
ALTER TABLE ONLY public.media_uses
    ADD CONSTRAINT media_uses_message_id_fkey FOREIGN KEY (message_id) REFERENCES public.messages(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.messages
    ADD CONSTRAINT messages_session_key_fkey FOREIGN KEY (session_key) REFERENCES public.sessions(session_key) ON DELETE CASCADE;
ALTER TABLE ONLY public.seats
    ADD CONSTRAINT seats_round_id_fkey FOREIGN KEY (round_id) REFERENCES public.rounds(round_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.setbacks
    ADD CONSTRAINT setbacks_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.shutdown_calls
    ADD CONSTRAINT shutdown_calls_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.shutdown_requests
    ADD CONSTRAINT shutdown_requests_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.task_needs
    ADD CONSTRAINT task_needs_team_id_needs_fkey FOREIGN KEY (team_id, needs) REFERENCES public.tasks(team_id, task_no);
ALTER TABLE ONLY public.task_needs
    ADD CONSTRAINT task_needs_team_id_task_no_fkey FOREIGN KEY (team_id, task_no) REFERENCES public.tasks(team_id, task_no) ON DELETE CASCADE;
ALTER TABLE ONLY public.todos
    ADD CONSTRAINT todos_session_key_fkey FOREIGN KEY (session_key) REFERENCES public.sessions(session_key) ON DELETE CASCADE;
ALTER TABLE ONLY public.told
    ADD CONSTRAINT told_team_id_fkey FOREIGN KEY (team_id) REFERENCES public.teams(team_id) ON DELETE CASCADE;
