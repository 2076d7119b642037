//! Archives, unarchives and deletes instances. Only archived instances can be deleted.

use std::fs;
use std::time::Duration;

use polyclaw_domain::audit::AuditEntry;
use polyclaw_domain::instance::{InstanceStatus, RestartPolicy};
use polyclaw_store::registry::{self, InstanceRecord};

use crate::access::ControlCaller;
use crate::audit;
use crate::config::{edit, write_config_file};
use crate::control::{Control, run_to_completion};
use crate::create::check_conflict;
use crate::error::{Error, Result};
use crate::file;
use crate::instance_paths::HOME_FOLDER;
use crate::lock::HeldLock;
use crate::view::{InstanceChange, InstanceProcess, InstanceSnapshot};

/// The prefix of a folder whose record is about to be removed.
pub(crate) const REMOVED_PREFIX: &str = ".removed-";

impl Control {
    /// Archives an instance. Stops it first, under the same lock.
    pub async fn archive_instance(
        &self,
        by: &ControlCaller,
        word: &str,
        timeout: Duration,
    ) -> Result<InstanceSnapshot> {
        let (control, by, word) = (self.clone(), by.clone(), word.to_owned());
        run_to_completion(async move { control.run_archive(&by, &word, timeout).await }).await
    }

    async fn run_archive(
        &self,
        by: &ControlCaller,
        word: &str,
        timeout: Duration,
    ) -> Result<InstanceSnapshot> {
        let one = self.find_active(word).await?;
        let _held = self.lock_even_if_gone(&one).await?;
        let one = self.find_active(one.id.as_str()).await?;
        let live = InstanceProcess::for_instance(&one, &self.instance_paths(&one));
        if live.status(&one) == InstanceStatus::Unknown {
            return Err(Error::NotOurs { pid: live.pid.map(|pid| pid.number).unwrap_or_default() });
        }
        self.end_process(&one, &live, timeout).await?;
        let (id, now, entry) = (one.id.clone(), self.now(), self.named_entry(by, "instance.archive", &one));
        let archived = self.db.write(move |tx| {
            registry::archive(tx, &id, now)?;
            audit::append_optional(tx, Some(&entry))
        });
        archived.await?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceArchived { instance }).await
    }

    /// Locks an instance whose folder may have been removed by hand.
    async fn lock_even_if_gone(&self, one: &InstanceRecord) -> Result<HeldLock> {
        let place = self.instance_paths(one);
        file::make_private(place.path()).map_err(|error| Error::from_io(place.path(), &error))?;
        self.lock_instance(one).await
    }

    /// Unarchives an instance on the given port, else on its previous port, or on a free one if that is taken.
    pub async fn unarchive_instance(
        &self,
        by: &ControlCaller,
        word: &str,
        port: Option<u16>,
    ) -> Result<InstanceSnapshot> {
        let Some(one) = self.find_archived(word).await? else {
            return Err(Error::NotInArchive(self.find_instance(word).await?.name.to_string()));
        };
        let _held = self.lock_even_if_gone(&one).await?;
        let _turn = self.creation_lock.lock().await;
        let one = InstanceRecord { port: self.choose_returning_port(&one, port).await?, ..one };
        let (row, entry) = (one.clone(), self.named_entry(by, "instance.unarchive", &one));
        let taken = self.db.write(move |tx| {
            let taken = registry::unarchive(tx, &row)?;
            audit::append_optional(tx, Some(&entry).filter(|_| taken.is_none()))?;
            Ok(taken)
        });
        check_conflict(taken.await?, &one)?;
        self.publish_change(&one.id, |instance| InstanceChange::InstanceUnarchived { instance }).await
    }

    async fn choose_returning_port(&self, one: &InstanceRecord, asked: Option<u16>) -> Result<u16> {
        let rows = self.db.read(registry::list).await?;
        let is_used = rows.iter().any(|other| other.archived_at.is_none() && other.port == one.port);
        if asked.is_none_or(|port| port == one.port) && !is_used {
            return Ok(one.port);
        }
        let port = self.choose_port(&one.name, asked).await?;
        let place = self.instance_paths(one);
        // Without a config there is nothing to change, and the instance cannot start.
        if let Ok(text) = self.read_config_text(one) {
            let text = edit::merge_patch(&text, &serde_json::json!({ "gateway": { "port": port } }))?;
            write_config_file(&place, &text)?;
        }
        Ok(port)
    }

    /// Deletes an instance with its folder, tokens and crashes. Messages and the audit log stay.
    pub async fn delete_instance(&self, by: &ControlCaller, word: &str) -> Result<()> {
        let not_archived = |one: InstanceRecord| Error::NotArchived(one.name.to_string());
        let named = self.find_instance(word).await?;
        // An active instance of the same name takes precedence and is not deleted.
        let archived = if named.archived_at.is_some() { self.find_archived(word).await? } else { None };
        let one = archived.ok_or_else(|| not_archived(named))?;
        if one.folder == HOME_FOLDER {
            return Err(Error::HomeInstance(one.name.to_string()));
        }
        let held = self.lock_even_if_gone(&one).await?;
        let view = self.build_view(one.clone()).await?;
        let (folder, aside) = (
            self.instance_paths(&one),
            self.home.join(crate::create::INSTANCES_FOLDER).join(format!("{REMOVED_PREFIX}{}", one.id)),
        );
        match fs::rename(folder.path(), &aside) {
            // The folder was removed by hand.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            moved => moved.map_err(|error| Error::from_io(folder.path(), &error))?,
        }
        let (id, entry) = (one.id.clone(), self.named_entry(by, "instance.delete", &one));
        let removed = self.db.write(move |tx| {
            registry::remove(tx, &id)?;
            audit::append_optional(tx, Some(&entry))
        });
        if let Err(error) = removed.await {
            let _ = fs::rename(&aside, folder.path());
            return Err(error.into());
        }
        drop(held);
        self.publish_deleted(view);
        // The next start removes what cannot be removed now. Runs on a blocking thread, because agents decide how much
        // there is to remove.
        let folder = aside.display().to_string();
        let removed = tokio::task::spawn_blocking(move || polyclaw_tree::remove_tree(&aside)).await;
        if let Err(error) = removed.map_err(std::io::Error::other).flatten() {
            tracing::warn!(%folder, %error, "could not remove the folder of a deleted instance");
        }
        Ok(())
    }

    pub async fn set_restart_policy(
        &self,
        by: &ControlCaller,
        word: &str,
        restart: RestartPolicy,
    ) -> Result<InstanceSnapshot> {
        let one = self.find_instance(word).await?;
        let detail = format!("{}: {}", one.name, restart.as_str());
        let (id, entry) = (
            one.id.clone(),
            AuditEntry { detail, ..self.audit_entry(by, "instance.restart_policy", &one.id) },
        );
        let set = self.db.write(move |tx| {
            registry::set_restart_policy(tx, &id, restart)?;
            audit::append_optional(tx, Some(&entry))
        });
        set.await?;
        self.publish_change(&one.id, |instance| InstanceChange::StatusChanged { instance }).await
    }

    /// Finds the archived instance with this id, or the only one with this name.
    async fn find_archived(&self, word: &str) -> Result<Option<InstanceRecord>> {
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

    fn named_entry(&self, by: &ControlCaller, action: &str, one: &InstanceRecord) -> AuditEntry {
        AuditEntry { detail: one.name.to_string(), ..self.audit_entry(by, action, &one.id) }
    }
}
