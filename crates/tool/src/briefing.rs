//! Builds briefings from files. They are cached and rebuilt only after a change: a turn checks the stamps of a few
//! folders and, once a second, of each file.

mod page;
mod stamp;

use std::collections::HashMap;
use std::io;
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
use polyclaw_folder::FolderHandle;

use crate::skill::{DiscoveredSkill, SkillFolder, discover_skills};
pub use stamp::{PathStamp, path_stamp};

/// Maximum delay until a change inside a file is seen if its folder is unchanged.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A turn loads its briefing twice, for prompt and tools. One check serves both.
const SAME_TURN_WINDOW: Duration = Duration::from_millis(10);
/// Maximum cached briefings. Beyond that the cache is cleared.
const MAX_CACHED_BRIEFINGS: usize = 2_000;

pub struct FileBriefings {
    /// The workspace of the instance: its root files, and the overlays below `agents`.
    root: PathBuf,
    /// Skills for all agents.
    shared: PathBuf,
    /// Settings from the config.
    settings: Mutex<SharedSkills>,
    known: Mutex<HashMap<BriefingKey, CachedBriefing>>,
}

/// More skill folders for all agents, and the limits of the skill list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedSkills {
    pub folders: Vec<PathBuf>,
    /// Where agents write, for folders that lie there.
    pub workspaces: Vec<PathBuf>,
    pub list_limits: SkillListLimits,
}

type BriefingKey = (AgentId, PathBuf, bool, bool);

struct CachedBriefing {
    policy: SkillPolicy,
    /// The settings it was built with. A briefing built during a change of settings must not be reused.
    settings: SharedSkills,
    /// Folders whose stamp changes when a file in them is added, removed or replaced.
    folders: Vec<(PathBuf, PathStamp)>,
    /// All files that were used, and those that would have been used if they existed.
    sources: Vec<(PathBuf, PathStamp)>,
    /// Time of the last check of the sources, and of the folders.
    looked: Instant,
    glanced: Instant,
    briefing: Briefing,
}

impl FileBriefings {
    pub fn new(root: PathBuf, shared: PathBuf) -> Self {
        Self { root, shared, settings: Mutex::default(), known: Mutex::default() }
    }

