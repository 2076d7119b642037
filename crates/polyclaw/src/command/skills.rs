//! `polyclaw skills`: instructions for particular tasks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polyclaw_domain::skill::SkillLocation;
use polyclaw_tool::{DiscoveredSkill, SkillFolder, check_skills};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::{Output, Tone, cell, safe};

/// Instructions for particular tasks: list what an agent has, check what they say.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw skills list
  polyclaw skills list --agent ops
  polyclaw skills check
  polyclaw skills check ~/Downloads/some-skill

A skill is a folder with a SKILL.md. Put it into skills in the home, for all agents, into skills in the workspace,
or into workspace/agents/<id>/skills for one; the nearest of a name is used. [skills] folders in config.toml names more
folders for all agents. Check one before you put it there.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// The skills found for an agent, and whether its policy lets it have them.
    #[command(after_help = "Examples:
  polyclaw skills list
  polyclaw skills list --agent ops")]
    List {
        /// The agent. The instance's default one if left out.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Look for what is wrong or suspicious. Needs no daemon; nothing is run.
    #[command(after_help = "Examples:
  polyclaw skills check
  polyclaw skills check ~/Downloads/some-skill")]
    Check {
        /// A skill's folder, or a folder of skills. All of this home if left out.
        path: Option<PathBuf>,
    },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    match &args.verb {
        None => list(context, None).await,
        Some(Verb::List { agent }) => list(context, agent.as_deref()).await,
        Some(Verb::Check { path }) => Ok(check(context, path.as_deref())?),
    }
}

async fn list(context: &Context, agent: Option<&str>) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let query = agent.map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
    let answer = client.get(&format!("/skills{query}")).await?;
    let row = |skill: &Value| {
        let allowed = match skill["rule"].as_str() {
            _ if skill["allowed"] == true => "yes",
            Some("denied") => "no: skills.deny names it",
            Some("not_listed") => "no: skills.allow does not name it",
            Some("no_tool") => "no: the agent has no tool to read it",
            _ => "no",
        };
        vec![
            cell(&skill["name"]),
            cell(&skill["place"]),
            allowed.to_owned(),
            short(&cell(&skill["description"])),
        ]
    };
    let rows: Vec<_> = answer["skills"].as_array().into_iter().flatten().map(row).collect();
    let text = |output: &Output| match rows.is_empty() {
        true => "No skills were found. `polyclaw skills --help` says where they go.".to_owned(),
        false => output.table(&["NAME", "PLACE", "ALLOWED", "DESCRIPTION"], &rows),
    };
    Ok(context.output.say(&answer, text)?)
}

fn short(text: &str) -> String {
    polyclaw_domain::sanitize::to_single_line(text, 80)
}

fn check(context: &Context, path: Option<&Path>) -> Result<(), Failure> {
    let sources = match path {
        Some(path) => vec![at(path)?],
        None => everywhere(context)?,
    };
    let found = check_skills(&sources);
    let errors = found.iter().flat_map(|one| &one.findings).filter(|finding| finding.is_error).count();
    let report: Vec<Value> = found.iter().map(as_json).collect();
    let report = json!({ "skills": report });
    if errors > 0 {
        if !context.output.json {
            let _ = context.output.line(&as_text(&context.output, &found));
        }
        let what = format!("{errors} things keep skills from being used");
        let mut failure = Failure::failed("skills_broken", what).hint("mend what is marked as an error");
        failure.details = Some(Box::new(report));
        return Err(failure);
    }
    let _ = context.output.say(&report, |output| as_text(output, &found));
    Ok(())
}

/// A skill's own folder stands for itself; any other for the skills in it.
fn at(path: &Path) -> Result<SkillFolder, Failure> {
    let path = path.canonicalize().map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display())).hint("name a folder that is there")
    })?;
    let is_skill = path.join(polyclaw_domain::skill::SKILL_FILE).exists();
    let only = path.file_name().filter(|_| is_skill).map(ToOwned::to_owned);
    let folder = if is_skill { path.parent().unwrap_or(&path).to_owned() } else { path };
    Ok(SkillFolder { place: SkillLocation::Shared, base: folder.clone(), folder, only })
}

/// Every folder in which an agent of this home finds skills, nearest first.
fn everywhere(context: &Context) -> Result<Vec<SkillFolder>, Failure> {
    let home = &context.home;
    let (root, config) = (home.workspace(), home.read_unresolved_config()?);
    let source = |place, base: &Path, folder: PathBuf| SkillFolder {
        place,
        base: base.to_owned(),
        folder,
        only: None,
    };
    let mut agents: BTreeSet<PathBuf> = BTreeSet::new();
    for entry in std::fs::read_dir(root.join("agents")).into_iter().flatten().flatten() {
        agents.insert(entry.path());
    }
    let mut sources: Vec<SkillFolder> =
        agents.into_iter().map(|folder| source(SkillLocation::Agent, &root, folder.join("skills"))).collect();
    let default = config.agents.default_agent_id();
    let own = config.agents.agent_specs().into_iter().map(|spec| spec.workspace_folder(&root, &default));
    let workspaces: BTreeSet<PathBuf> =
        own.chain([root.clone()]).map(|path| path.components().collect()).collect();
    sources.extend(
        workspaces.iter().map(|folder| source(SkillLocation::Workspace, folder, folder.join("skills"))),
    );
    let shared = [home.skills()].into_iter().chain(config.skills.skill_folders(home.path()));
    sources.extend(shared.map(|folder| source(SkillLocation::Shared, &folder.clone(), folder)));
    Ok(sources)
}

fn as_json(found: &DiscoveredSkill) -> Value {
    json!({
        "name": found.skill.as_ref().map(|skill| &skill.name),
        "place": found.place,
        "folder": found.folder.display().to_string(),
        "usable": found.skill.is_some(),
        "findings": found.findings,
    })
}

fn as_text(output: &Output, found: &[DiscoveredSkill]) -> String {
    if found.is_empty() {
        return "No skills were found.".to_owned();
    }
    let mut lines = Vec::new();
    for one in found {
        let verdict = match (&one.skill, one.findings.len()) {
            (None, _) => output.paint(Tone::Bad, "error"),
            (Some(_), 0) => output.paint(Tone::Good, "ok"),
            (Some(_), _) => output.paint(Tone::Warn, "look"),
        };
        lines.push(format!("{verdict:<5} {}", safe(&one.folder.display().to_string())));
        for finding in &one.findings {
            let line = finding.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            lines.push(format!("      {}{line} [{}]", safe(&finding.message), finding.code));
            lines.push(format!("      {} {}", output.paint(Tone::Dim, "hint:"), finding.hint));
        }
    }
    lines.join("\n")
}
