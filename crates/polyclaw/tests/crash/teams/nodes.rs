//! A team on two nodes: turns of its lead and its members can run on any node.

use std::path::Path;

use polyclaw_domain::kill_points::KillPoint;
use polyclaw_testkit::model_server::ModelServer;
use serde_json::Value;

use super::kills::{Case, Ending, PATIENCE, answer, comes_to_its_end, is_sound};
use super::{Keeps, LEAD, Stage, TEAM, entries};

/// The message IDs of every mailbox below a folder.
fn mailboxes(folder: &Path) -> Vec<Vec<String>> {
    let below = entries(folder);
    let mut all: Vec<_> =
        below.iter().filter(|path| path.is_dir()).flat_map(|path| mailboxes(path)).collect();
    for file in below.iter().filter(|path| path.ends_with("messages.jsonl")) {
        let text = std::fs::read_to_string(file).unwrap();
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].to_string();
        all.push(text.lines().map(id).collect());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_on_two_nodes_runs_as_one_team() {
    let model = ModelServer::start();
    model.answer_with(answer);
    let stage = Stage::new(Keeps::Server, &model, "", 2).await;
    let daemons = [stage.homes[0].start(None).await, stage.homes[1].start(None).await];
    daemons[0].say(LEAD, "build it", 0).await.unwrap();
    let case = Case { name: "two nodes".to_owned(), ending: Ending::Asked };
    comes_to_its_end(&daemons[1], &stage, &case).await;
    is_sound(&stage, &model, &case);
    // Seen from either, it is the same.
    for daemon in &daemons {
        let seen = daemon.get("/api/v1/teams?all=true").await;
        assert!(seen.to_string().contains(TEAM), "{seen}");
    }
    let copies: Vec<_> = stage.homes.iter().flat_map(|home| mailboxes(&home.0.join("teams"))).collect();
    assert!(!copies.is_empty(), "the node of the lead has the mail files");
    for mut ids in copies {
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "each message once: {ids:?}");
    }
}

/// The node that created the team dies halfway; the other continues with lead, member, task and mail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn team_survives_death_of_the_node_that_created_it() {
    for (point, passing) in
        [(KillPoint::LedgerWritten, 2), (KillPoint::StepStored, 5), (KillPoint::ToolRan, 6)]
    {
        let case = Case { name: format!("{}:{passing}", point.as_str()), ending: Ending::Asked };
        let model = ModelServer::start();
        model.answer_with(answer);
        let stage = Stage::new(Keeps::Server, &model, "", 2).await;
        let mut dies = stage.homes[0].start(Some(&case.name)).await;
        dies.say(LEAD, "build it", 0).await.unwrap();
        // The other starts once the first has got that far, so it does not affect the kill point.
        assert!(dies.dies(PATIENCE).await, "{case} was never reached");
        let daemon = stage.homes[1].start(None).await;
        daemon.say(LEAD, "build it", 0).await.unwrap();
        comes_to_its_end(&daemon, &stage, &case).await;
        is_sound(&stage, &model, &case);
        let files = stage.homes[1].0.join("teams");
        assert_eq!(entries(&files.join(".trash")).len(), 1, "{case}: its files are on the node of its lead");
        assert!(!files.join(TEAM).exists(), "{case}");
    }
}