    /// Sets the shared skills from the next turn on.
    pub fn set_shared_skills(&self, settings: SharedSkills) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
        self.lock_cache().clear();
    }

    fn shared_skills(&self) -> SharedSkills {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock_cache(&self) -> MutexGuard<'_, HashMap<BriefingKey, CachedBriefing>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folders searched for an agent's files, nearest first.
    fn briefing_folders(&self, reader: &BriefingReader<'_>) -> Vec<PathBuf> {
        let overlay = reader.overlay.then(|| self.root.join("agents").join(reader.agent.as_str()));
        let mut folders: Vec<PathBuf> = overlay.into_iter().collect();
        if reader.workspace != self.root {
            folders.push(reader.workspace.to_owned());
        }
        folders.push(self.root.clone());
        folders
    }

    fn skill_sources(&self, reader: &BriefingReader<'_>, settings: &SharedSkills) -> Vec<SkillFolder> {
        let overlay = self.root.join("agents").join(reader.agent.as_str()).join("skills");
        let own = reader.workspace.join("skills");
        let of_agent =
            SkillFolder { place: SkillLocation::Agent, base: self.root.clone(), folder: overlay, only: None };
        let near = [
            of_agent,
            SkillFolder {
                place: SkillLocation::Workspace,
                base: reader.workspace.to_owned(),
                folder: own,
                only: None,
            },
        ];
        let shared = [&self.shared].into_iter().chain(&settings.folders);
        let shared = shared.map(|folder| SkillFolder {
            place: SkillLocation::Shared,
            base: self.base_of_skills(folder, reader, settings).to_owned(),
            folder: folder.clone(),
            only: None,
        });
        near.into_iter().skip(usize::from(!reader.overlay)).chain(shared).collect()
    }

    fn build_briefing(&self, reader: &BriefingReader<'_>, settings: SharedSkills) -> CachedBriefing {
        let began = Instant::now();
        let folders = self.briefing_folders(reader);
        let sources = self.skill_sources(reader, &settings);
        // Stamps come first: what changes while it is read has another one at the next look.
        let watched = folders.iter().chain(sources.iter().map(|source| &source.folder));
        let watched = watched.map(|path| (path.clone(), path_stamp(path))).collect();
        let text_of = || BRIEFING_FILES.into_iter().filter(|file| reader.includes_file(file));
        let files = folders.iter().flat_map(|folder| text_of().map(|file| folder.join(file)));
        let mut made_of: Vec<(PathBuf, PathStamp)> = files.map(with_stamp).collect();
        made_of.extend(sources.iter().map(|source| with_stamp(source.folder.clone())));
        let skills = nearest_skills(discover_skills(&sources), &mut made_of);
        let (pages, bootstrap) = self.read_pages(&folders, text_of());
        let briefing = compose_briefing(reader, &pages, (bootstrap, skills), settings.list_limits);
        CachedBriefing {
            policy: reader.skills.clone(),
            settings,
            folders: watched,
            sources: made_of,
            looked: began,
            glanced: began,
            briefing,
        }
    }

    /// A folder of skills that the config names may lie in a workspace, where agents can replace it.
    fn base_of_skills<'a>(
        &'a self,
        folder: &'a Path,
        reader: &BriefingReader<'a>,
        settings: &'a SharedSkills,
    ) -> &'a Path {
        let written = settings.workspaces.iter().map(PathBuf::as_path);
        let mut written = [self.root.as_path(), reader.workspace].into_iter().chain(written);
        written.find(|workspace| folder.starts_with(workspace)).unwrap_or(folder)
    }

    /// The folder from which one of an agent's files is reached without following a link.
    fn base_of<'a>(&'a self, folder: &'a Path) -> &'a Path {
        if folder.starts_with(&self.root) { &self.root } else { folder }
    }

    /// Removes the bootstrap file if it is unchanged. Returns whether it was removed.
    fn remove_bootstrap(&self, bootstrap: &BootstrapVersion) -> io::Result<bool> {
        let (Some(folder), Some(name)) = (bootstrap.path.parent(), bootstrap.path.file_name()) else {
            return Ok(false);
        };
        let folder = FolderHandle::open_below(self.base_of(folder), folder)?;
        if stamp::entry_stamp(&folder, name) != bootstrap.stamp {
            return Ok(false);
        }
        folder.remove_file(name).map(|()| true)
    }

    fn read_pages(
        &self,
        folders: &[PathBuf],
        files: impl Iterator<Item = &'static str>,
    ) -> (Vec<(&'static str, BriefingPage)>, Option<BootstrapVersion>) {
        let mut bootstrap = None;
        let mut pages = Vec::new();
        for file in files {
            let found = folders.iter().find_map(|folder| {
                let path = folder.join(file);
                let seen = path_stamp(&path);
                page::read_page(self.base_of(folder), folder, file)
                    .map(|page| (BootstrapVersion { path, stamp: seen }, page))
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

fn with_stamp(path: PathBuf) -> (PathBuf, PathStamp) {
    let seen = path_stamp(&path);
    (path, seen)
}

/// Returns the usable skills sorted by name, with the nearest one of each name.
fn nearest_skills(found: Vec<DiscoveredSkill>, made_of: &mut Vec<(PathBuf, PathStamp)>) -> Arc<[Skill]> {
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

fn compose_briefing(
    reader: &BriefingReader<'_>,
    pages: &[(&'static str, BriefingPage)],
    (bootstrap, skills): (Option<BootstrapVersion>, Arc<[Skill]>),
    notice: SkillListLimits,
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
    let listed = skill::render_skill_list(allowed, notice);
    Briefing {
        text: briefing::render_pages(pages).into(),
        skill_list: listed.into(),
        bootstrap,
        identity: identity.unwrap_or_default(),
        has_heartbeat,
        skills,
    }
}

impl CachedBriefing {
    /// Returns the briefing if none of its sources changed.
    fn reuse_if_unchanged(&mut self, policy: &SkillPolicy, settings: &SharedSkills) -> Option<Briefing> {
        let is_same = self.policy == *policy && self.settings == *settings;
        (is_same && self.is_fresh()).then(|| self.briefing.clone())
    }

    fn is_fresh(&mut self) -> bool {
        if self.glanced.elapsed() < SAME_TURN_WINDOW {
            return true;
        }
        let is_same = |(path, seen): &(PathBuf, PathStamp)| path_stamp(path) == *seen;
        let now = Instant::now();
        if self.looked.elapsed() < FILE_CHECK_INTERVAL && self.folders.iter().all(is_same) {
            self.glanced = now;
            return true;
        }
        // Folder stamps are taken first, so that a change during the check of files alters them again.
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
        let settings = self.shared_skills();
        let still = |known: &mut CachedBriefing| known.reuse_if_unchanged(reader.skills, &settings);
        if let Some(briefing) = self.lock_cache().get_mut(&key).and_then(still) {
            return briefing;
        }
        let made = self.build_briefing(reader, settings);
        let briefing = made.briefing.clone();
        let mut known = self.lock_cache();
        if known.len() >= MAX_CACHED_BRIEFINGS {
            known.clear();
        }
        known.insert(key, made);
        briefing
    }

    fn complete_bootstrap(&self, bootstrap: &BootstrapVersion) {
        match self.remove_bootstrap(bootstrap) {
            Ok(true) => {
                tracing::info!(file = %one_line_path(&bootstrap.path), "applied and deleted bootstrap file");
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(file = %one_line_path(&bootstrap.path), %error, "bootstrap file was applied but \
                                                                                could not be deleted; it will be \
                                                                                applied again");
            }
        }
    }
}

fn one_line_path(path: &Path) -> String {
    crate::text::name(path.as_os_str())
}
