//! The toolbox: one list of tools. Who sees and may call each is decided in the domain's `policy`.

use std::path::PathBuf;
use std::sync::Arc;

use polyclaw_domain::id::TurnId;
use polyclaw_domain::port::BoxFuture;
use polyclaw_domain::sandbox::{FileResolution, SandboxFacts};
use polyclaw_domain::tool::{ProgressSink, ToolCall, ToolOutcome, ToolScope, ToolSpec, Toolbox};

use crate::arguments::read;
use crate::briefing::FileBriefings;
use crate::error::{Error, Result};
use crate::http_fetch::{Web, is_public};
use crate::sandbox::{self, Sandboxes};
use crate::web_search::{self, Search};
use crate::workspace::Turnstile;
use crate::{
    apply_patch, edit_file, folder, http_fetch, image_view, list_dir, read_file, read_skill, search_files,
    shell, text, write_file, written,
};

#[derive(Clone, Default)]
pub struct Settings {
    /// Lets `http_fetch` reach this machine and private networks.
    pub allow_private: bool,
    /// Where skills are found. Without it there are none.
    pub briefings: Option<Arc<FileBriefings>>,
    /// Who is asked by `web_search`. Without it that tool is not there.
    pub web_search: Option<polyclaw_domain::config::WebSearch>,
    /// How programs are started.
    pub sandbox: sandbox::Settings,
}

/// The tools that come with Polyclaw.
pub struct Builtin {
    tools: Vec<Tool>,
    turnstile: Arc<Turnstile>,
    web: Web,
    briefings: Option<Arc<FileBriefings>>,
    search: Option<Search>,
    allow_private: bool,
    sandboxes: Arc<Sandboxes>,
    /// `shell` where it is confined.
    confined_shell: Arc<ToolSpec>,
}

struct Tool {
    kind: Kind,
    spec: Arc<ToolSpec>,
}

#[derive(Clone, Copy)]
enum Kind {
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

impl Kind {
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

impl Builtin {
    pub fn new(settings: Settings) -> Self {
        let tools = Kind::ALL.map(|kind| Tool { kind, spec: Arc::new(kind.spec()) });
        let rule = if settings.allow_private { |_| true } else { is_public };
        Self {
            tools: tools.into(),
            turnstile: Arc::default(),
            web: Web::new(rule),
            briefings: settings.briefings,
            search: settings.web_search.map(Search::new),
            allow_private: settings.allow_private,
            sandboxes: Arc::new(Sandboxes::new(settings.sandbox)),
            confined_shell: Arc::new(shell::confined_spec()),
        }
    }

    pub fn sandboxes(&self) -> Arc<Sandboxes> {
        Arc::clone(&self.sandboxes)
    }

    pub fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// A tool that could do nothing is not there.
    fn open_to<'a>(&'a self, scope: &'a ToolScope) -> impl Iterator<Item = (Kind, &'a Arc<ToolSpec>)> {
        let has_skills = self.briefings.as_ref().is_some_and(|shelf| read_skill::is_of_use(shelf, scope));
        let listed = self.tools.iter().map(|tool| match tool.kind {
            Kind::Shell if scope.sandbox.is_enabled() => (tool.kind, &self.confined_shell),
            kind => (kind, &tool.spec),
        });
        listed.filter(move |(kind, _)| match kind {
            Kind::ReadSkill => has_skills,
            Kind::WebSearch => self.search.is_some(),
            _ => true,
        })
    }

    /// What held for a call that started no program.
    fn facts(&self, scope: &ToolScope, call: &ToolCall) -> SandboxFacts {
        let kind = self.tools.iter().find(|tool| tool.spec.name == call.name).map(|tool| tool.kind);
        let is_of_files = !matches!(kind, None | Some(Kind::Shell | Kind::HttpFetch));
        let files = is_of_files.then(|| FileResolution { resolved: folder::RESOLVED.to_owned() });
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

    async fn dispatch(
        &self,
        scope: &ToolScope,
        call: &ToolCall,
        progress: ProgressSink<'_>,
    ) -> Result<ToolOutcome> {
        let found = self.open_to(scope).find(|(_, spec)| spec.name == call.name);
        let (kind, _) = found.ok_or_else(|| unknown(call))?;
        let given = &call.arguments;
        match kind {
            Kind::ReadFile => read_file::run(scope, read(given)?).await,
            Kind::WriteFile => write_file::run(scope, read(given)?, &self.turnstile).await,
            Kind::EditFile => edit_file::run(scope, read(given)?, &self.turnstile).await,
            Kind::ApplyPatch => apply_patch::run(scope, read(given)?, &self.turnstile).await,
            Kind::ListDir => list_dir::run(scope, read(given)?).await,
            Kind::SearchFiles => search_files::run(scope, read(given)?).await,
            Kind::ImageView => image_view::run(scope, read(given)?).await,
            Kind::Shell => shell::run(scope, read(given)?, &self.sandboxes, progress).await,
            Kind::HttpFetch => http_fetch::run(&self.web, read(given)?).await,
            Kind::ReadSkill => match &self.briefings {
                Some(shelf) => read_skill::run(shelf, scope, read(given)?).await,
                None => Err(unknown(call)),
            },
            Kind::WebSearch => match &self.search {
                Some(search) => search.run(read(given)?).await,
                None => Err(unknown(call)),
            },
        }
    }
}

fn unknown(call: &ToolCall) -> Error {
    Error::UnknownTool(text::cut(&call.name, 80))
}

impl Toolbox for Builtin {
    fn list_tools(&self, scope: &ToolScope) -> Vec<Arc<ToolSpec>> {
        self.open_to(scope).map(|(_, spec)| Arc::clone(spec)).collect()
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
            let outcome: ToolOutcome = self.dispatch(scope, call, progress).await.unwrap_or_else(|error| {
                let code = error.code();
                tracing::debug!(turn.id = %turn, agent.id = %scope.agent, error.code = code, "tool call refused");
                error.into()
            });
            let facts = outcome.facts.or_else(|| Some(self.facts(scope, call)));
            ToolOutcome { facts, ..outcome }
        })
    }
}
