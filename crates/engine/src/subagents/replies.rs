//! The replies that make up a run's result. A later reply adds to an earlier one and does not replace it, unless it
//! completes the work that the earlier one only announced.

use polyclaw_domain::id::TurnId;
use polyclaw_domain::message::MessageRole;
use polyclaw_domain::run::{self, SubagentRun};
use polyclaw_store::messages::SessionMessage;
use polyclaw_store::{Tx, backlog, jobs, messages};

/// Maximum number of turns of a run that are scanned.
const MAX_SCANNED_TURNS: usize = 50;

/// How a turn's reply contributes to the run's result.
enum ReplyContribution {
    /// It completes the work. Earlier replies were intermediate.
    Completes,
    /// It answers something the owner added.
    Adds,
    /// It answers a person, who already has it.
    Aside,
}

/// Returns the text that ends a run, joined with earlier replies that its owner has not received.
pub(super) fn join_earlier_replies(
    tx: &mut Tx<'_>,
    run: &SubagentRun,
    last: &TurnId,
    text: String,
) -> polyclaw_store::Result<String> {
    let mut turns = jobs::list(tx, Some(&run.child), None, MAX_SCANNED_TURNS)?;
    turns.retain(|job| job.queued_at >= run.created_at && (job.reply.is_some() || job.turn == *last));
    let mut kept = Vec::new();
    for (n, job) in turns.iter().enumerate().skip_while(|(_, job)| job.turn != *last) {
        let is_first = n + 1 == turns.len();
        let share = if is_first { ReplyContribution::Completes } else { classify_reply(tx, &job.turn)? };
        if !matches!(share, ReplyContribution::Aside) {
            kept.push(if job.turn == *last { text.clone() } else { job_reply_text(tx, job)? });
        }
        if matches!(share, ReplyContribution::Completes) {
            break;
        }
    }
    kept.retain(|text| !text.trim().is_empty());
    Ok(if kept.is_empty() { text } else { kept.join("\n\nEarlier answer: ") })
}

fn job_reply_text(tx: &mut Tx<'_>, job: &jobs::TurnJob) -> polyclaw_store::Result<String> {
    let found = job.reply.as_ref().map_or(Ok(None), |id| messages::get(tx, id))?;
    Ok(found.map(|message| message.text).unwrap_or_default())
}

fn classify_reply(tx: &mut Tx<'_>, turn: &TurnId) -> polyclaw_store::Result<ReplyContribution> {
    if !backlog::list_assigned_to_turn(tx, turn)?.is_empty() {
        return Ok(ReplyContribution::Completes);
    }
    let is_input = |message: &SessionMessage| message.role == MessageRole::User && message.address.is_some();
    let inputs: Vec<SessionMessage> =
        messages::list_by_turn(tx, turn)?.into_iter().filter(is_input).collect();
    let is_announce = |message: &SessionMessage| message.meta.as_ref().is_some_and(run::is_announce);
    Ok(match () {
        () if inputs.is_empty() || inputs.iter().any(is_announce) => ReplyContribution::Completes,
        () if inputs.iter().all(|message| message.origin.is_person()) => ReplyContribution::Aside,
        () => ReplyContribution::Adds,
    })
}
