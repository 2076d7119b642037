//! `polyclaw skills`: lists and checks skills, which are instructions for particular tasks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use polyclaw_api::skills::{SkillList, SkillView};
use polyclaw_domain::skill::{SkillEligibility, SkillLocation};
use polyclaw_folder::FolderHandle;
use polyclaw_tool::{DiscoveredSkill, SkillFolder, check_skills};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::output::{CliOutput, TextTone, cell, visible_line};

/// List the skills of an agent, or check skills for problems.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw skills list
  polyclaw skills list --agent ops
  polyclaw skills check
  polyclaw skills check ~/Downloads/some-skill

A skill is a folder with a SKILL.md. Put it in `skills` of the home or of the workspace, for all agents, or in
workspace/agents/<id>/skills for one agent; of several with the same name, the closest is used. [skills] folders in
config.toml adds folders for all agents. Check a skill before you install it.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<SkillsCommand>,
}

#[derive(clap::Subcommand)]
enum SkillsCommand {
    /// List the skills found for an agent, and whether its policy allows them.
    #[command(after_help = "Examples:
  polyclaw skills list
  polyclaw skills list --agent ops")]
    List {
        /// Agent to list skills for. Defaults to the instance's default agent.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
    },
    /// Check skills for errors and suspicious content. Needs no daemon; runs nothing.
    #[command(after_help = "Examples:
  polyclaw skills check
  polyclaw skills check ~/Downloads/some-skill")]
    Check {
        /// Folder of a skill or of several skills. Defaults to all skills of this home.
        path: Option<PathBuf>,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    match &args.verb {
        None => list_skills(context, None).await,
        Some(SkillsCommand::List { agent }) => list_skills(context, agent.as_deref()).await,
        Some(SkillsCommand::Check { path }) => Ok(print_skill_check(context, path.as_deref())?),
    }
}

async fn list_skills(context: &CommandContext, agent: Option<&str>) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let query = agent.map(|agent| format!("?agent={}", encode_segment(agent))).unwrap_or_default();
    let answer: SkillList = client.get_as(&format!("/skills{query}")).await?;
    let row = |skill: &SkillView| {
        let allowed = match skill.rule {
            _ if skill.allowed => "yes",
            SkillEligibility::Denied => "no: listed in skills.deny",
            SkillEligibility::NotListed => "no: not listed in skills.allow",
            SkillEligibility::NoTool => "no: the agent has no tool to read it",
            _ => "no",
        };
        vec![
            cell(&skill.name),
            cell(&skill.place),
            allowed.to_owned(),
            shorten_text(&visible_line(&skill.description)),
        ]
    };
    let rows: Vec<_> = answer.skills.iter().map(row).collect();
    let text = |output: &CliOutput| {
        if rows.is_empty() {
            "No skills found. `polyclaw skills --help` shows where to put them.".to_owned()
        } else {
            output.format_table(&["NAME", "SOURCE", "ALLOWED", "DESCRIPTION"], &rows)
        }
    };
    Ok(context.output.print_value(&answer, text)?)
}

fn shorten_text(text: &str) -> String {
    polyclaw_domain::sanitize::to_single_line(text, 80)
}

fn print_skill_check(context: &CommandContext, path: Option<&Path>) -> Result<(), CommandFailure> {
    let sources = match path {
        Some(path) => vec![source_at(path)?],
        None => all_sources(context)?,
    };
    let found = check_skills(&sources);
    let errors = found.iter().flat_map(|one| &one.findings).filter(|finding| finding.is_error).count();
    let report: Vec<Value> = found.iter().map(as_json).collect();
    let report = json!({ "skills": report });
    if errors > 0 {
        if !context.output.json {
            let _ = context.output.print_line(&as_text(&context.output, &found));
        }
        let what = format!("{errors} error(s) keep skills from being used");
        let mut failure =
            CommandFailure::failed("skills_broken", what).hint("fix what is marked as an error");
        failure.details = Some(Box::new(report));
        return Err(failure);
    }
    let _ = context.output.print_value(&report, |output| as_text(output, &found));
    Ok(())
}

/// Returns the source for a path: a folder with a SKILL.md is one skill; any other folder holds skills.
fn source_at(path: &Path) -> Result<SkillFolder, CommandFailure> {
    let path = path.canonicalize().map_err(|error| {
        CommandFailure::usage(format!("{}: {error}", path.display())).hint("pass an existing folder")
    })?;
    let is_skill = path.join(polyclaw_domain::skill::SKILL_FILE).exists();
    let only = path.file_name().filter(|_| is_skill).map(ToOwned::to_owned);
    let folder = if is_skill { path.parent().unwrap_or(&path).to_owned() } else { path };
    Ok(SkillFolder { place: SkillLocation::Shared, base: folder.clone(), folder, only })
}

/// Returns every folder in which an agent of this home finds skills, nearest first.
fn all_sources(context: &CommandContext) -> Result<Vec<SkillFolder>, CommandFailure> {
    let home = &context.home;
    let (root, config) = (home.workspace_dir(), home.read_unresolved_config()?);
    let source = |place, base: &Path, folder: PathBuf| SkillFolder {
        place,
        base: base.to_owned(),
        folder,
        only: None,
    };
    let agents = FolderHandle::open_below(&root, &root.join("agents"));
    let agents = agents.and_then(|agents| agents.read_entries()).map(|agents| agents.found);
    let folders = agents.into_iter().flatten().map(|entry| root.join("agents").join(entry.name));
    let mut sources: Vec<SkillFolder> =
        folders.map(|folder| source(SkillLocation::Agent, &root, folder.join("skills"))).collect();
    let default = config.agents.default_agent_id();
    let own = config.agents.agent_specs().into_iter().map(|spec| spec.workspace_folder(&root, &default));
    let workspaces: BTreeSet<PathBuf> =
        own.chain([root.clone()]).map(|path| path.components().collect()).collect();
    sources.extend(
        workspaces.iter().map(|folder| source(SkillLocation::Workspace, folder, folder.join("skills"))),
    );
    let shared = [home.skills_dir()].into_iter().chain(config.skills.skill_folders(home.path()));
    sources.extend(shared.map(|folder| {
        // A skill in a workspace can be replaced by its agent.
        let base =
            workspaces.iter().find(|workspace| folder.starts_with(workspace)).unwrap_or(&folder).clone();
        source(SkillLocation::Shared, &base, folder)
    }));
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

fn as_text(output: &CliOutput, found: &[DiscoveredSkill]) -> String {
    if found.is_empty() {
        return "No skills found.".to_owned();
    }
    let mut lines = Vec::new();
    for one in found {
        let verdict = match (&one.skill, one.findings.len()) {
            (None, _) => output.paint(TextTone::Bad, "error"),
            (Some(_), 0) => output.paint(TextTone::Good, "ok"),
            (Some(_), _) => output.paint(TextTone::Warn, "look"),
        };
        lines.push(format!("{verdict:<5} {}", visible_line(&one.folder.display().to_string())));
        for finding in &one.findings {
            let line = finding.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            lines.push(format!("      {}{line} [{}]", visible_line(&finding.message), finding.code));
            lines.push(format!("      {} {}", output.paint(TextTone::Dim, "hint:"), finding.hint));
        }
    }
    lines.join("\n")
}
