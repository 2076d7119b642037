//! A team over two nodes: its lead and its members are turns like others, and any node takes them up.

use polyclaw_domain::fault::KillPoint;
use polyclaw_testkit::model_server::ModelServer;

use super::kills::{PATIENCE, answer, comes_to_its_end, is_sound};
use super::{Keeps, LEAD, Stage, TEAM, entries};

/// Turns of the team ran on both nodes, or on the one that is left.
fn nodes_of(stage: &Stage) -> Vec<String> {
    stage.sessions().rows("SELECT DISTINCT node FROM jobs WHERE node IS NOT NULL ORDER BY node")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_over_two_nodes_is_one_team_and_its_files_are_where_its_lead_is() {
    let model = ModelServer::start();
    model.answer(answer);
    let stage = Stage::new(Keeps::Server, &model, "", 2).await;
    let daemons = [stage.homes[0].start(None).await, stage.homes[1].start(None).await];
    daemons[0].say(LEAD, "build it", 0).await.unwrap();
    comes_to_its_end(&daemons[1], &stage, "two nodes").await;
    is_sound(&stage, &model, "two nodes");
    // Seen from either, it is the same.
    for daemon in &daemons {
        let seen = daemon.get("/api/v1/teams?all=true").await;
        assert!(seen.to_string().contains(TEAM), "{seen}");
    }
    let copies = stage.homes.iter().map(|home| entries(&home.0.join("teams/.trash")).len());
    assert_eq!(copies.sum::<usize>(), 1, "one node has its files");
}

/// The node on which the team was made dies in the middle; the other goes on with lead, member, task and mail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_team_outlives_the_node_it_was_made_on() {
    for (point, passing) in
        [(KillPoint::LedgerWritten, 2), (KillPoint::StepStored, 5), (KillPoint::ToolRan, 6)]
    {
        let case = format!("{}:{passing}", point.as_str());
        let model = ModelServer::start();
        model.answer(answer);
        let stage = Stage::new(Keeps::Server, &model, "", 2).await;
        let mut dies = stage.homes[0].start(Some(&case)).await;
        dies.say(LEAD, "build it", 0).await.unwrap();
        // The other comes when the first has gone so far: it has no part in where that dies.
        assert!(dies.dies(PATIENCE).await, "{case} was never reached");
        let stays = stage.homes[1].start(None).await;
        stays.say(LEAD, "build it", 0).await.unwrap();
        comes_to_its_end(&stays, &stage, &case).await;
        is_sound(&stage, &model, &case);
        assert_eq!(nodes_of(&stage).len(), 2, "{case}: each did its part");
    }
}
