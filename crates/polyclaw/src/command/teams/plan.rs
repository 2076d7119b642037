//! `polyclaw teams plan`: shows a member's plan, approves or rejects it.

use polyclaw_api::teams::plan::PlanView;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::visible_line;

#[derive(clap::Args)]
pub(super) struct TeamsPlanArgs {
    /// Name that `polyclaw teams` lists.
    team: String,
    /// Member name.
    member: String,
    /// Approve the plan. The optional text is sent to the member.
    #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
    approve: Option<String>,
    /// Reject the plan and say what to change.
    #[arg(long, value_name = "TEXT", conflicts_with = "approve")]
    reject: Option<String>,
}

pub(super) async fn run(
    plan: &TeamsPlanArgs,
    client: &ApiClient,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let path = format!("/teams/{}/members/{}/plan", encode_segment(&plan.team), encode_segment(&plan.member));
    let (approve, content) = match (&plan.approve, &plan.reject) {
        (Some(text), _) => (true, text),
        (None, Some(text)) => (false, text),
        (None, None) => {
            let found: PlanView = client.get_as(&path).await?;
            return Ok(context.output.print_value(&found, |_| plan_text(plan, &found))?);
        }
    };
    let sent: Value = client.post_as(&path, &json!({ "approve": approve, "content": content })).await?;
    Ok(context.output.print_value(&sent, |_| {
        if approve {
            format!("Plan approved. {} may start.", plan.member)
        } else {
            format!("Plan rejected. {} is asked for another one.", plan.member)
        }
    })?)
}

fn plan_text(plan: &TeamsPlanArgs, found: &PlanView) -> String {
    let member = &plan.member;
    match found.status.as_str() {
        "submitted" => format!(
            "{}\n\nApprove it with `polyclaw teams plan {} {member} --approve`, or reject it with `--reject \"what \
             to change\"`.",
            visible_line(found.content.as_deref().unwrap_or_default()),
            plan.team
        ),
        "required" => {
            format!("{member} has not submitted a plan yet, and can only read until one is approved.")
        }
        _ => format!("{member} needs no approval."),
    }
}
