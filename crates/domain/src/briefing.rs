//! Briefings: the workspace files that are included in an agent's prompt. Files in the root of the workspace apply to
//! all agents; an overlay `agents/<id>/<file>` replaces one for a single agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent::{AgentIdentity, AgentSpec, SkillPolicy};
use crate::id::AgentId;
use crate::sanitize;
use crate::skill::{self, Skill};

/// The files, in prompt order.
pub const BRIEFING_FILES: [&str; 8] = [
    "AGENTS.md",
    "SOUL.md",
    IDENTITY_FILE,
    "USER.md",
    "TOOLS.md",
    "MEMORY.md",
    HEARTBEAT_FILE,
    BOOTSTRAP_FILE,
];
pub const IDENTITY_FILE: &str = "IDENTITY.md";
pub const HEARTBEAT_FILE: &str = "HEARTBEAT.md";
/// Included until one turn that showed it succeeds, then deleted.
pub const BOOTSTRAP_FILE: &str = "BOOTSTRAP.md";
/// Files for sub-agents. A sub-agent works for another agent, so who its owner is and what was discussed is omitted.
const SUBAGENT_FILES: [&str; 2] = ["AGENTS.md", "TOOLS.md"];

/// Maximum characters of one file and of all files together.
pub const MAX_FILE_CHARS: usize = 20_000;
const MAX_BRIEFING_CHARS: usize = 60_000;
const MAX_IDENTITY_CHARS: usize = 64;

/// Returns whether a path names a briefing file or a skill. Only `/` separates, as for the kernel. Paths with a
/// backslash or control character count too: no ordinary file has such a name, and other readers treat a backslash as a
/// separator.
pub fn is_instruction_file(path: &str) -> bool {
    if path.contains(|c: char| c == '\\' || c.is_control()) {
        return true;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut notice = BRIEFING_FILES.iter().chain([&skill::SKILL_FILE]);
    let is_notified = parts.last().is_some_and(|name| notice.any(|file| file.eq_ignore_ascii_case(name)));
    let is_overlay = parts.len() > 1 && parts[0].eq_ignore_ascii_case("agents");
    let is_skill =
        parts.len() > 1 && parts[..parts.len() - 1].iter().any(|part| part.eq_ignore_ascii_case("skills"));
    is_notified || is_overlay || is_skill
}

/// The agent for which a briefing is loaded.
#[derive(Clone, Copy, Debug)]
pub struct BriefingReader<'a> {
    pub agent: &'a AgentId,
    /// The folder of the agent's files.
    pub workspace: &'a Path,
    pub skills: &'a SkillPolicy,
    /// Whether `agents/<id>` below the instance's workspace has priority.
    pub overlay: bool,
    pub is_sub_agent: bool,
}

impl<'a> BriefingReader<'a> {
    pub fn for_agent(spec: &'a AgentSpec, workspace: &'a Path) -> Self {
        let (skills, overlay) = (&spec.policy.skills, spec.workspace.overlay);
        Self { agent: &spec.agent_id, workspace, skills, overlay, is_sub_agent: false }
    }

    pub fn includes_file(&self, file: &str) -> bool {
        !self.is_sub_agent || SUBAGENT_FILES.contains(&file)
    }
}

/// The contents of the briefing files, ready for a system prompt. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Briefing {
    /// The text of the files. Empty if there are none.
    pub text: Arc<str>,
    /// The list of allowed skills. Empty if there are none.
    pub skill_list: Arc<str>,
    /// The `BOOTSTRAP.md` included in this text, to be deleted after a successful turn.
    pub bootstrap: Option<BootstrapVersion>,
    /// The agent's identity according to `IDENTITY.md`.
    pub identity: AgentIdentity,
    /// `HEARTBEAT.md` exists and contains tasks.
    pub has_heartbeat: bool,
    /// Every skill found, only the nearest of each name. The policy decides which of them are listed.
    pub skills: Arc<[Skill]>,
}

impl Briefing {
    /// Returns the full text for an agent with these tools. Skills are listed only if the agent can read them.
    pub fn render_for_tools<'a>(&self, mut tools: impl Iterator<Item = &'a str>) -> String {
        let reads = tools.any(|tool| tool == skill::READ_SKILL_TOOL);
        let parts = [Some(&*self.text), reads.then_some(&*self.skill_list)];
        let parts: Vec<&str> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }

    /// Returns the skills that the policy allows.
    pub fn allowed_skills<'a>(&'a self, policy: &'a SkillPolicy) -> impl Iterator<Item = &'a Skill> {
        self.skills.iter().filter(|skill| policy.allows_skill(&skill.name))
    }
}

