//! Runs one tool: consent, intent, run, result. The intent is stored before anything happens.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::authority::Authority;
use polyclaw_domain::briefing::is_instruction_file;
use polyclaw_domain::event::EventKind;
use polyclaw_domain::id::MessageId;
use polyclaw_domain::kill_points::KillPoint;
use polyclaw_domain::policy::{self, RequiredApprover};
use polyclaw_domain::redact::{RedactionStream, has_redaction_mark};
use polyclaw_domain::sandbox::SandboxFacts;
use polyclaw_domain::sanitize::quote_literal;
use polyclaw_domain::tool::{ToolCall, ToolConsent, ToolEffect, ToolOutcome, ToolQuestion};
use polyclaw_store::intents::{self, ReplayDecision};
use polyclaw_store::jobs::ClaimStatus;
use polyclaw_store::{Tx, jobs};
use serde_json::json;

use crate::approval;
use crate::core::Engine;
use crate::hub::FrameKind;
use crate::prompt::{OfferedTool, TurnContext};
use crate::span;
use crate::toolbox::subagents;
use crate::turn::{
    TurnAbort, TurnResult, abort_if_stopping, append_step, check_claim, end, invalid_arguments_message,
    or_lost, result_message, step_message, turn_event,
};
use crate::worker::RunningTurn;

pub(super) const OUTCOME_UNKNOWN: &str = "This call was interrupted while it ran. Whether it took effect is \
                                          unknown; it was not run again. Check before repeating it.";

/// Error for a call whose arguments contain a redaction mark, because the model copied it or because the original
/// arguments were lost in a restart. Running it would overwrite the secret with the mark.
const REDACTED_ARGUMENTS_TEXT: &str = "Not run: the arguments contain '[redacted secret]', a placeholder for a \
                                       value that is hidden from you. Do it without that value, or leave it to a \
                                       person.";

/// Error for a call that writes agent instructions, if no owner asked for it and none can be asked.
const GUARDED_FILE_TEXT: &str = "Not run: this file contains instructions for agents. Only an owner may approve \
                                 changes to it, and nobody can be asked here.";

/// Maximum length of a path in an approval question.
const SHOWN_PATH: usize = 200;

/// Runs a call and stores its result. Returns whether a newer message of a person waits.
pub(super) async fn run_tool_call(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &mut TurnContext,
    call: &ToolCall,
) -> TurnResult<(ToolOutcome, bool)> {
    let claim = &running.claim;
    let (shown, began) = (engine.redactor().redact_call(call), engine.now());
    let offered = context.tools.iter().find(|tool| tool.spec.name == call.name);
    let (effect, refused) = match (invalid_arguments_message(call), offered) {
        (None, Some(tool)) if has_redaction_mark(call) => {
            (tool.spec.effect, Some(ToolOutcome::error(REDACTED_ARGUMENTS_TEXT)))
        }
        (None, Some(tool)) => {
            let effect = subagents::call_effect(&engine.settings(), call, tool.spec.effect);
            (effect, obtain_consent(engine, running, context, (tool, call, &shown)).await?)
        }
        (unreadable, _) => {
            let why = unreadable.unwrap_or_else(|| context.tool_refusal(engine, &shown));
            engine.record_event(turn_event(claim, EventKind::ToolRefused, json!({ "reason": why }))).await;
            (ToolEffect::Pure, Some(ToolOutcome::error(why)))
        }
    };
    let (outcome, decision) = match refused {
        Some(outcome) => (outcome, None),
        None => {
            if subagents::is_streamed(call) {
                end::release_drafts(engine, running, context).await?;
            }
            let decision = begin_intent(engine, running, call, effect).await?;
            (execute_call(engine, running, context, (call, &shown), decision).await, Some(decision))
        }
    };
    // The wait was cut short and is repeated where the turn continues.
    if subagents::is_waiting_call(&engine.settings(), call) && engine.is_draining() {
        return Err(TurnAbort::HandedBack);
    }
    if decision.is_some() {
        span::record_tool_span(engine, running, &shown, (began, outcome.is_error));
    }
    engine.hub.publish(
        &claim.session,
        FrameKind::ToolEnded {
            turn_id: claim.turn.clone(),
            call_id: call.id.clone(),
            name: shown.name.clone(),
            is_error: outcome.is_error,
            text: outcome.content.chars().take(4_000).collect(),
            sandbox: outcome.facts.as_ref().map(sandbox_facts_json),
        },
    );
    let steered = store_result(engine, running, context, &shown, (&outcome, decision)).await?;
    engine.hit_kill_point(KillPoint::ResultStored).await;
    Ok((outcome, steered))
}

