//! Hot queries stay fast when the tables are long: each finds its rows through the index made for it.

use polyclaw_domain::budget::{BudgetAmount, BudgetScope, DailyLimits};
use polyclaw_domain::id::{AgentId, NodeId, TeamId};
use polyclaw_domain::job::JobLane;
use polyclaw_domain::pairing::PairingCode;
use polyclaw_domain::run::RunKind;
use polyclaw_domain::time::Millis;
use polyclaw_domain::tool::{ToolCall, ToolEffect};
use polyclaw_store::budgets::BudgetLimit;
use polyclaw_store::pairings::{self, PairingSender};
use polyclaw_store::{
    Db, Result, Tx, approvals, backlog, broadcasts, budgets, ingress, intents, jobs, messages, outbox, runs,
    sessions, team_messages, turns, usage,
};

use crate::engines::{File, Shared, drive};
use crate::rows::{NOW, address, claimer, key, session, turn};

/// Years of use: long tables of which little is alive.
const FILL: &[&str] = &[
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO runs (run_id, kind, child_key, agent_id, owner_key, owner_turn, trace_id, hop, task_json,
       reply_to_json, is_deleted_after, status, is_announced, created_at, ended_at, caller_id, cleaned_up_at, held_code)
     SELECT 'r' || n, 'subagent', 'agent:main:test:dm:' || n, 'main', 'agent:main:test:dm:' || (n % 2000 + 1), 't', 'x',
       1, '{\"label\":\"l\",\"prompt\":\"p\"}', '[]', 0, CASE WHEN n <= 20 THEN 'running' ELSE 'ok' END, 1, n, n, 'main',
       CASE WHEN n <= 40 THEN n END, CASE WHEN n <= 40 THEN 'too_many_hops' END FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000)
     INSERT INTO sessions (session_key, session_id, agent_id, active_agent_id, lane, created_at, updated_at)
     SELECT 'agent:main:test:dm:' || n, 's' || n, 'main', 'main', 'main', n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO messages (id, session_key, session_id, position, role, text, origin, channel, deliver,
       idempotency_key, turn_id, created_at)
     SELECT 'm' || n, 'agent:main:test:dm:' || (n % 2000 + 1), 's', n, 'user', 'hello', 'user', 'test', 1,
       'k' || n, 't' || n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO jobs (turn_id, session_key, agent_id, kind, lane, priority, state, held, was_held, inputs,
       is_steering, hop, trace_id, node, lease_until, queued_at, started_at)
     SELECT 't' || n, 'agent:main:test:dm:' || (n % 2000 + 1), 'a' || (n % 10), 'turn', 'main', n % 4,
       CASE WHEN n <= 500 THEN 'queued' WHEN n <= 540 THEN 'running' ELSE 'done' END, 0, 0, 1, 0, 0, 'x',
       'gone/1', CASE WHEN n > 500 AND n <= 540 THEN 1 END, n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO outbox (id, part_key, session_key, turn_id, part, channel, address_json, text, state, node,
       lease_until, next_at, expires_at, created_at, updated_at)
     SELECT 'o' || n, 'k' || n, 'agent:main:test:dm:' || (n % 2000 + 1), 't' || n, 0, 'test',
       '{\"channel\":\"c\",\"account\":\"a\",\"peer\":\"p\"}', 'hello',
       CASE WHEN n <= 200 THEN 'pending' WHEN n <= 220 THEN 'sending' ELSE 'sent' END, 'gone/1', n, n, n, n, n
     FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO inbound_dedup (channel, account, platform_id, message_id, created_at)
     SELECT 'test', 'a', 'p' || n, 'm' || n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO intents (turn_id, call_id, name, effect, state, started_at)
     SELECT 't' || n, 'c', 'read', 'pure', 'done', n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO approvals (id, session_key, turn_id, call_id, tool, arguments_json, state, expires_at,
       created_at)
     SELECT 'a' || n, 'agent:main:test:dm:1', 't' || n, 'c', 'shell', '{}',
       CASE WHEN n <= 5 THEN 'pending' ELSE 'denied' END, n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO backlog (session_key, message_id, turn_id, steer_count, drained_by_turn, created_at)
     SELECT 'agent:main:test:dm:' || (n % 2000 + 1), 'm' || n, 't' || n, 0,
       CASE WHEN n > 50 THEN 't' || n END, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO budget_usage (day, scope, tokens, nanos, unknown_calls)
     SELECT n % 30, CASE WHEN n % 2 = 0 THEN 'agent:' ELSE 'session:' END || n, n, n, 0 FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO budget_reservations (scope, turn_id, node, attempt, tokens, nanos, created_at)
     SELECT 'agent:' || n, 't' || n, 'gone/1', 1, n, n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO usage (session_key, turn_id, agent_id, model, input_tokens, output_tokens, created_at)
     SELECT 'agent:main:test:dm:' || (n % 2000 + 1), 't' || n, 'main', 'm', n, n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO pairings (channel, account, sender, code, state, address_json, notified_at, created_at, expires_at)
     SELECT 'test', 'a', 's' || n, 'c' || n, 'approved', '{}', n, n, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO broadcasts (broadcast_id, text, address_json, priority, is_sequential, see_previous, is_open, created_at)
     SELECT 'r' || n, 'hello', '{\"channel\":\"c\",\"account\":\"a\",\"peer\":\"p\"}', 0, 0, 0, CASE WHEN n <= 5 THEN 1 ELSE 0 END, n FROM c",
    "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000)
     INSERT INTO broadcast_targets (broadcast_id, position, agent_id, session_key) SELECT 'r' || n, 0, 'main', 'agent:main:x' FROM c",
];

