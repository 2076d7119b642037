//! Files for people: the list of teams, each team's config, and a copy of every mailbox. The rows are the truth; a file is
//! written whole and put in place, so nobody ever reads half of one.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use polyclaw_domain::mail::Letter;
use polyclaw_domain::team::{Member, Team};
use polyclaw_store::{Tx, teams};
use serde_json::{Value, json};

use crate::core::Engine;
use crate::error::{Error, Result};

const TRASH: &str = ".trash";

impl Engine {
    /// Writes a team's config and the list of teams.
    pub(super) async fn write_team(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        let _alone = self.team_files.lock().await;
        let id = team.id.clone();
        let read = move |tx: &mut Tx<'_>| {
            let open = teams::open(tx)?;
            let own = teams::get(tx, &id)?;
            let members = teams::members(tx, &id)?;
            Ok((open, own, members, teams::at_work(tx, &id)?))
        };
        let (open, own, members, at_work) = self.db().read(read).await?;
        let registry = json!({ "teams": open.iter().map(|team| json!({ "id": team.id, "name": team.name,
            "status": team.status, "leadSessionKey": team.lead })).collect::<Vec<_>>() });
        let config = own
            .filter(|team| open.iter().any(|one| one.id == team.id))
            .map(|team| (folder.join(&team.name).join("config.json"), config(&team, &members, &at_work)));
        let tag = self.next_id();
        blocking(move || {
            write(&folder.join("teams.json"), &registry, &tag)?;
            config.map_or(Ok(()), |(path, value)| write(&path, &value, &tag))
        })
        .await
    }

    /// Copies letters to where people can read them. A copy that fails loses nothing.
    pub(super) async fn copy_letters(&self, team: &Team, letters: Vec<Letter>) {
        let Some(folder) = self.settings().teams_folder.clone().filter(|_| !letters.is_empty()) else {
            return;
        };
        let folder = folder.join(&team.name).join("inbox");
        let copied = blocking(move || letters.iter().try_for_each(|letter| append(&folder, letter))).await;
        if let Err(error) = copied {
            tracing::warn!(%error, team = %team.name, "letters could not be copied to their files");
        }
    }

    /// Moves what was the team's out of the way of the next of its name.
    pub(super) async fn set_aside(&self, team: &Team) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        // Whoever writes the team's config meanwhile would make its folder anew, or find it gone in mid-write.
        let alone = self.team_files.lock().await;
        let (from, now) = (folder.join(&team.name), self.now());
        let mut ended = team.clone();
        ended.status = polyclaw_domain::team::TeamStatus::Shutdown;
        ended.updated_at = now;
        let id = team.id.clone();
        let members = self.db().read(move |tx| teams::members(tx, &id)).await?;
        let config = config(&ended, &members, &[]);
        let tag = self.next_id();
        let to = folder.join(TRASH).join(format!("{}-{}", team.name, now.0));
        blocking(move || {
            write(&from.join("config.json"), &config, &tag)?;
            fs::create_dir_all(folder.join(TRASH))?;
            fs::rename(&from, &to)
        })
        .await?;
        drop(alone);
        self.write_team(team).await
    }
}

impl Engine {
    /// Moves away what is left of teams that ended while nobody could: the next of a name begins anew.
    pub(super) async fn clear_folders(&self) -> Result<()> {
        let Some(folder) = self.settings().teams_folder.clone() else { return Ok(()) };
        let ended = self.db().read(|tx| teams::ended(tx, LOOKED_AT)).await?;
        for team in ended {
            let path = folder.join(&team.name).join("config.json");
            let id = team.id.clone();
            let is_left =
                tokio::task::spawn_blocking(move || is_of(&path, id.as_str())).await.unwrap_or(false);
            if is_left {
                self.set_aside(&team).await?;
            }
        }
        Ok(())
    }
}

/// Teams that ended last, whose folders are looked for at a start.
const LOOKED_AT: usize = 100;

/// Whether a config is of this team, and not of the next of its name.
fn is_of(config: &Path, id: &str) -> bool {
    let config = fs::read_to_string(config).ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
    config.is_some_and(|config| config["id"] == id)
}

async fn blocking(work: impl FnOnce() -> io::Result<()> + Send + 'static) -> Result<()> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.unwrap_or_else(|error| Err(io::Error::other(error)));
    done.map_err(|error| Error::TeamFiles(error.to_string()))
}

fn config(team: &Team, members: &[Member], at_work: &[String]) -> Value {
    let member = |member: &Member| {
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
fn write(path: &Path, value: &Value, tag: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = path.with_extension(format!("{tag}.tmp"));
    let mut file = private(&beside, fs::OpenOptions::new().write(true).create(true).truncate(true))?;
    file.write_all(format!("{value:#}\n").as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn append(folder: &Path, letter: &Letter) -> io::Result<()> {
    let folder: PathBuf = folder.join(&letter.to);
    fs::create_dir_all(&folder)?;
    let line = json!({
        "id": letter.id, "from": letter.from, "to": letter.to, "type": letter.kind, "content": letter.content,
        "summary": letter.summary, "request_id": letter.request_id, "approve": letter.approve,
        "reason": letter.reason, "timestamp": letter.created_at.to_string(),
    });
    let mut file = private(&folder.join("messages.jsonl"), fs::OpenOptions::new().append(true).create(true))?;
    file.write_all(format!("{line}\n").as_bytes())
}

/// Only its owner reads it.
fn private(path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}