/// Obtains a person's approval if the policy or the tool requires it. `None` means that the call may run.
async fn obtain_consent(
    engine: &Engine,
    running: &Arc<RunningTurn>,
    context: &TurnContext,
    (tool, call, shown): (&OfferedTool, &ToolCall, &ToolCall),
) -> TurnResult<Option<ToolOutcome>> {
    let by_call = tool.spec.consent == ToolConsent::ByCall;
    let authority = context.authority();
    let guarded = match authority {
        Authority::Owner => None,
        _ => guarded(engine, context, call, shown).await,
    };
    let is_guarded = guarded.is_some();
    let asks = tool.requires_approval || is_guarded;
    if !(asks || by_call) || has_stored_intent(engine, running, call).await? {
        return Ok(None);
    }
    if is_guarded && !context.scope.can_ask {
        return Ok(Some(ToolOutcome::error(GUARDED_FILE_TEXT)));
    }
    let approver =
        if is_guarded { RequiredApprover::Owner } else { policy::required_approver(&tool.spec, authority) };
    let question = async || match by_call {
        true => engine.tools().assess_call(&context.scope, call).await,
        false => ToolQuestion::None,
    };
    match question().await {
        ToolQuestion::Refuse(outcome) => Ok(Some(outcome)),
        ToolQuestion::None if !asks => Ok(None),
        ToolQuestion::None => {
            let words = guarded.and_then(|guarded| guarded.words);
            approval::request_approval(engine, running, context, (shown, words.as_deref(), approver)).await
        }
        ToolQuestion::Ask(words) => {
            let asked = (shown, Some(&*words), approver);
            let refused = approval::request_approval(engine, running, context, asked).await?;
            // The approved action may have changed while the question was open.
            match refused.is_none() && question().await != ToolQuestion::Ask(words) {
                true => Ok(Some(ToolOutcome::error("Not run: the action changed after the approval."))),
                false => Ok(refused),
            }
        }
    }
}

/// A call that writes a file with agent instructions.
struct Guarded {
    /// The question, if the arguments do not name that file.
    words: Option<String>,
}

/// Checks the path in the call and the path behind its symlinks.
async fn guarded(
    engine: &Engine,
    context: &TurnContext,
    call: &ToolCall,
    shown: &ToolCall,
) -> Option<Guarded> {
    if policy::writes_instructions(call) {
        return Some(Guarded { words: None });
    }
    let written = engine.tools().written_files(&context.scope, call).await;
    let settings = engine.settings();
    let is_notified = |path: &&PathBuf| {
        is_instruction_file(&path.to_string_lossy())
            || is_skill_file(&settings.skill_folders, &context.scope.workspace, path)
    };
    let file = quote_literal(&written.iter().find(is_notified)?.to_string_lossy(), SHOWN_PATH);
    let words = format!("This changes {file}, a file that tells agents what to do:");
    Some(Guarded { words: Some(format!("{words}\n{} {}", shown.name, shown.arguments)) })
}

/// Whether a file of a workspace is in one of the skill folders named in the config.
fn is_skill_file(folders: &[PathBuf], workspace: &Path, file: &Path) -> bool {
    let Ok(workspace) = workspace.canonicalize() else { return false };
    let file = workspace.join(file);
    folders.iter().any(|folder| file.starts_with(folder.canonicalize().as_deref().unwrap_or(folder)))
}

/// Whether the call was started before a crash. It was approved then, and its effect class decides whether it runs
/// again.
async fn has_stored_intent(engine: &Engine, running: &RunningTurn, call: &ToolCall) -> TurnResult<bool> {
    let (turn, id) = (running.claim.turn.clone(), call.id.clone());
    let read = engine.db().read(move |tx| intents::is_started(tx, &turn, &id));
    read.await.map_err(|error| TurnAbort::Lost(error.into()))
}

