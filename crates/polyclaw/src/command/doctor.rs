//! `polyclaw doctor`: checks everything that an instance needs and says how to fix what is wrong.

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::failure::CommandFailure;
use crate::health::{self, CheckVerdict, HealthCheck};
use crate::output::{CliOutput, TextTone};

/// Check the home, the database, the daemon and the model.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw doctor
  polyclaw doctor --fix
  polyclaw doctor --json

--fix creates missing files and removes the permissions of other users on the home and the token.")]
pub struct Args {
    /// Fix what is safe to fix automatically.
    #[arg(long)]
    fix: bool,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    if args.fix {
        health::fix_home(&context.home)?;
    }
    let checks = health::run_all_checks(context).await;
    let failed = checks.iter().filter(|check| check.verdict == CheckVerdict::Fail).count();
    if context.output.json && failed == 0 {
        return Ok(context
            .output
            .print_value(&json!({ "checks": checks_json(&checks) }), |_| String::new())?);
    }
    if !context.output.json {
        for check in &checks {
            context.output.print_line(&check_line(check, context.output))?;
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let names: Vec<&str> =
        checks.iter().filter(|check| check.verdict == CheckVerdict::Fail).map(|check| check.name).collect();
    let first = checks.iter().find(|check| check.verdict == CheckVerdict::Fail);
    let mut failure =
        CommandFailure::failed("unhealthy", format!("{failed} check(s) failed: {}", names.join(", ")));
    failure.hint = first.and_then(|check| check.hint.clone());
    failure.details = Some(Box::new(json!({ "checks": checks_json(&checks) })));
    Err(failure.into())
}

fn checks_json(checks: &[HealthCheck]) -> Vec<Value> {
    let value = |check: &HealthCheck| json!({ "name": check.name, "verdict": check.verdict.as_str(), "found": check.finding, "hint": check.hint });
    checks.iter().map(value).collect()
}

fn check_line(check: &HealthCheck, output: CliOutput) -> String {
    let tone = match check.verdict {
        CheckVerdict::Ok => TextTone::Good,
        CheckVerdict::Warn => TextTone::Warn,
        CheckVerdict::Fail => TextTone::Bad,
    };
    let verdict = output.paint(tone, &format!("{:<4}", check.verdict.as_str()));
    let hint = check.hint.as_ref().map(|hint| format!("\n       {hint}")).unwrap_or_default();
    format!("{verdict}  {:<10} {}{hint}", check.name, check.finding)
}
