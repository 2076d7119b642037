//! Archive, unarchive, delete: what is deleted was archived before.

use std::fs;
use std::time::Duration;

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::instance::{InstanceStatus, RestartPolicy};
use polyclaw_store::registry::{self, InstanceRecord};

use crate::access::Caller;
use crate::audit;
use crate::config::{edit, put};
use crate::control::{Control, to_its_end};
use crate::create::refuse;
use crate::error::{Error, Result};
use crate::file;
use crate::lock::Held;
use crate::place::HOME;
use crate::view::{Change, Live, View};

/// How a folder is called whose row is about to go.
pub(crate) const ASIDE: &str = ".removed-";

impl Control {
    /// Stops it first, under the same lock.
    pub async fn archive(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        to_its_end(async move { control.put_away(&by, &word, patience).await }).await
    }

    async fn put_away(&self, by: &Caller, word: &str, patience: Duration) -> Result<View> {
        let one = self.active(word).await?;
        let _held = self.hold_even_if_gone(&one).await?;
        let one = self.active(one.id.as_str()).await?;
        let live = Live::of(&one, &self.place(&one));
        if live.status(&one) == InstanceStatus::Unknown {
            return Err(Error::NotOurs { pid: live.pid.map(|pid| pid.number).unwrap_or_default() });
        }
        self.end(&one, &live, patience).await?;
        let (id, now, entry) = (one.id.clone(), self.now(), self.about(by, "instance.archive", &one));
        let archived = self.db.write(move |tx| {
            registry::archive(tx, &id, now)?;
            audit::note(tx, Some(&entry))
        });
        archived.await?;
        self.announce(&one.id, |instance| Change::InstanceArchived { instance }).await
    }

    /// The right to act on an instance whose folder somebody may have removed by hand.
    async fn hold_even_if_gone(&self, one: &InstanceRecord) -> Result<Held> {
        let place = self.place(one);
        file::make_private(place.path()).map_err(|error| Error::files(place.path(), &error))?;
        self.hold(one).await
    }

    /// On this port; else on the one it had, or on another that is free where that is taken by now.
    pub async fn unarchive(&self, by: &Caller, word: &str, port: Option<u16>) -> Result<View> {
        let Some(one) = self.archived(word).await? else {
            return Err(Error::NotInArchive(self.row(word).await?.name.to_string()));
        };
        let _held = self.hold_even_if_gone(&one).await?;
        let _turn = self.making.lock().await;
        let one = InstanceRecord { port: self.port_to_return_to(&one, port).await?, ..one };
        let (row, entry) = (one.clone(), self.about(by, "instance.unarchive", &one));
        let taken = self.db.write(move |tx| {
            let taken = registry::unarchive(tx, &row)?;
            audit::note(tx, Some(&entry).filter(|_| taken.is_none()))?;
            Ok(taken)
        });
        refuse(taken.await?, &one)?;
        self.announce(&one.id, |instance| Change::InstanceUnarchived { instance }).await
    }

    async fn port_to_return_to(&self, one: &InstanceRecord, asked: Option<u16>) -> Result<u16> {
        let rows = self.db.read(registry::list).await?;
        let is_used = rows.iter().any(|other| other.archived_at.is_none() && other.port == one.port);
        if asked.is_none_or(|port| port == one.port) && !is_used {
            return Ok(one.port);
        }
        let port = self.choose_port(&one.name, asked).await?;
        let place = self.place(one);
        // Where somebody removed its config there is none to change: it is not started without one.
        if let Ok(text) = self.config_text(one) {
            let text = edit::merge(&text, &serde_json::json!({ "gateway": { "port": port } }))?;
            put(&place, &text)?;
        }
        Ok(port)
    }

    /// Its folder, tokens and crashes go with it; messages and the audit stay.
    pub async fn delete(&self, by: &Caller, word: &str) -> Result<()> {
        let not_archived = |one: InstanceRecord| Error::NotArchived(one.name.to_string());
        let named = self.row(word).await?;
        // An active one of that name is the one that is meant, and is not deleted.
        let archived = if named.archived_at.is_some() { self.archived(word).await? } else { None };
        let one = archived.ok_or_else(|| not_archived(named))?;
        if one.folder == HOME {
            return Err(Error::HomeInstance(one.name.to_string()));
        }
        let held = self.hold_even_if_gone(&one).await?;
        let view = self.view(one.clone()).await?;
        let (folder, aside) =
            (self.place(&one), self.home.join(crate::create::FOLDER).join(format!("{ASIDE}{}", one.id)));
        match fs::rename(folder.path(), &aside) {
            // Somebody removed it by hand.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            moved => moved.map_err(|error| Error::files(folder.path(), &error))?,
        }
        let (id, entry) = (one.id.clone(), self.about(by, "instance.delete", &one));
        let removed = self.db.write(move |tx| {
            registry::remove(tx, &id)?;
            audit::note(tx, Some(&entry))
        });
        if let Err(error) = removed.await {
            let _ = fs::rename(&aside, folder.path());
            return Err(error.into());
        }
        drop(held);
        self.announce_end(view);
        // What can not be removed now is swept away at the next start.
        if let Err(error) = fs::remove_dir_all(&aside)
            && aside.exists()
        {
            tracing::warn!(folder = %aside.display(), %error, "the folder of a deleted instance is left");
        }
        Ok(())
    }

    pub async fn set_restart(&self, by: &Caller, word: &str, restart: RestartPolicy) -> Result<View> {
        let one = self.row(word).await?;
        let detail = format!("{}: {}", one.name, restart.as_str());
        let (id, entry) =
            (one.id.clone(), AuditEntry { detail, ..self.entry(by, "instance.restart_policy", &one.id) });
        let set = self.db.write(move |tx| {
            registry::set_restart_policy(tx, &id, restart)?;
            audit::note(tx, Some(&entry))
        });
        set.await?;
        self.announce(&one.id, |instance| Change::StatusChanged { instance }).await
    }

    /// The archived instance of this id, or the only one of this name.
    async fn archived(&self, word: &str) -> Result<Option<InstanceRecord>> {
        let mut rows = self.db.read(registry::list).await?;
        rows.retain(|one| one.archived_at.is_some());
        if let Some(at) = rows.iter().position(|one| one.id.as_str() == word) {
            return Ok(Some(rows.swap_remove(at)));
        }
        rows.retain(|one| one.name.as_str() == word);
        if rows.len() > 1 {
            return Err(Error::Ambiguous { name: word.to_owned(), count: rows.len() });
        }
        Ok(rows.pop())
    }

    fn about(&self, by: &Caller, action: &str, one: &InstanceRecord) -> AuditEntry {
        AuditEntry { detail: one.name.to_string(), ..self.entry(by, action, &one.id) }
    }
}
