//! SIGKILL at every point of claim, complete, send, read and shutdown.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::{ModelServer, ReceivedRequest, ReplyScript};
use serde_json::json;

use super::{Book, Keeps, LEAD, Stage, TEAM, call, said, stop_request, who};
use crate::daemon::Daemon;

/// The kill point, and at which passes the process dies. The first passes are the lead's: it creates the team and the task.
const DEATHS: [(KillPoint, std::ops::RangeInclusive<u64>); 14] = [
    (KillPoint::LedgerWritten, 1..=3),
    (KillPoint::LedgerNotified, 1..=3),
    (KillPoint::TeamMessageStored, 1..=3),
    (KillPoint::ShutdownRequested, 1..=1),
    (KillPoint::ShutdownAnswered, 1..=1),
    (KillPoint::ShutdownEnded, 1..=1),
    (KillPoint::PromptBuilt, 5..=9),
    (KillPoint::ReplyReceived, 5..=9),
    (KillPoint::StepStored, 4..=7),
    (KillPoint::IntentStored, 4..=7),
    (KillPoint::ToolRan, 4..=7),
    (KillPoint::ResultStored, 4..=7),
    (KillPoint::FinishBefore, 2..=4),
    (KillPoint::FinishCommitted, 2..=4),
];

/// Concurrent cases: most of a case is waiting.
const AT_ONCE: usize = 3;
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Messages between the members, with their readers.
const WORDS: [(&str, &str); 2] = [("I have it", "lead"), ("well done", "ann")];

/// How a team ends: the person's message when all is done and read. A member that is asked to stop earlier need not read
/// its messages any more.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Asked,
    Forced,
}

impl Ending {
    fn words(self) -> &'static str {
        match self {
            Self::Asked => "end it now",
            Self::Forced => "end it by force",
        }
    }
}

/// A running scenario: where its daemon dies, and how its team ends.
pub struct Case {
    pub name: String,
    pub ending: Ending,
}

impl std::fmt::Display for Case {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.name)
    }
}

/// A lead that creates a team of one with one task, answers its member, and ends the team; a member that claims the task,
/// reports it, completes it, and agrees to the shutdown.
pub fn answer(request: &ReceivedRequest) -> ReplyScript {
    let text = said(request);
    if who(&text) == "ann" { as_member(request, &text) } else { as_lead(request, &text) }
}

fn as_member(request: &ReceivedRequest, text: &str) -> ReplyScript {
    let done = |word: &str| text.contains(word);
    if let Some(id) = stop_request(text).filter(|_| !done("\"recipients\":[\"lead\"],\"request_id\":\"")) {
        let given = json!({ "team_name": TEAM, "type": "shutdown_response", "request_id": id, "approve": true,
            "content": "I agree" });
        return call(request, "SendMessage", given);
    }
    match (done("\"success\":true"), done("\"request_id\":null"), done("\"unblocked\"")) {
        (false, ..) => call(request, "TaskClaim", json!({ "team_name": TEAM })),
        (true, false, _) => {
            let given = json!({ "team_name": TEAM, "recipient": "lead", "content": WORDS[0].0 });
            call(request, "SendMessage", given)
        }
        (true, true, false) => {
            let given = json!({ "team_name": TEAM, "task_id": 1, "summary": "it is done" });
            call(request, "TaskComplete", given)
        }
        _ => ReplyScript::reply("resting"),
    }
}

