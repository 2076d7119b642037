//! Briefings from files. What an agent is told is read again only where something changed: a turn costs a look at
//! a handful of folders, and once a second one at each file.

mod page;
mod stamp;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyclaw_domain::agent::SkillPolicy;
use polyclaw_domain::briefing::{
    self, BOOTSTRAP_FILE, BRIEFING_FILES, BootstrapVersion, Briefing, BriefingPage, BriefingReader,
    BriefingSource, HEARTBEAT_FILE, IDENTITY_FILE,
};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::skill::{self, SKILL_FILE, Skill, SkillListLimits, SkillLocation};

use crate::skill::{Found, Source, discover};
pub use stamp::{Stamp, stamp};

/// A change inside a file, its folder being the same, is seen after this at the latest.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A turn asks for its prompt and for its tools: one look serves both.
const SAME_TURN: Duration = Duration::from_millis(10);
/// Agents, times the workspaces they had. Beyond that all are read again.
const MOST_KNOWN: usize = 2_000;

pub struct FileBriefings {
    /// The workspace of the instance: its root files, and the overlays below `agents`.
    root: PathBuf,
    /// Skills for all agents.
    shared: PathBuf,
    /// What the config says besides.
    settings: Mutex<Shared>,
    known: Mutex<HashMap<Key, Known>>,
}

/// More folders of skills for all agents, and how many of all an agent is told of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    pub folders: Vec<PathBuf>,
    pub told: SkillListLimits,
}

type Key = (AgentId, PathBuf, bool, bool);

struct Known {
    policy: SkillPolicy,
    /// The config's part. One that was made while that changed must not be told on.
    settings: Shared,
    /// Folders whose change says that a file in them came, went or was replaced.
    folders: Vec<(PathBuf, Stamp)>,
    /// Everything the briefing was made of, and what would have been taken had it been there.
    sources: Vec<(PathBuf, Stamp)>,
    /// When the sources were last looked at, and when the folders were.
    looked: Instant,
    glanced: Instant,
    briefing: Briefing,
}

impl FileBriefings {
    pub fn new(root: PathBuf, shared: PathBuf) -> Self {
        Self { root, shared, settings: Mutex::default(), known: Mutex::default() }
    }