type Body = fn(&mut Tx<'_>) -> Result<()>;

/// What runs at every message, turn and look of a loop, with the indexes SQLite is to use for it.
const HOT: &[(&str, Body, &[&str])] = &[
    ("take positions", |tx| sessions::allocate_positions(tx, &key("7"), 1, NOW).map(drop), &["sessions"]),
    ("ingress", |tx| ingress::find_duplicate(tx, &address(), "p7").map(drop), &["PRIMARY KEY (channel=?"]),
    ("forget", |tx| ingress::delete_expired(tx, NOW).map(drop), &["inbound_dedup_age"]),
    ("by key", |tx| messages::find_by_key(tx, &key("7"), "k6").map(drop), &["messages_idempotency"]),
    (
        "history",
        |tx| messages::load_history(tx, (&key("7"), &session("7").id), 3, None).map(drop),
        &["messages_position"],
    ),
    ("of turn", |tx| messages::list_by_turn(tx, &turn("t7")).map(drop), &["messages_turn"]),
    ("waiting", |tx| messages::list_waiting(tx, &key("7")).map(drop), &["messages_turn", "jobs_one_queued"]),
    ("retake", |tx| messages::move_to_end(tx, &key("7"), &turn("t7"), NOW), &["messages_turn"]),
    ("last position", |tx| messages::last_position(tx, &key("7")).map(drop), &["messages_position"]),
    ("load", |tx| jobs::session_load(tx, &key("7")).map(drop), &["jobs_one_", "backlog_waiting"]),
    ("is steered", |tx| jobs::is_steered(tx, &key("7")).map(drop), &["jobs_one_queued"]),
    (
        "claim",
        |tx| jobs::claim_next(tx, JobLane::Main, &claimer("one/1")).map(drop),
        &["jobs_ready", "jobs_running"],
    ),
    ("release", |tx| jobs::release_held(tx, &key("7")).map(drop), &["jobs_one_queued"]),
    ("stop", |tx| jobs::request_stop(tx, &key("7")).map(drop), &["jobs_one_"]),
    ("cancel", |tx| jobs::cancel_queued(tx, &key("7"), NOW).map(drop), &["jobs_one_"]),
    ("postpone", |tx| jobs::mark_queued_as_held(tx, &key("7")), &["jobs_one_"]),
    ("answering", |tx| jobs::find_answering(tx, &turn("t7")).map(drop), &["turn_id=?"]),
    ("counts", |tx| jobs::count_by_state(tx).map(drop), &["jobs_"]),
    ("job orphans", |tx| jobs::list_orphans(tx, &search()).map(drop), &["jobs_running"]),
    ("job suspects", |tx| jobs::list_suspects(tx, &search()).map(drop), &["_running"]),
    ("turn deaths", |tx| jobs::record_deaths(tx, &search()), &["_running", "messages_turn", "jobs_cut_off"]),
    ("drained turns", |tx| jobs::record_drain(tx, &NodeId::new("one/1")), &["jobs_"]),
    ("backlog", |tx| backlog::list_waiting(tx, &key("7")).map(drop), &["backlog_waiting"]),
    ("drained backlog", |tx| backlog::list_assigned_to_turn(tx, &turn("t7")).map(drop), &["backlog_drained"]),
    ("backlog given up", |tx| backlog::cancel_waiting(tx, &key("7")).map(drop), &["backlog_waiting"]),
    (
        "intent",
        |tx| intents::start_call(tx, &turn("t7"), &call(), ToolEffect::Pure, NOW).map(drop),
        &["turn_id=?"],
    ),
    (
        "outbox due",
        |tx| outbox::list_due(tx, &NodeId::new("one/1"), NOW, 20).map(drop),
        &["outbox_pending", "outbox_order"],
    ),
    (
        "outbox next",
        |tx| outbox::next_due_at(tx, &NodeId::new("one/1"), NOW).map(drop),
        &["outbox_pending", "outbox_order"],
    ),
    (
        "outbox orphans",
        |tx| outbox::lock_orphans(tx, &NodeId::new("one/1"), Some("one"), NOW).map(drop),
        &["outbox_"],
    ),
    ("outbox hurry", |tx| outbox::reset_future_due_times(tx, NOW).map(drop), &["outbox_pending"]),
    ("outbox expired", |tx| outbox::list_expired(tx, NOW).map(drop), &["outbox_pending"]),
    ("outbox unsettled", |tx| outbox::count_unsent(tx).map(drop), &["outbox_order"]),
    ("list of sessions", |tx| sessions::list(tx, &listed()).map(drop), &["sessions_recent"]),
    (
        "list of an owner's sessions",
        |tx| sessions::list(tx, &sessions::SessionFilter { owner: Some(key("7")), ..listed() }).map(drop),
        &["sessions_owner"],
    ),
    (
        "list of turns",
        |tx| turns::list(tx, &listed_turns(None)).map(drop),
        &["jobs USING INTEGER PRIMARY KEY"],
    ),
    (
        "list of a session's turns",
        |tx| turns::list(tx, &listed_turns(Some("7"))).map(drop),
        &["jobs_session"],
    ),
    ("list of the outbox", |tx| outbox::list(tx, None, "o7", 101).map(drop), &["PRIMARY KEY (id>?)"]),
    (
        "settle",
        |tx| budgets::commit_usage(tx, &turn("t8"), &purses(), BudgetAmount::default(), false).map(drop),
        &["budget_reservations_turn", "PRIMARY KEY (day=? AND scope=?"],
    ),
    ("balance", |tx| budgets::get_usage(tx, &purses()[0]).map(drop), &["PRIMARY KEY (scope=?", "turn_id=?"]),
    (
        "sessions that were spent from",
        |tx| budgets::list_session_scopes(tx, 7, 20).map(drop),
        &["PRIMARY KEY (day=? AND scope>?"],
    ),
    ("usage of a turn", |tx| usage::sum_by_turn(tx, &turn("t7")).map(drop), &["usage_turn"]),
    ("approvals", |tx| approvals::list_pending(tx).map(drop), &["approvals_pending"]),
    ("usage of a session", |tx| usage::sum_by_session(tx, &key("7")).map(drop), &["usage_session"]),
    ("last message", |tx| messages::last_message_at(tx, &key("7")).map(drop), &["messages_position"]),
    ("is paired", |tx| pairings::is_paired(tx, &stranger()).map(drop), &["PRIMARY KEY (channel=?"]),
    ("code", |tx| pairings::find_pending_code(tx, &stranger(), NOW).map(drop), &["pairings"]),
    ("approve", |tx| pairings::approve(tx, &PairingCode::from_nonce("x"), NOW).map(drop), &["pairings_code"]),
    ("expired codes", |tx| pairings::delete_expired(tx, NOW).map(drop), &["pairings_"]),
    ("open broadcasts", |tx| broadcasts::list_open(tx).map(drop), &["broadcasts_open"]),
    ("broadcast", |tx| broadcasts::get(tx, "r9").map(drop), &["PRIMARY KEY (broadcast_id=?"]),
    ("runs to clean up", |tx| runs::list_due_for_cleanup(tx, Millis(50), 10).map(drop), &["runs_cleanup"]),
    ("held announces", |tx| runs::list_held_announces(tx, 10).map(drop), &["runs_held"]),
    ("held announces of a session", |tx| runs::release_all_announces(tx, &key("7")).map(drop), &["runs_"]),
    ("runs of an owner", |tx| runs::list_by_owner(tx, &key("7"), 10).map(drop), &["runs_age"]),
    ("last run of a child", |tx| runs::find_last_by_child(tx, &key("7")).map(drop), &["runs_last"]),
    ("runs at work", |tx| runs::count_running_delegates(tx).map(drop), &["runs_"]),
    (
        "sub-agents of an agent",
        |tx| runs::count_running_by_caller(tx, &AgentId::main(), RunKind::Subagent).map(drop),
        &["runs_caller"],
    ),
    (
        "host of a session",
        |tx| jobs::is_session_host(tx, &key("7"), &NodeId::new("n/1"), Some("n")).map(drop),
        &["jobs_session"],
    ),
    (
        "messages in no file",
        |tx| team_messages::list_uncopied(tx, &TeamId::new("t"), 9).map(drop),
        &["team_messages_uncopied"],
    ),
    ("old broadcasts", |tx| broadcasts::delete_closed_before(tx, Millis(3)).map(drop), &["broadcasts_age"]),
];

fn stranger() -> PairingSender {
    PairingSender { channel: "test".into(), account: "a".into(), id: "s7".into() }
}

const TABLES: &[&str] = &[
    "sessions",
    "messages",
    "jobs",
    "outbox",
    "inbound_dedup",
    "intents",
    "approvals",
    "backlog",
    "budget_usage",
    "budget_reservations",
    "usage",
    "pairings",
    "broadcasts",
    "broadcast_targets",
    "runs",
];

/// One that was spent from on the eighth day.
fn purses() -> Vec<BudgetLimit> {
    let limits = DailyLimits { tokens: Some(1), nanos: None };
    vec![BudgetLimit { scope: BudgetScope::Agent("8".into()), limits, day: 8, since: NOW }]
}

fn listed() -> sessions::SessionFilter {
    let after = sessions::SessionCursor { updated_at: Millis(1500), key: key("7").to_string() };
    sessions::SessionFilter { after: Some(after), limit: 101, ..sessions::SessionFilter::default() }
}

fn listed_turns(peer: Option<&str>) -> turns::TurnListFilter {
    turns::TurnListFilter { session: peer.map(key), state: None, before: Some(10_000), limit: 101 }
}

fn search() -> jobs::OrphanSearch {
    let node_name = Some("one".to_owned());
    jobs::OrphanSearch { node: NodeId::new("one/1"), node_name, now: NOW, suspect_after: 3 }
}

fn call() -> ToolCall {
    ToolCall { id: "c".into(), name: "read".into(), arguments: serde_json::Value::Null }
}

async fn fill(db: &Db) -> Result<()> {
    db.write(|tx| FILL.iter().try_for_each(|sql| tx.execute(sql, &[]).map(drop))).await
}

async fn plan(db: &Db, body: Body) -> Result<String> {
    Ok(db.write(move |tx| tx.explain_queries(body)).await?.join("\n"))
}

/// A partial index over what is alive may be walked whole; a table may not.
fn scans_a_table(line: &str) -> bool {
    let scanned = line.trim().strip_prefix("SCAN ").unwrap_or_default();
    let virtual_rows = ["ready", "heads", "p0", "p1", "p2", "p3", "CONSTANT ROW", "("]
        .iter()
        .any(|name| scanned.starts_with(name));
    !(scanned.is_empty() || virtual_rows || scanned.contains("USING INDEX") || scanned.contains("COVERING"))
}

#[test]
fn hot_queries_use_their_indexes_on_sqlite() {
    let file = File::new();
    let db = file.open().unwrap();
    drive(async {
        fill(&db).await?;
        for (name, body, indexes) in HOT {
            let plan = plan(&db, *body).await?;
            assert!(!plan.lines().any(scans_a_table), "{name}:\n{plan}");
            for index in *indexes {
                assert!(plan.contains(index), "{name} does not use {index}:\n{plan}");
            }
        }
        Ok(())
    });
}

#[test]
fn hot_queries_never_scan_a_table_on_postgres() {
    let db = Shared::new().open().unwrap();
    drive(async {
        fill(&db).await?;
        db.write(|tx| tx.execute("ANALYZE", &[])).await?;
        for (name, body, _) in HOT {
            let plan = plan(&db, *body).await?;
            for table in TABLES {
                assert!(!plan.contains(&format!("Seq Scan on {table}")), "{name}:\n{plan}");
            }
        }
        Ok(())
    });
}
