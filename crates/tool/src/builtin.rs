//! The built-in toolbox: the list of tools and their dispatch. The domain's `policy` decides which agent may see and
//! call which tool.

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::sandbox::{FileResolution, SandboxFacts};
use polyclaw_domain::tool::{ProgressSink, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use crate::arguments::read_arguments;
use crate::briefing::FileBriefings;
use crate::error::{Error, Result};
use crate::http_fetch::{WebClient, is_public};
use crate::sandbox::{self, SandboxLauncher};
use crate::web_search::{self, SearchService};
use crate::workspace::WorkspaceWriteLock;
use crate::{
    apply_patch, edit_file, http_fetch, image_view, list_dir, read_file, read_skill, search_files, shell,
    text, write_file, written,
};

#[derive(Clone, Default)]
pub struct BuiltinSettings {
    /// Whether `http_fetch` may reach this machine and private networks.
    pub allow_private: bool,
    /// Source of skills. Without it there are none.
    pub briefings: Option<Arc<FileBriefings>>,
    /// The search service of `web_search`. Without it the tool is unavailable.
    pub web_search: Option<polyclaw_domain::config::WebSearch>,
    /// How programs are started.
    pub sandbox: sandbox::SandboxLauncherSettings,
}

/// The tools that come with Polyclaw.
pub struct BuiltinToolbox {
    tools: Vec<BuiltinTool>,
    write_lock: Arc<WorkspaceWriteLock>,
    web: WebClient,
    briefings: Option<Arc<FileBriefings>>,
    search: Option<SearchService>,
    allow_private: bool,
    sandboxes: Arc<SandboxLauncher>,
    /// The spec of `shell` in a sandbox.
    confined_shell: Arc<ToolSpec>,
}

struct BuiltinTool {
    kind: BuiltinToolKind,
    spec: Arc<ToolSpec>,
}

#[derive(Clone, Copy)]
enum BuiltinToolKind {
    ReadFile,
    WriteFile,
    EditFile,
    ApplyPatch,
    ListDir,
    SearchFiles,
    ImageView,
    Shell,
    HttpFetch,
    ReadSkill,
    WebSearch,
}

impl BuiltinToolKind {
    const ALL: [Self; 11] = [
        Self::ReadFile,
        Self::WriteFile,
        Self::EditFile,
        Self::ApplyPatch,
        Self::ListDir,
        Self::SearchFiles,
        Self::ImageView,
        Self::Shell,
        Self::HttpFetch,
        Self::ReadSkill,
        Self::WebSearch,
    ];

    fn spec(self) -> ToolSpec {
        match self {
            Self::ReadFile => read_file::spec(),
            Self::WriteFile => write_file::spec(),
            Self::EditFile => edit_file::spec(),
            Self::ApplyPatch => apply_patch::spec(),
            Self::ListDir => list_dir::spec(),
            Self::SearchFiles => search_files::spec(),
            Self::ImageView => image_view::spec(),
            Self::Shell => shell::spec(),
            Self::HttpFetch => http_fetch::spec(),
            Self::ReadSkill => read_skill::spec(),
            Self::WebSearch => web_search::spec(),
        }
    }
}

impl BuiltinToolbox {
    pub fn new(settings: BuiltinSettings) -> Self {
        let tools = BuiltinToolKind::ALL.map(|kind| BuiltinTool { kind, spec: Arc::new(kind.spec()) });
        let rule = if settings.allow_private { |_| true } else { is_public };
        Self {
            tools: tools.into(),
            write_lock: Arc::default(),
            web: WebClient::new(rule),
            briefings: settings.briefings,
            search: settings.web_search.map(SearchService::new),
            allow_private: settings.allow_private,
            sandboxes: Arc::new(SandboxLauncher::new(settings.sandbox)),
            confined_shell: Arc::new(shell::confined_spec()),
        }
    }

    pub fn sandboxes(&self) -> Arc<SandboxLauncher> {
        Arc::clone(&self.sandboxes)
    }

    pub fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Returns the tools of the scope, without those that would have no effect.
    fn available_tools<'a>(
        &'a self,
        scope: &'a ToolScope,
    ) -> impl Iterator<Item = (BuiltinToolKind, &'a Arc<ToolSpec>)> {
        let has_skills =
            self.briefings.as_ref().is_some_and(|briefings| read_skill::has_allowed_skill(briefings, scope));
        let listed = self.tools.iter().map(|tool| match tool.kind {
            BuiltinToolKind::Shell if scope.sandbox.is_enabled() => (tool.kind, &self.confined_shell),
            kind => (kind, &tool.spec),
        });
        listed.filter(move |(kind, _)| match kind {
            BuiltinToolKind::ReadSkill => has_skills,
            BuiltinToolKind::WebSearch => self.search.is_some(),
            _ => true,
        })
    }

    /// Returns the facts of a call that started no program.
    fn default_facts(&self, scope: &ToolScope, call: &ToolCall) -> SandboxFacts {
        let kind = self.tools.iter().find(|tool| tool.spec.name == call.name).map(|tool| tool.kind);
        let is_of_files = !matches!(kind, None | Some(BuiltinToolKind::Shell | BuiltinToolKind::HttpFetch));
        let files =
            is_of_files.then(|| FileResolution { resolved: polyclaw_folder::RESOLUTION_FACT.to_owned() });
        SandboxFacts {
            mode: scope.sandbox.mode,
            isolation: scope.isolation,
            worker: None,
            crashes: 0,
            fault: None,
            files,
            program: None,
        }
    }

    async fn dispatch_call(
        &self,
        scope: &ToolScope,
        call: &ToolCall,
        progress: ProgressSink<'_>,
    ) -> Result<ToolOutcome> {
        let found = self.available_tools(scope).find(|(_, spec)| spec.name == call.name);
        let (kind, _) = found.ok_or_else(|| unknown_tool(call))?;
        let given = &call.arguments;
        match kind {
            BuiltinToolKind::ReadFile => read_file::run(scope, read_arguments(given)?).await,
            BuiltinToolKind::WriteFile => {
                write_file::run(scope, read_arguments(given)?, &self.write_lock).await
            }
            BuiltinToolKind::EditFile => {
                edit_file::run(scope, read_arguments(given)?, &self.write_lock).await
            }
            BuiltinToolKind::ApplyPatch => {
                apply_patch::run(scope, read_arguments(given)?, &self.write_lock).await
            }
            BuiltinToolKind::ListDir => list_dir::run(scope, read_arguments(given)?).await,
            BuiltinToolKind::SearchFiles => search_files::run(scope, read_arguments(given)?).await,
            BuiltinToolKind::ImageView => image_view::run(scope, read_arguments(given)?).await,
            BuiltinToolKind::Shell => {
                shell::run(scope, read_arguments(given)?, &self.sandboxes, progress).await
            }
            BuiltinToolKind::HttpFetch => http_fetch::run(&self.web, read_arguments(given)?).await,
            BuiltinToolKind::ReadSkill => match &self.briefings {
                Some(briefings) => read_skill::run(briefings, scope, read_arguments(given)?).await,
                None => Err(unknown_tool(call)),
            },
            BuiltinToolKind::WebSearch => match &self.search {
                Some(search) => search.run(read_arguments(given)?).await,
                None => Err(unknown_tool(call)),
            },
        }
    }
}

fn unknown_tool(call: &ToolCall) -> Error {
    Error::UnknownTool(text::truncate_text(&call.name, 80))
}

impl Toolbox for BuiltinToolbox {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.available_tools(scope).map(|(_, spec)| Arc::clone(spec)).collect()
    }

    fn written_files<'a>(&'a self, scope: &'a ToolScope, call: &'a ToolCall) -> BoxFuture<'a, Vec<PathBuf>> {
        Box::pin(written::written_files(scope, call))
    }

    fn run<'a>(
        &'a self,
        scope: &'a ToolScope,
        turn: &'a TurnId,
        call: &'a ToolCall,
        progress: ProgressSink<'a>,
    ) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let outcome: ToolOutcome = self.dispatch_call(scope, call, progress).await.unwrap_or_else(|error| {
                let code = error.code();
                tracing::debug!(turn.id = %turn, agent.id = %scope.agent, error.code = code, "tool call refused");
                error.into()
            });
            let facts = outcome.facts.or_else(|| Some(self.default_facts(scope, call)));
            ToolOutcome { facts, ..outcome }
        })
    }
}