    /// Takes effect at the next turn.
    pub fn share(&self, settings: Shared) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        self.known().clear();
    }

    fn settings(&self) -> Shared {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where an agent's files are looked for, nearest first.
    fn folders(&self, reader: &BriefingReader<'_>) -> Vec<PathBuf> {
        let overlay = reader.overlay.then(|| self.root.join("agents").join(reader.agent.as_str()));
        let mut folders: Vec<PathBuf> = overlay.into_iter().collect();
        if reader.workspace != self.root {
            folders.push(reader.workspace.to_owned());
        }
        folders.push(self.root.clone());
        folders
    }

    fn skill_sources(&self, reader: &BriefingReader<'_>, more: &[PathBuf]) -> Vec<Source> {
        let overlay = self.root.join("agents").join(reader.agent.as_str()).join("skills");
        let own = reader.workspace.join("skills");
        let of_agent =
            Source { place: SkillLocation::Agent, base: self.root.clone(), folder: overlay, only: None };
        let near = [
            of_agent,
            Source {
                place: SkillLocation::Workspace,
                base: reader.workspace.to_owned(),
                folder: own,
                only: None,
            },
        ];
        let shared = [&self.shared].into_iter().chain(more);
        let shared = shared.map(|folder| Source {
            place: SkillLocation::Shared,
            base: folder.clone(),
            folder: folder.clone(),
            only: None,
        });
        near.into_iter().skip(usize::from(!reader.overlay)).chain(shared).collect()
    }

    fn make(&self, reader: &BriefingReader<'_>, settings: Shared) -> Known {
        let began = Instant::now();
        let folders = self.folders(reader);
        let sources = self.skill_sources(reader, &settings.folders);
        // Stamps come first: what changes while it is read has another one at the next look.
        let watched = folders.iter().chain(sources.iter().map(|source| &source.folder));
        let watched = watched.map(|path| (path.clone(), stamp(path))).collect();
        let told = || BRIEFING_FILES.into_iter().filter(|file| reader.includes_file(file));
        let files = folders.iter().flat_map(|folder| told().map(|file| folder.join(file)));
        let mut made_of: Vec<(PathBuf, Stamp)> = files.map(with_stamp).collect();
        made_of.extend(sources.iter().map(|source| with_stamp(source.folder.clone())));
        let skills = nearest(discover(&sources), &mut made_of);
        let (pages, bootstrap) = self.pages(&folders, told());
        let briefing = compose(reader, &pages, (bootstrap, skills), settings.told);
        Known {
            policy: reader.skills.clone(),
            settings,
            folders: watched,
            sources: made_of,
            looked: began,
            glanced: began,
            briefing,
        }
    }

    fn pages(
        &self,
        folders: &[PathBuf],
        files: impl Iterator<Item = &'static str>,
    ) -> (Vec<(&'static str, BriefingPage)>, Option<BootstrapVersion>) {
        let mut bootstrap = None;
        let mut pages = Vec::new();
        for file in files {
            let found = folders.iter().find_map(|folder| {
                let path = folder.join(file);
                let seen = stamp(&path);
                let base = if folder.starts_with(&self.root) { &self.root } else { folder };
                page::read(base, folder, file).map(|page| (BootstrapVersion { path, stamp: seen }, page))
            });
            let Some((place, page)) = found else { continue };
            if file == BOOTSTRAP_FILE && matches!(page, BriefingPage::Text(_)) {
                bootstrap = Some(place);
            }
            pages.push((file, page));
        }
        (pages, bootstrap)
    }
}

fn with_stamp(path: PathBuf) -> (PathBuf, Stamp) {
    let seen = stamp(&path);
    (path, seen)
}

/// The usable skills, the nearest of each name, by name.
fn nearest(found: Vec<Found>, made_of: &mut Vec<(PathBuf, Stamp)>) -> Arc<[Skill]> {
    let mut skills: Vec<Skill> = Vec::new();
    for one in found {
        made_of.push((one.folder.join(SKILL_FILE), one.stamp));
        let Some(skill) = one.skill else { continue };
        if !skills.iter().any(|nearer| nearer.name == skill.name) {
            skills.push(skill);
        }
    }
    skills.sort_by(|a, b| a.name.cmp(&b.name));
    skills.into()
}

fn compose(
    reader: &BriefingReader<'_>,
    pages: &[(&'static str, BriefingPage)],
    (bootstrap, skills): (Option<BootstrapVersion>, Arc<[Skill]>),
    told: SkillListLimits,
) -> Briefing {
    let identity = pages.iter().find_map(|page| match page {
        (name, BriefingPage::Text(text)) if *name == IDENTITY_FILE => Some(briefing::read_identity(text)),
        _ => None,
    });
    let has_heartbeat = pages.iter().any(|page| match page {
        (name, BriefingPage::Text(text)) => *name == HEARTBEAT_FILE && briefing::has_heartbeat_tasks(text),
        _ => false,
    });
    let allowed = skills.iter().filter(|skill| reader.skills.allows_skill(&skill.name));
    let listed = skill::render_skill_list(allowed, told);
    Briefing {
        text: briefing::render_pages(pages).into(),
        skill_list: listed.into(),
        bootstrap,
        identity: identity.unwrap_or_default(),
        has_heartbeat,
        skills,
    }
}

impl Known {
    /// The briefing, if nothing it was made of has changed.
    fn still(&mut self, policy: &SkillPolicy, settings: &Shared) -> Option<Briefing> {
        let is_same = self.policy == *policy && self.settings == *settings;
        (is_same && self.is_fresh()).then(|| self.briefing.clone())
    }

    fn is_fresh(&mut self) -> bool {
        if self.glanced.elapsed() < SAME_TURN {
            return true;
        }
        let is_same = |(path, seen): &(PathBuf, Stamp)| stamp(path) == *seen;
        let now = Instant::now();
        if self.looked.elapsed() < LOOK_EVERY && self.folders.iter().all(is_same) {
            self.glanced = now;
            return true;
        }
        // Stamps of folders come first: what comes while files are looked at changes them again.
        let folders = self.folders.iter().map(|(path, _)| with_stamp(path.clone())).collect();
        if !self.sources.iter().all(is_same) {
            return false;
        }
        (self.folders, self.looked, self.glanced) = (folders, now, now);
        true
    }
}

impl BriefingSource for FileBriefings {
    fn load_briefing(&self, reader: &BriefingReader<'_>) -> Briefing {
        let key = (reader.agent.clone(), reader.workspace.to_owned(), reader.overlay, reader.is_sub_agent);
        let settings = self.settings();
        let still = |known: &mut Known| known.still(reader.skills, &settings);
        if let Some(briefing) = self.known().get_mut(&key).and_then(still) {
            return briefing;
        }
        let made = self.make(reader, settings);
        let briefing = made.briefing.clone();
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key, made);
        briefing
    }

    fn complete_bootstrap(&self, bootstrap: &BootstrapVersion) {
        if stamp(&bootstrap.path) != bootstrap.stamp {
            return;
        }
        match std::fs::remove_file(&bootstrap.path) {
            Ok(()) => tracing::info!(file = %shorten(&bootstrap.path), "told once, and removed"),
            Err(error) => {
                tracing::warn!(file = %shorten(&bootstrap.path), %error, "told, but can not be removed: it will be told again");
            }
        }
    }
}

fn shorten(path: &Path) -> String {
    crate::text::name(path.as_os_str())
}