fn as_lead(request: &ReceivedRequest, text: &str) -> ReplyScript {
    let done = |word: &str| text.contains(word);
    match () {
        () if !done("lead_session_key") => call(request, "TeamCreate", json!({ "team_name": TEAM })),
        () if !done("result {\"task_id\":1}") => {
            let given = json!({ "team_name": TEAM, "subject": "the work", "description": "do it" });
            call(request, "TaskCreate", given)
        }
        () if !done("\"inherited\"") => {
            let given = json!({ "team_name": TEAM, "name": "ann", "task": "Take your task." });
            call(request, "TeammateSpawn", given)
        }
        () if done("I have it</teammate-message>") && !done("\"recipients\":[\"ann\"]") => {
            let given = json!({ "team_name": TEAM, "recipient": "ann", "content": WORDS[1].0 });
            call(request, "SendMessage", given)
        }
        () if done("\"status\":\"shut") => ReplyScript::reply("it is over"),
        () if done(Ending::Asked.words()) => {
            call(request, "TeamShutdown", json!({ "team_name": TEAM, "reason": "all done" }))
        }
        () if done(Ending::Forced.words()) => {
            call(request, "TeamShutdown", json!({ "team_name": TEAM, "force": true }))
        }
        () => ReplyScript::reply("all is well"),
    }
}

/// Asks for the end of the team, if it is time. A repeat is the same message.
async fn end_if_done(daemon: &Daemon, stage: &Stage, ending: Ending) {
    let database = stage.sessions();
    let words = WORDS.map(|(word, _)| format!("'{word}'")).join(", ");
    let read = format!("SELECT COUNT(*) FROM team_messages WHERE state = 'read' AND content IN ({words})");
    let busy = "SELECT COUNT(*) FROM jobs WHERE state IN ('queued', 'running')";
    let is_done = (database.count(&read), database.count(ANNOUNCES), database.count(busy)) == (2, 1, 0);
    if is_done {
        // Whether it arrives depends on the kill point.
        let _ = daemon.say(LEAD, ending.words(), 0).await;
    }
}

const ANNOUNCES: &str = "SELECT COUNT(*) FROM messages WHERE idempotency_key LIKE 'announce:%'";

/// Waits until the process dies, or the scenario ends without a kill. Returns which.
async fn dies(daemon: &mut Daemon, stage: &Stage, ending: Ending) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if daemon.dies(Duration::from_millis(30)).await {
            return true;
        }
        if stage.is_over() {
            return false;
        }
        end_if_done(daemon, stage, ending).await;
    }
    panic!("it neither dies nor ends");
}

async fn dies_at(keeps: Keeps, ending: Ending, point: KillPoint, passing: u64) -> (KillPoint, bool) {
    let case = Case { name: format!("{}:{passing}", point.as_str()), ending };
    let model = ModelServer::start();
    model.answer_with(answer);
    let stage = Stage::new(keeps, &model, "", 1).await;
    let mut daemon = stage.home().start(Some(&case.name)).await;
    // Whether this returns depends on the kill point; it is repeated below.
    let _ = daemon.say(LEAD, "build it", 0).await;
    let died = dies(&mut daemon, &stage, ending).await;
    drop(daemon);
    let daemon = stage.home().start(None).await;
    daemon.say(LEAD, "build it", 0).await.unwrap();
    comes_to_its_end(&daemon, &stage, &case).await;
    drop(daemon);
    is_sound(&stage, &model, &case);
    (point, died)
}

