//! Files for people: the list of teams, each team's config, and a copy of every mailbox. The database rows are
//! authoritative. Files are replaced atomically, so nobody reads a partial one. If several nodes share a database, the
//! node that hosts a team's lead writes its files.

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
/// Maximum number of messages copied in one batch.
const COPY_BATCH_SIZE: usize = 200;

/// What this process knows about the files. Writers hold its lock.
#[derive(Default)]
pub(crate) struct TeamFileCache {
    /// Last written contents; an unchanged file is not written again.
    written: HashMap<PathBuf, String>,
    /// Teams whose mailbox files have only messages marked as copied. An earlier process or a failed copy may have left
    /// others.
    known: HashSet<TeamId>,
}

impl Engine {
    /// Writes a team's config and the list of teams if they changed.
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
        // A node that no longer hosts the lead keeps an existing list up to date, so that it does not show an old
        // state.
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

    /// Copies messages that are not in a file yet, each once. After a failure they are copied again later.
    pub(super) async fn copy_messages_to_inbox(&self, team: &Team) {
        if let Err(error) = self.try_copy_messages(team).await {
            tracing::warn!(%error, team = %team.name, "cannot copy team messages to files; retrying later");
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
            // Until all messages are copied and marked, some may be in the file unmarked: the next copy then checks the
            // file.
            let (folder, is_known) = (folder.join(&team.name).join("inbox"), files.known.remove(&team.id));
            run_blocking_io(move || append_messages(&folder, due, is_known)).await?;
            self.write_with_retry(move |tx| ids.iter().try_for_each(|id| team_messages::mark_copied(tx, id)))
                .await?;
            files.known.insert(team.id.clone());
        }
    }

    /// Moves an ended team's folder to the trash, so that the name can be used again.
    pub(super) async fn move_to_trash(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        // A concurrent write of the team's config would recreate the folder, or fail when it disappears.
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
            // Another task has moved it already, or the next team of this name exists, possibly without a config yet.
            if !is_config_of(&file, &id) {
                return Ok(());
            }
            write_atomically(&file, &format!("{config:#}\n"), &tag)?;
            create_private_folder(&folder.join(TRASH_FOLDER))?;
            fs::rename(&from, &to)?;
            remove_empty_log(&to)
        })
        .await?;
        // The next team of this name starts without known files.
        alone.written.clear();
        drop(alone);
        self.write_team_files(team).await
    }
}

impl Engine {
    /// Moves away the folders of teams that ended while their folder could not be moved.
    pub(super) async fn clear_leftover_folders(&self) {
        let ended = self.db().read(|tx| teams::list_ended(tx, MAX_SCANNED_ENDED_TEAMS)).await.unwrap_or_else(
            |error| {
                tracing::error!(%error, "cannot list ended teams; retrying when a team ends");
                Vec::new()
            },
        );
        for team in ended {
            // A folder that cannot be moved must not stop the reconciler.
            if let Err(error) = self.clear_folder(&team).await {
                tracing::error!(%error, team = %team.name, "cannot move folder of ended team; retrying later");
            }
        }
    }

    /// Deletes folders of teams that ended longer ago than the retention period.
    pub(super) async fn clear_trash(&self) {
        let Some(folder) = self.settings().teams_folder.clone() else { return };
        let days = i64::from(self.settings().teams.keep_ended_days);
        if days == 0 {
            return;
        }
        let before = self.now().minus(days * 24 * 3_600_000);
        let removed = run_blocking_io(move || remove_before(&folder.join(TRASH_FOLDER), before)).await;
        if let Err(error) = removed {
            tracing::error!(%error, "cannot delete folders of ended teams; retrying in a day");
        }
    }

    /// Finds the folder of an ended team in the trash.
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

    /// Moves an ended team's folder away if it still exists; returns whether it did.
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

    /// Moves away what previous teams of this name left, before the next one opens the folder. Returns whether there
    /// was anything.
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

/// How many of the most recently ended teams are checked for leftover folders.
const MAX_SCANNED_ENDED_TEAMS: usize = 100;

/// Whether a config belongs to this team and not to the next one of its name.
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

/// Writes a temporary file next to `path`, syncs it to disk, then renames it over `path`.
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
    // Start a new line if a full disk cut off the last one.
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

/// Creates a folder that only its owner can access.
fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)?;
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Deletes folders whose name ends with a time before `before`.
fn remove_before(trash: &Path, before: Millis) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(trash) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let ended = name.rsplit_once('-').and_then(|(_, at)| at.parse().ok()).map(Millis);
        if ended.is_some_and(|ended| ended < before) {
            polyclaw_tree::remove_tree(&path)?;
        }
    }
    Ok(())
}

/// Removes an empty WAL. The contents of a closed ledger are in its database.
fn remove_empty_log(folder: &Path) -> io::Result<()> {
    let log = folder.join("ledger.db-wal");
    if fs::metadata(&log).is_ok_and(|file| file.len() == 0) {
        fs::remove_file(&log)?;
        let _ = fs::remove_file(folder.join("ledger.db-shm"));
    }
    Ok(())
}

/// Opens a file that only its owner can read.
fn open_private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