/// Renders sandbox facts for people: all facts and a summary line.
fn sandbox_facts_json(facts: &SandboxFacts) -> serde_json::Value {
    json!({ "line": facts.summary_line(), "facts": facts })
}

async fn begin_intent(
    engine: &Engine,
    running: &RunningTurn,
    call: &ToolCall,
    effect: ToolEffect,
) -> TurnResult<ReplayDecision> {
    let (claim, call, now) = (running.claim.clone(), call.clone(), engine.now());
    let write = move |tx: &mut Tx<'_>| match check_claim(tx, &claim)? {
        ClaimStatus::Valid => intents::start_call(tx, &claim.turn, &call, effect, now).map(Some),
        _ => Ok(None),
    };
    let decision = or_lost(engine.write_with_retry(write).await)?.ok_or(TurnAbort::Cancelled)?;
    engine.hit_kill_point(KillPoint::IntentStored).await;
    Ok(decision)
}

async fn execute_call(
    engine: &Engine,
    running: &RunningTurn,
    context: &TurnContext,
    (call, shown): (&ToolCall, &ToolCall),
    decision: ReplayDecision,
) -> ToolOutcome {
    let claim = &running.claim;
    if decision == ReplayDecision::Unknown {
        engine
            .record_event(turn_event(
                claim,
                EventKind::TurnTakenOver,
                json!({ "unknown_outcome": call.name }),
            ))
            .await;
        return ToolOutcome::error(OUTCOME_UNKNOWN);
    }
    engine.hub.publish(
        &claim.session,
        FrameKind::ToolStarted {
            turn_id: claim.turn.clone(),
            call_id: call.id.clone(),
            name: shown.name.clone(),
            arguments: shown.arguments.clone(),
        },
    );
    let redactor = engine.redactor();
    let pieces = Mutex::new(RedactionStream::new(Arc::clone(&redactor)));
    let publish = |text: String| {
        if !text.is_empty() {
            let (turn_id, call_id) = (claim.turn.clone(), call.id.clone());
            engine.hub.publish(&claim.session, FrameKind::ToolOutput { turn_id, call_id, text });
        }
    };
    let clean = || pieces.lock().unwrap_or_else(PoisonError::into_inner);
    let progress = |text: &str| {
        running.note_progress();
        publish(clean().push(text));
    };
    let mut outcome = engine.tools().run(&context.scope, &claim.turn, call, &progress).await;
    publish(clean().finish());
    redactor.redact_in_place(&mut outcome.content);
    outcome.images.iter_mut().for_each(|(name, _)| redactor.redact_in_place(name));
    if let Some(crashes @ 1..) = outcome.facts.as_ref().map(|facts| facts.crashes) {
        let data = json!({ "code": "worker_crash", "tool": call.name, "crashes": crashes });
        engine.record_event(turn_event(claim, EventKind::WorkerCrashed, data)).await;
    }
    engine.hit_kill_point(KillPoint::ToolRan).await;
    outcome
}

async fn store_result(
    engine: &Engine,
    running: &RunningTurn,
    context: &mut TurnContext,
    call: &ToolCall,
    (outcome, decision): (&ToolOutcome, Option<ReplayDecision>),
) -> TurnResult<bool> {
    let now = engine.now();
    let id = MessageId::new(engine.next_id());
    let mut step = result_message(step_message(context, &running.claim, id, now), call, outcome);
    let (claim, call_id, stored) = (running.claim.clone(), call.id.clone(), step.clone());
    let write = move |tx: &mut Tx<'_>| {
        let ticket = append_step(tx, &stored)?;
        let hold = check_claim(tx, &claim)?;
        if let Some(decision) = decision {
            intents::finish_call(tx, &claim.turn, &call_id, decision, now)?;
        }
        Ok((ticket, jobs::is_steered(tx, &claim.session)?, hold))
    };
    let (ticket, steered, hold) = or_lost(engine.write_with_retry(write).await)?;
    step.position = ticket;
    context.push_step(step);
    abort_if_stopping(hold)?;
    Ok(steered)
}
