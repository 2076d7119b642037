//! Files for people: the list of teams, each team's config, and a copy of every mailbox. The rows are the truth; a file is
//! written whole and put in place, so nobody ever reads half of one. Where several nodes share a database, the one that
//! hosts a team's lead writes them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use polyclaw_domain::id::{TeamId, TeamMessageId};
use polyclaw_domain::team::{Team, TeamMember};
use polyclaw_domain::team_message::TeamMessage;
use polyclaw_domain::time::Millis;
use polyclaw_store::{Tx, jobs, team_messages, teams};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Error, Result};
use crate::worker::shared_node_name;

const TRASH_FOLDER: &str = ".trash";
/// Letters copied at once.
const COPY_BATCH_SIZE: usize = 200;

/// What this life of the engine knows of the files. Whoever writes them holds it.
#[derive(Default)]
pub(crate) struct TeamFileCache {
    /// What it wrote last: the same need not be written again.
    written: HashMap<PathBuf, String>,
    /// Teams whose mailboxes hold nothing but what is noted: an earlier life, or a copy that failed, may have left more.
    known: HashSet<TeamId>,
}

impl Engine {
    /// Writes a team's config and the list of teams, where anything has changed about them.
    pub(super) async fn write_team_files(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        let mut files = self.team_files.lock().await;
        let hosts = self.is_host_of_team(team).await?;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let open = teams::list_open(tx)?;
            let own = teams::get(tx, &id)?;
            let members = teams::list_members(tx, &id)?;
            Ok((open, own, members, teams::list_members_at_work(tx, &id)?))
        };
        let (open, own, members, at_work) = self.db().read(read).await?;
        let registry = json!({ "teams": open.iter().map(|team| json!({ "id": team.id, "name": team.name,
            "path": folder.join(&team.name), "status": team.status, "leadSessionKey": team.lead })).collect::<Vec<_>>() });
        // A node that hosts its lead no more has a list all the same, which is not to say of a team what was once so.
        if !hosts && !folder.join("teams.json").exists() {
            return Ok(());
        }
        let config = own.filter(|team| hosts && open.iter().any(|one| one.id == team.id)).map(|team| {
            (folder.join(&team.name).join("config.json"), team_config_json(&team, &members, &at_work))
        });
        let wanted = std::iter::once((folder.join("teams.json"), registry)).chain(config);
        for (path, value) in wanted {
            let text = format!("{value:#}\n");
            if files.written.get(&path) == Some(&text) {
                continue;
            }
            let (to, whole, tag) = (path.clone(), text.clone(), self.next_id());
            run_blocking_io(move || write_atomically(&to, &whole, &tag)).await?;
            files.written.insert(path, text);
        }
        Ok(())
    }

    /// Whether this node writes a team's files.
    async fn is_host_of_team(&self, team: &Team) -> Result<bool> {
        let (lead, node, node_name) = (team.lead.clone(), self.node.clone(), shared_node_name(self));
        Ok(self.db().read(move |tx| jobs::is_session_host(tx, &lead, &node, node_name.as_deref())).await?)
    }

    /// Copies what is in no file yet to where people can read it, each letter once. A copy that fails loses nothing.
    pub(super) async fn copy_messages_to_inbox(&self, team: &Team) {
        if let Err(error) = self.try_copy_messages(team).await {
            tracing::warn!(%error, team = %team.name, "letters could not be copied to their files");
        }
    }

    async fn try_copy_messages(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        let mut files = self.team_files.lock().await;
        if !self.is_host_of_team(team).await? {
            return Ok(());
        }
        loop {
            let id = team.id.clone();
            let due =
                self.db().read(move |tx| team_messages::list_uncopied(tx, &id, COPY_BATCH_SIZE)).await?;
            if due.is_empty() {
                return Ok(());
            }
            let ids: Vec<TeamMessageId> = due.iter().map(|message| message.id.clone()).collect();
            // Until all of it is copied and noted, part of it may be in its file unnoted: then it is looked into again.
            let (folder, is_known) = (folder.join(&team.name).join("inbox"), files.known.remove(&team.id));
            run_blocking_io(move || append_messages(&folder, due, is_known)).await?;
            self.write_with_retry(move |tx| ids.iter().try_for_each(|id| team_messages::mark_copied(tx, id)))
                .await?;
            files.known.insert(team.id.clone());
        }
    }

    /// Moves what was the team's out of the way of the next of its name.
    pub(super) async fn move_to_trash(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        // Whoever writes the team's config meanwhile would make its folder anew, or find it gone in mid-write.
        let mut alone = self.team_files.lock().await;
        let (from, now) = (folder.join(&team.name), self.now());
        let mut ended = team.clone();
        ended.status = polyclaw_domain::team::TeamStatus::Shutdown;
        ended.updated_at = now;
        let id = team.id.clone();
        let members = self.db().read(move |tx| teams::list_members(tx, &id)).await?;
        let config = team_config_json(&ended, &members, &[]);
        let tag = self.next_id();
        let to = folder.join(TRASH_FOLDER).join(format!("{}-{}", team.name, now.0));
        let id = team.id.to_string();
        run_blocking_io(move || {
            let file = from.join("config.json");
            // Whoever else saw that it has ended was faster, or the next of its name is there already: it may have no config yet.
            if !is_config_of(&file, &id) {
                return Ok(());
            }
            write_atomically(&file, &format!("{config:#}\n"), &tag)?;
            create_private_folder(&folder.join(TRASH_FOLDER))?;
            fs::rename(&from, &to)?;
            remove_empty_log(&to)
        })
        .await?;
        // The next of its name begins anew.
        alone.written.clear();
        drop(alone);
        self.write_team_files(team).await
    }
}

