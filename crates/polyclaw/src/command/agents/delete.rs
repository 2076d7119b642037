//! `polyclaw agents delete`: deletes an agent that is not in use.

use polyclaw_api::agents::AgentView;
use polyclaw_api::cron::CronJobList;
use polyclaw_api::sessions::{SessionList, SessionView};
use serde_json::Value;

use super::agent_path;
use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::{CommandFailure, FailureExit};
use crate::output::visible_line;

#[derive(clap::Args)]
pub struct Args {
    /// ID that `polyclaw agents` lists.
    id: String,
    /// Delete the agent even while it answers, together with the cron jobs created for it.
    #[arg(long)]
    force: bool,
}

pub async fn run(args: &Args, client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let id = &args.id;
    let jobs = agent_cron_jobs(client, id).await?;
    if !args.force {
        let busy = running_sessions(client, id).await?;
        if !jobs.is_empty() || !busy.is_empty() {
            return Err(agent_in_use(id, &jobs, &busy).into());
        }
    }
    // Deletes the jobs first: if the agent went first and a later step failed, a repeat would not find the agent and
    // the jobs would be left behind.
    let agent: AgentView = client.get_as(&agent_path(id)).await?;
    let is_ours = agent.source == "api";
    for job in jobs.iter().filter(|_| is_ours) {
        let _: Value = client.delete_as(&format!("/cron/{}", encode_segment(job))).await?;
    }
    let gone: Value = client.delete_as(&agent_path(id)).await?;
    Ok(context.output.print_value(&gone, |_| match jobs.len() {
        0 => format!("Deleted agent {id}; its conversations stay readable."),
        _ => format!(
            "Deleted agent {id} and its cron jobs {}; its conversations stay readable.",
            jobs.join(", ")
        ),
    })?)
}

/// Lists the jobs created for the agent through the API. Jobs in the config never name an agent that can be deleted
/// here.
async fn agent_cron_jobs(client: &ApiClient, id: &str) -> Result<Vec<String>, CommandFailure> {
    let answer: CronJobList = client.get_as("/cron").await?;
    let own = answer.cron.into_iter().filter(|job| job.agent_id.as_str() == id && job.source == "api");
    Ok(own.map(|job| visible_line(&job.id)).collect())
}

/// Lists the sessions in which the agent is answering.
async fn running_sessions(client: &ApiClient, id: &str) -> Result<Vec<String>, CommandFailure> {
    let sessions: Vec<SessionView> =
        client.list_pages::<SessionList>(&format!("/sessions?agent={}", encode_segment(id)), 1_000).await?;
    let answering = sessions.iter().filter(|session| session.running_turn_id.is_some());
    Ok(answering.map(|session| visible_line(session.session_key.as_str())).collect())
}

fn agent_in_use(id: &str, jobs: &[String], busy: &[String]) -> CommandFailure {
    let mut uses = Vec::new();
    if !busy.is_empty() {
        uses.push(format!("it is answering in {}", busy.join(", ")));
    }
    if !jobs.is_empty() {
        uses.push(format!("it has the cron jobs {}", jobs.join(", ")));
    }
    CommandFailure::new(
        FailureExit::Conflict,
        "agent_in_use",
        format!("{id} is in use: {}", uses.join(", and ")),
    )
    .hint("--force deletes the agent and its cron jobs anyway")
}