/// One version of `BOOTSTRAP.md` as it was shown. A changed file has another stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootstrapVersion {
    pub path: PathBuf,
    pub stamp: u64,
}

/// Loads briefings. Called at the start of every turn, so implementations do not read unchanged files again.
pub trait BriefingSource: Send + Sync {
    fn load_briefing(&self, reader: &BriefingReader<'_>) -> Briefing;

    /// Deletes the bootstrap file after a turn that showed it succeeded.
    fn complete_bootstrap(&self, bootstrap: &BootstrapVersion);
}

/// The text of a file, or the reason why it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BriefingPage {
    Text(String),
    Refused(&'static str),
}

/// Renders the files under one heading, each and all together bounded. Truncation is visible.
pub fn render_pages(pages: &[(&'static str, BriefingPage)]) -> String {
    let mut out = String::new();
    let mut left = MAX_BRIEFING_CHARS;
    for (name, page) in pages {
        let text = match page {
            BriefingPage::Refused(what) => format!("[{name} was not read: it is {what}]"),
            BriefingPage::Text(text) if text.trim().is_empty() => continue,
            BriefingPage::Text(_) if left == 0 => {
                format!("[{name} is omitted: together, the files exceed {MAX_BRIEFING_CHARS} characters]")
            }
            BriefingPage::Text(text) => truncate_page(text.trim_end(), MAX_FILE_CHARS.min(left), &mut left),
        };
        out.push_str(&format!("\n\n## {name}\n{text}"));
    }
    if out.is_empty() { out } else { format!("# Files of your workspace{out}") }
}

fn truncate_page(text: &str, most: usize, left: &mut usize) -> String {
    let Some((at, _)) = text.char_indices().nth(most) else {
        *left -= text.chars().count();
        return text.to_owned();
    };
    *left -= most;
    format!("{}\n[truncated: only the first {most} characters are shown]", &text[..at])
}

/// Parses `- **Name:** Ada` and `Name: Ada` alike.
pub fn read_identity(text: &str) -> AgentIdentity {
    let field = |key: &str| {
        text.lines().find_map(|line| {
            let line = line.trim_start_matches(['-', '*', ' ', '\t']);
            let (name, value) = line.split_once(':')?;
            let is_it = name.trim_matches(['*', '_', ' ']).eq_ignore_ascii_case(key);
            let value = sanitize::to_single_line(
                value.trim_matches(['*', '_', ' ', '\t', '\r', '`']),
                MAX_IDENTITY_CHARS * 4,
            );
            // A placeholder of the template such as "(pick something you like)" does not count.
            (is_it && !value.is_empty() && !value.starts_with(['(', '['])).then_some(value)
        })
    };
    AgentIdentity { name: field("name"), emoji: field("emoji"), avatar: field("avatar") }
}

/// Returns whether a `HEARTBEAT.md` has more than headings, empty checkboxes and comments.
pub fn has_heartbeat_tasks(text: &str) -> bool {
    let mut text = text.to_owned();
    while let Some(start) = text.find("<!--") {
        let end = text[start..].find("-->").map_or(text.len(), |end| start + end + 3);
        text.replace_range(start..end, "");
    }
    let bare = |line: &str| line.trim().trim_start_matches(['-', '*', '+', ' ']).trim().to_owned();
    text.lines().map(bare).any(|line| !line.is_empty() && !line.starts_with('#') && line != "[ ]")
}

/// Returns an agent's display identity, field by field: from its spec, else its file, else its name.
pub fn resolve_identity(spec: &AgentSpec, file: &AgentIdentity) -> AgentIdentity {
    let pick = |own: &Option<String>, file: &Option<String>, most| {
        own.as_ref()
            .or(file.as_ref())
            .map(|text| sanitize::to_single_line(text, most))
            .filter(|text| !text.is_empty())
    };
    let name = pick(&spec.identity.name, &file.name, MAX_IDENTITY_CHARS);
    AgentIdentity {
        name: name.or_else(|| Some(sanitize::to_single_line(&spec.name, MAX_IDENTITY_CHARS))),
        emoji: pick(&spec.identity.emoji, &file.emoji, 8),
        avatar: pick(&spec.identity.avatar, &file.avatar, 2_048),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_file_without_tasks_is_ignored() {
        for empty in ["", "# Heartbeat\n\n- [ ]\n", "<!-- add tasks\nhere -->\n#\n-\n", "<!-- open"] {
            assert!(!has_heartbeat_tasks(empty), "{empty:?}");
        }
        assert!(has_heartbeat_tasks("# Heartbeat\n- [ ] look at the mail\n"));
    }

    fn text(content: &str) -> BriefingPage {
        BriefingPage::Text(content.to_owned())
    }

    #[test]
    fn empty_files_render_no_text() {
        assert_eq!(render_pages(&[]), "");
        assert_eq!(render_pages(&[("SOUL.md", text(" \n"))]), "");
    }

    #[test]
    fn files_render_in_order_with_refusals_shown() {
        let pages =
            [("AGENTS.md", text("Be kind.\n")), ("USER.md", BriefingPage::Refused("a symbolic link"))];
        assert_eq!(
            render_pages(&pages),
            "# Files of your workspace\n\n## AGENTS.md\nBe kind.\n\n## USER.md\n[USER.md was not read: it is a symbolic link]"
        );
    }

    #[test]
    fn briefing_files_are_truncated_individually_and_in_total() {
        let long = |n: usize| text(&"ü".repeat(n));
        let one = render_pages(&[("AGENTS.md", long(20_001))]);
        assert!(
            one.ends_with("[truncated: only the first 20000 characters are shown]"),
            "{}",
            &one[one.len() - 90..]
        );
        assert!(!render_pages(&[("AGENTS.md", long(20_000))]).contains("truncated"));
        let pages = [
            ("AGENTS.md", long(20_000)),
            ("SOUL.md", long(20_000)),
            ("USER.md", long(15_000)),
            ("TOOLS.md", long(10_000)),
            ("MEMORY.md", long(1)),
        ];
        let all = render_pages(&pages);
        assert!(all.contains("only the first 5000 characters"), "what is left for TOOLS.md");
        assert!(all.ends_with("[MEMORY.md is omitted: together, the files exceed 60000 characters]"));
        assert!(all.chars().count() < MAX_BRIEFING_CHARS + 500);
    }

    #[test]
    fn subagent_briefing_includes_only_work_files() {
        let agent = AgentId::main();
        let policy = SkillPolicy::default();
        let reader = |is_sub_agent| BriefingReader {
            agent: &agent,
            workspace: Path::new(""),
            skills: &policy,
            overlay: true,
            is_sub_agent,
        };
        let text_of = |reader: BriefingReader<'_>| {
            BRIEFING_FILES.into_iter().filter(|file| reader.includes_file(file)).count()
        };
        assert_eq!((text_of(reader(false)), text_of(reader(true))), (8, 2));
        assert!(reader(true).includes_file("TOOLS.md") && !reader(true).includes_file(BOOTSTRAP_FILE));
    }

    #[test]
    fn agent_spec_overrides_identity_file() {
        let file = read_identity(
            "# Who am I?\n\n- **Name:** Ada \u{202e}\n- **Emoji:** 🦀\n* Avatar: `a.png`\n- Vibe: calm",
        );
        assert_eq!(
            (file.name.as_deref(), file.emoji.as_deref(), file.avatar.as_deref()),
            (Some("Ada"), Some("🦀"), Some("a.png"))
        );
        let template = read_identity("- **Name:** _(pick something you like)_\n- **Emoji:**\n");
        assert_eq!(template, AgentIdentity::default());
        let mut spec = AgentSpec::with_id(AgentId::main());
        assert_eq!(resolve_identity(&spec, &file).name.as_deref(), Some("Ada"));
        spec.identity.name = Some("x".repeat(10_000));
        let shown = resolve_identity(&spec, &file);
        assert_eq!(shown.name.map(|name| name.chars().count()), Some(65));
        assert_eq!(shown.emoji.as_deref(), Some("🦀"));
        assert_eq!(
            resolve_identity(&AgentSpec::with_id(AgentId::main()), &AgentIdentity::default()).name.as_deref(),
            Some("main")
        );
    }
}
