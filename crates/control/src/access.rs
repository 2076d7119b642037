//! Who calls, and the tokens by which they are known.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use polyclaw_domain::audit::{AuditEntry, content_hash};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::TokenAccess;
use polyclaw_domain::redact::quote_safely;
use polyclaw_domain::time::Millis;
use polyclaw_store::Tx;
use polyclaw_store::registry::tokens::{self, AccessToken};
use tokio::sync::watch;

use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

/// Whoever a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlCaller {
    /// As the audit names them.
    pub who: String,
    pub access: TokenAccess,
    /// The instance whose own token it is.
    pub instance: Option<InstanceId>,
    /// The id of the token they showed, if it is one that was given out.
    pub token: Option<String>,
}

impl ControlCaller {
    /// Whoever has the token of the control plane itself.
    pub fn operator() -> Self {
        Self { who: "operator".to_owned(), access: TokenAccess::Admin, instance: None, token: None }
    }

    pub(crate) fn supervisor() -> Self {
        Self { who: "supervisor".to_owned(), ..Self::operator() }
    }
}

impl From<AccessToken> for ControlCaller {
    fn from(token: AccessToken) -> Self {
        let who = match &token.instance {
            Some(instance) => format!("instance:{instance}"),
            None => format!("token:{}", token.id),
        };
        Self { who, access: token.access, instance: token.instance, token: Some(token.id) }
    }
}

/// For as long as a token opens anything. What was opened with it and lasts, ends with it.
#[derive(Clone, Debug)]
pub struct TokenLifetime(watch::Receiver<()>);

impl TokenLifetime {
    /// Returns when the token was revoked.
    pub async fn wait_revoked(&mut self) {
        // Nothing is ever sent: the other end is dropped with the token.
        while self.0.changed().await.is_ok() {}
    }
}

/// Those who stay, by the hash of their token, or by its id where they logged in with it.
#[derive(Default)]
pub struct TokenLifetimes(Mutex<HashMap<String, watch::Sender<()>>>);

impl TokenLifetimes {
    pub fn for_token(&self, token: &str) -> TokenLifetime {
        let mut lifetimes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lifetimes.retain(|_, stay| stay.receiver_count() > 0);
        TokenLifetime(lifetimes.entry(token.to_owned()).or_insert_with(|| watch::channel(()).0).subscribe())
    }

    pub fn end_token(&self, token: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}

/// A token that was just made: the only time it is seen.
pub struct NewAccessToken {
    pub token: AccessToken,
    pub secret: String,
}

impl Control {
    /// Whose token this is, and for how long.
    pub async fn find_caller(&self, token: &str) -> Result<Option<(ControlCaller, TokenLifetime)>> {
        let hash = content_hash(token.as_bytes());
        // Before it is looked up: one that is revoked in between is not found, or its end is told.
        let stay = self.token_lifetimes.for_token(&hash);
        let found = self.db.read(move |tx: &mut Tx<'_>| tokens::find_by_hash(tx, &hash)).await?;
        Ok(found.map(|token| (ControlCaller::from(token), stay)))
    }

    /// Whose token it is that has this id, and for how long.
    pub async fn find_caller_by_id(&self, id: &str) -> Result<Option<(ControlCaller, TokenLifetime)>> {
        let (id, stay) = (id.to_owned(), self.token_lifetimes.for_token(id));
        let found = self.db.read(move |tx: &mut Tx<'_>| tokens::find_by_id(tx, &id)).await?;
        Ok(found.map(|token| (ControlCaller::from(token), stay)))
    }

    /// The newest first, behind one: when it was made, and its id.
    pub async fn list_tokens(
        &self,
        behind: Option<(Millis, String)>,
        limit: usize,
    ) -> Result<Vec<AccessToken>> {
        let read = move |tx: &mut Tx<'_>| tokens::list(tx, behind.clone(), limit);
        Ok(self.db.read(read).await?)
    }

    /// Before a link is given out that lets a browser in.
    pub async fn record_login(&self, by: &ControlCaller) -> Result<()> {
        let target = by.token.as_deref().unwrap_or(&by.who);
        self.record_audit(self.audit_entry(by, "login.make", target)).await
    }

    /// Before the login of a browser is ended.
    pub async fn record_logout(&self, by: &ControlCaller, login: &str) -> Result<()> {
        self.record_audit(self.audit_entry(by, "login.end", login)).await
    }

    pub async fn create_token(
        &self,
        by: &ControlCaller,
        name: String,
        access: TokenAccess,
    ) -> Result<NewAccessToken> {
        let token = AccessToken {
            id: self.ids.next_id(),
            name,
            access,
            instance: None,
            created_at: self.now(),
            revoked_at: None,
        };
        let detail = format!("{} '{}'", access.as_str(), token.name);
        let entry = AuditEntry { detail, ..self.audit_entry(by, "token.make", &token.id) };
        self.store_token(token, Some(entry)).await
    }

    /// An instance's own, in place of the one it had.
    pub(crate) async fn create_instance_token(&self, instance: &InstanceId) -> Result<String> {
        let token = AccessToken {
            id: self.ids.next_id(),
            name: "instance".to_owned(),
            access: TokenAccess::Read,
            instance: Some(instance.clone()),
            created_at: self.now(),
            revoked_at: None,
        };
        Ok(self.store_token(token, None).await?.secret)
    }

    async fn store_token(&self, token: AccessToken, entry: Option<AuditEntry>) -> Result<NewAccessToken> {
        let secret = format!("{}{}", self.ids.fresh_nonce(), self.ids.fresh_nonce());
        let (stored, hash) = (token.clone(), content_hash(secret.as_bytes()));
        let kept = self.db.write(move |tx| {
            tokens::insert_or_replace(tx, &stored, &hash)?;
            audit::append_optional(tx, entry.as_ref())
        });
        kept.await?;
        Ok(NewAccessToken { token, secret })
    }

    pub async fn revoke_token(&self, by: &ControlCaller, id: &str) -> Result<()> {
        let (entry, now, wanted) = (self.audit_entry(by, "token.revoke", id), self.now(), id.to_owned());
        let revoked = self.db.write(move |tx| {
            let revoked = tokens::revoke(tx, &wanted, now)?;
            audit::append_optional(tx, Some(&entry).filter(|_| revoked.is_some()))?;
            Ok(revoked)
        });
        let hash = revoked.await?.ok_or_else(|| Error::UnknownToken(quote_safely(id)))?;
        [&hash, id].iter().for_each(|token| self.token_lifetimes.end_token(token));
        Ok(())
    }
}