impl Engine {
    /// Moves away what is left of teams that ended while nobody could: the next of a name begins anew.
    pub(super) async fn clear_leftover_folders(&self) {
        let ended = self.db().read(|tx| teams::list_ended(tx, MAX_SCANNED_ENDED_TEAMS)).await.unwrap_or_else(|error| {
            tracing::error!(%error, "teams that have ended could not be looked for, trying again when one ends");
            Vec::new()
        });
        for team in ended {
            // A folder that can not be moved keeps no team from being looked after.
            if let Err(error) = self.clear_folder(&team).await {
                tracing::error!(%error, team = %team.name, "the folder of a team that has ended could not be moved");
            }
        }
    }

    /// Removes folders of teams that ended long ago.
    pub(super) async fn clear_trash(&self) {
        let Some(folder) = self.settings().teams_folder.clone() else { return };
        let days = i64::from(self.settings().teams.keep_ended_days);
        if days == 0 {
            return;
        }
        let before = self.now().minus(days * 24 * 3_600_000);
        let removed = run_blocking_io(move || remove_before(&folder.join(TRASH_FOLDER), before)).await;
        if let Err(error) = removed {
            tracing::error!(%error, "folders of teams that ended long ago could not be removed");
        }
    }

    /// Where the files of a team are that has ended.
    pub(super) async fn ended_team_folder(&self, team: &Team) -> Option<PathBuf> {
        let trash = self.settings().teams_folder.clone()?.join(TRASH_FOLDER);
        let (prefix, id) = (format!("{}-", team.name), team.id.clone());
        let find = move || {
            let folders = fs::read_dir(trash).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
            let mut named = folders.filter(|path| {
                path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&prefix))
            });
            named.find(|path| is_config_of(&path.join("config.json"), id.as_str()))
        };
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    /// Says whether there was one.
    pub(super) async fn clear_folder(&self, team: &Team) -> Result<bool> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(false) };
        let (path, id) = (folder.join(&team.name).join("config.json"), team.id.clone());
        let is_left =
            tokio::task::spawn_blocking(move || is_config_of(&path, id.as_str())).await.unwrap_or(false);
        if is_left {
            self.copy_messages_to_inbox(team).await;
            self.move_to_trash(team).await?;
        }
        Ok(is_left)
    }

    /// Moves away what is left of the last team of this name, before the next opens what it finds there. Says whether there
    /// was something.
    pub(super) async fn free_team_name_folder(&self, name: &str, next: Option<&TeamId>) -> Result<bool> {
        let ended = self.db().read(|tx| teams::list_ended(tx, MAX_SCANNED_ENDED_TEAMS)).await?;
        let mut is_moved = false;
        for past in ended.iter().filter(|past| past.name == name && Some(&past.id) != next) {
            self.ports.ledgers.close_for_good(&past.id);
            is_moved |= self.clear_folder(past).await?;
        }
        Ok(is_moved)
    }
}