pub async fn comes_to_its_end(daemon: &Daemon, stage: &Stage, case: &Case) {
    let began = Instant::now();
    while !stage.is_over() {
        let status_of = || standing(&stage.sessions());
        assert!(began.elapsed() < PATIENCE, "{case}: the team does not end: {:#?}", status_of());
        end_if_done(daemon, stage, case.ending).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Asserts that nothing was lost or duplicated, stored or shown.
pub fn is_sound(stage: &Stage, model: &ModelServer, case: &Case) {
    let requests = model.requests();
    let shown = requests.iter().rev().map(|request| said(request)).find(|text| who(text) == "lead");
    let shown = shown.unwrap_or_default();
    assert_team_rows_are_stored_once(stage, &format!("{case}, the lead was last shown {shown}"));
    assert_shutdown_matches_ending(&stage.sessions(), &shown, case);
    let prompts: Vec<(usize, String)> =
        requests.iter().map(|one| (count_ended_turns(one), said(one))).collect();
    assert_each_team_message_is_shown_once(&stage.sessions(), &prompts, &case.name);
}

/// Asserts one task with one owner that ended once, each message written once and read, the lead notified of the end once.
fn assert_team_rows_are_stored_once(stage: &Stage, case: &str) {
    let (database, ledger) = (stage.sessions(), stage.last_ledger());
    let tasks = "SELECT COUNT(*) FROM tasks";
    let done = "SELECT COUNT(*) FROM tasks WHERE state = 'completed' AND ended_by = 'ann' AND owner IS NULL";
    assert_eq!((ledger.count(tasks), ledger.count(done)), (1, 1), "{case}: one task, and it is done");
    let events =
        |kind: &str| ledger.count(&format!("SELECT COUNT(*) FROM task_events WHERE kind = '{kind}'"));
    assert_eq!((events("created"), events("completed")), (1, 1), "{case}");
    assert_eq!(events("claimed"), 1 + events("expired") + events("released"), "{case}: one owner at a time");
    assert_eq!(ledger.count("SELECT COUNT(*) FROM task_events WHERE is_relayed = 0"), 0, "{case}");
    for (word, reader) in WORDS {
        let all =
            format!("SELECT COUNT(*) FROM team_messages WHERE content = '{word}' AND recipient = '{reader}'");
        let read = format!("{all} AND state = 'read'");
        assert_eq!((database.count(&all), database.count(&read)), (1, 1), "{case}: '{word}'");
    }
    let unread =
        "SELECT COUNT(*) FROM team_messages WHERE recipient = 'lead' AND kind <> 'idle' AND state <> 'read'";
    assert_eq!(database.count(unread), 0, "{case}: the lead's mail: {:#?}", standing(&database));
    assert_eq!(database.count(ANNOUNCES), 1, "{case}: notified once");
    // With several nodes, the one that hosted the lead last has the folder.
    let is_left = stage.homes.iter().filter(|home| home.0.join("teams").join(TEAM).exists()).count();
    assert!(is_left < stage.homes.len(), "{case}: its folder is archived");
}

/// Asserts that an asked member answered once, and that a stopped member was not asked and the lead knows whom it stopped.
fn assert_shutdown_matches_ending(database: &Book, shown: &str, case: &Case) {
    let messages_of =
        |kind: &str| database.count(&format!("SELECT COUNT(*) FROM team_messages WHERE kind = '{kind}'"));
    let mail = (messages_of("shutdown_request"), messages_of("shutdown_response"));
    let (asked, how) = match case.ending {
        Ending::Asked => ((1, 1), "ann agreed"),
        Ending::Forced => ((0, 0), "ann was stopped"),
    };
    assert_eq!(mail, asked, "{case}: {:#?}", standing(database));
    assert!(shown.contains(how), "{case}: {shown}");
    let names_whom = shown.contains(r#""answer":{"answer":"stopped"}"#);
    assert_eq!(names_whom, case.ending == Ending::Forced, "{case}: {shown}");
    assert_eq!(
        database.count("SELECT COUNT(*) FROM members WHERE state <> 'closed'"),
        0,
        "{case}: all have left"
    );
}

const LETTERS: &str = "SELECT sender || ' to ' || recipient || ' ' || kind || ' ' || state || ' ' ||
    COALESCE(turn_id, '') || ' ' || content FROM team_messages ORDER BY seq";
const JOBS: &str =
    "SELECT turn_id || ' ' || session_key || ' ' || state || ' ' || CAST(held AS TEXT) || ' ' ||
    COALESCE(error_code, '') || ' ' || CAST(queued_at AS TEXT) || ' ' || COALESCE(CAST(ended_at AS TEXT), '')
    FROM jobs ORDER BY seq";

fn standing(database: &Book) -> [Vec<String>; 2] {
    [LETTERS, JOBS].map(|sql| database.rows(sql))
}

/// How many turns of a session had ended successfully before a prompt was built: here turns end with text, steps with
/// calls.
fn count_ended_turns(request: &ReceivedRequest) -> usize {
    let ended =
        |message: &&serde_json::Value| message["role"] == "assistant" && message["tool_calls"].is_null();
    request.messages().iter().filter(ended).count()
}

/// A read message is in its reader's conversation from then on, and never twice in one prompt. An idle notification of
/// the runtime is for one turn: afterwards the state of the team shows it.
fn assert_each_team_message_is_shown_once(database: &Book, prompts: &[(usize, String)], case: &str) {
    let read = database.rows(
        "SELECT recipient || '|' || content FROM team_messages WHERE state = 'read' AND kind <> 'idle'",
    );
    let messages: Vec<(&str, &str)> = read.iter().map(|line| line.split_once('|').unwrap()).collect();
    let mut alike: HashMap<(&str, &str), usize> = HashMap::new();
    for message in messages {
        *alike.entry(message).or_default() += 1;
    }
    for ((reader, content), copies) in alike {
        let first = content.lines().next().unwrap_or_default();
        let shown = format!(">{}", polyclaw_domain::team_message::escape_xml(first));
        let of_reader = prompts.iter().filter(|(_, text)| who(text) == reader);
        let times: Vec<(usize, usize)> =
            of_reader.map(|(turns, text)| (*turns, text.matches(&shown).count())).collect();
        let most = times.iter().map(|(_, times)| *times).max().unwrap_or_default();
        assert!((1..=copies).contains(&most), "{case}: '{first}' appears in prompts this often: {times:?}");
        let first_turn = times.iter().filter(|(_, times)| *times > 0).map(|(turns, _)| *turns).min().unwrap();
        let is_kept = times.iter().filter(|(turns, _)| *turns > first_turn).all(|(_, times)| *times > 0);
        assert!(is_kept, "{case}: '{first}' was forgotten: {times:?}");
    }
}

/// Runs every case and counts the kills at each point.
async fn killed_at(
    keeps: Keeps,
    ending: Ending,
    deaths: impl IntoIterator<Item = (KillPoint, u64)>,
) -> HashMap<KillPoint, usize> {
    let (mut due, mut cases) = (deaths.into_iter(), tokio::task::JoinSet::new());
    let mut deaths: HashMap<KillPoint, usize> = HashMap::new();
    loop {
        while cases.len() < AT_ONCE
            && let Some((point, passing)) = due.next()
        {
            cases.spawn(dies_at(keeps, ending, point, passing));
        }
        let Some(case) = cases.join_next().await else { return deaths };
        let (point, died) = case.unwrap();
        *deaths.entry(point).or_default() += usize::from(died);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_survives_kills_without_loss_or_duplicates() {
    let all = DEATHS.iter().flat_map(|(point, passings)| passings.clone().map(move |n| (*point, n)));
    let deaths = killed_at(Keeps::Files, Ending::Asked, all).await;
    for (point, _) in DEATHS {
        assert!(deaths[&point] > 0, "{point:?} was never reached: {deaths:?}");
    }
    assert!(deaths.values().sum::<usize>() >= 35, "{deaths:?}");
}

/// The ledger is in the same database here, and an interrupted turn stays claimed until its lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_on_postgres_survives_kills_without_loss_or_duplicates() {
    let last = DEATHS.iter().map(|(point, passings)| (*point, *passings.end()));
    let deaths = killed_at(Keeps::Server, Ending::Asked, last).await;
    assert!(deaths.values().sum::<usize>() >= 11, "{deaths:?}");
}

/// No member has to agree, so only the next daemon can complete the shutdown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forced_shutdown_survives_kill_and_reports_stopped_members() {
    let points = [KillPoint::ShutdownRequested, KillPoint::ShutdownEnded];
    for keeps in [Keeps::Files, Keeps::Server] {
        let deaths = killed_at(keeps, Ending::Forced, points.map(|point| (point, 1))).await;
        assert_eq!(points.map(|point| deaths[&point]), [1, 1]);
    }
}
