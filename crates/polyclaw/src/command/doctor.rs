//! `polyclaw doctor`: looks at everything an instance needs, and says what to do about what is wrong.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::failure::Failure;
use crate::health::{self, Check, Verdict};
use crate::output::{Output, Tone};

/// Check the home, the database, the daemon and the model.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw doctor
  polyclaw doctor --fix
  polyclaw doctor --json

--fix creates what is missing and takes rights away that others have on the home and the token.")]
pub struct Args {
    /// Mend what can be mended without asking.
    #[arg(long)]
    fix: bool,
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    if args.fix {
        health::fix(&context.home)?;
    }
    let checks = health::all(context).await;
    let failed = checks.iter().filter(|check| check.verdict == Verdict::Fail).count();
    if context.output.json && failed == 0 {
        return Ok(context.output.say(&json!({ "checks": values(&checks) }), |_| String::new())?);
    }
    if !context.output.json {
        for check in &checks {
            context.output.line(&told(check, context.output))?;
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let names: Vec<&str> =
        checks.iter().filter(|check| check.verdict == Verdict::Fail).map(|check| check.name).collect();
    let first = checks.iter().find(|check| check.verdict == Verdict::Fail);
    let mut failure = Failure::failed("unhealthy", format!("{failed} check(s) failed: {}", names.join(", ")));
    failure.hint = first.and_then(|check| check.hint.clone());
    failure.details = Some(Box::new(json!({ "checks": values(&checks) })));
    Err(failure.into())
}

fn values(checks: &[Check]) -> Vec<Value> {
    let value = |check: &Check| json!({ "name": check.name, "verdict": check.verdict.as_str(), "found": check.found, "hint": check.hint });
    checks.iter().map(value).collect()
}

fn told(check: &Check, output: Output) -> String {
    let tone = match check.verdict {
        Verdict::Ok => Tone::Good,
        Verdict::Warn => Tone::Warn,
        Verdict::Fail => Tone::Bad,
    };
    let verdict = output.paint(tone, &format!("{:<4}", check.verdict.as_str()));
    let hint = check.hint.as_ref().map(|hint| format!("\n       {hint}")).unwrap_or_default();
    format!("{verdict}  {:<10} {}{hint}", check.name, check.found)
}