/// Teams that ended last, whose folders are looked for at a start.
const MAX_SCANNED_ENDED_TEAMS: usize = 100;

/// Whether a config is of this team, and not of the next of its name.
fn is_config_of(config: &Path, id: &str) -> bool {
    let config = fs::read_to_string(config).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    config.is_some_and(|config| config["id"] == id)
}

async fn run_blocking_io(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<()> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| Error::TeamFiles(error.to_string()))
}

fn team_config_json(team: &Team, members: &[TeamMember], at_work: &[String]) -> Value {
    let member = |member: &TeamMember| {
        let status = match member.state {
            polyclaw_domain::team::MemberState::Active if at_work.contains(&member.name) => "working",
            polyclaw_domain::team::MemberState::Active => "idle",
            state => state.as_str(),
        };
        json!({
            "sessionKey": member.session, "agentId": member.agent, "name": member.name, "role": member.role,
            "color": member.color, "status": status, "joinedAt": member.joined_at.to_string(),
            "lastActiveAt": member.last_active_at.to_string(),
        })
    };
    json!({
        "id": team.id, "name": team.name, "description": team.description, "agentType": team.agent_type,
        "status": team.status, "leadSessionKey": team.lead, "createdAt": team.created_at.to_string(),
        "updatedAt": team.updated_at.to_string(), "members": members.iter().map(member).collect::<Vec<_>>(),
    })
}

/// Beside it, to the disk, then over it.
fn write_atomically(path: &Path, text: &str, tag: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_private_folder(folder)?;
    let sibling = path.with_extension(format!("{tag}.tmp"));
    let mut file = open_private(&sibling, fs::OpenOptions::new().write(true).create(true).truncate(true))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&sibling, path)
}

fn append_messages(folder: &Path, messages: Vec<TeamMessage>, is_known: bool) -> io::Result<()> {
    let is_new = |message: &TeamMessage| {
        let quoted = json!(message.id).to_string();
        let file = fs::read_to_string(folder.join(&message.to).join("messages.jsonl"));
        !file.is_ok_and(|text| text.lines().any(|line| line.contains(&quoted) && is_line_of(line, message)))
    };
    messages
        .iter()
        .filter(|message| is_known || is_new(message))
        .try_for_each(|message| append_message(folder, message))
}

fn is_line_of(line: &str, message: &TeamMessage) -> bool {
    serde_json::from_str::<Value>(line).is_ok_and(|line| line["id"] == json!(message.id))
}

fn append_message(folder: &Path, message: &TeamMessage) -> io::Result<()> {
    let folder: PathBuf = folder.join(&message.to);
    create_private_folder(&folder)?;
    let line = json!({
        "id": message.id, "from": message.from, "to": message.to, "type": message.kind, "content": message.content,
        "summary": message.summary, "request_id": message.request_id, "approve": message.approve,
        "reason": message.reason, "timestamp": message.created_at.to_string(),
    });
    let path = folder.join("messages.jsonl");
    let mut file = open_private(&path, fs::OpenOptions::new().append(true).create(true).read(true))?;
    // A line that a full disk cut off takes no other with it.
    let begins = if ends_mid_line(&mut file)? { "\n" } else { "" };
    file.write_all(format!("{begins}{line}\n").as_bytes())
}

fn ends_mid_line(file: &mut fs::File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(io::SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

/// Only its owner looks into it.
fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// What was set aside before a moment. Its name says when that was.
fn remove_before(trash: &Path, before: Millis) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(trash) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ended = name.rsplit_once('-').and_then(|(_, at)| at.parse().ok()).map(Millis);
        if ended.is_some_and(|ended| ended < before) {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// The log of a ledger that was closed is in its database.
fn remove_empty_log(folder: &Path) -> io::Result<()> {
    let log = folder.join("ledger.db-wal");
    if fs::metadata(&log).is_ok_and(|file| file.len() == 0) {
        fs::remove_file(&log)?;
        let _ = fs::remove_file(folder.join("ledger.db-shm"));
    }
    Ok(())
}

/// Only its owner reads it.
fn open_private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
