//! Callers of the control plane and their access tokens.

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

/// The authenticated caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlCaller {
    /// The name in the audit log.
    pub who: String,
    pub access: TokenAccess,
    /// The instance that the token belongs to, if it is an instance's own token.
    pub instance: Option<InstanceId>,
    /// The id of the token, if it was issued by the control plane.
    pub token: Option<String>,
}

impl ControlCaller {
    /// The holder of the control plane's own token.
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

/// Resolves when the token is revoked. Long-lived connections opened with it close then.
#[derive(Clone, Debug)]
pub struct TokenLifetime(watch::Receiver<()>);

impl TokenLifetime {
    /// Returns when the token is revoked.
    pub async fn wait_revoked(&mut self) {
        // Nothing is ever sent: revoking the token drops the sender.
        while self.0.changed().await.is_ok() {}
    }
}

/// Senders of open connections, keyed by the token hash, or by the token id for browser logins.
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

/// A new token with its secret, which is shown only this once.
pub struct NewAccessToken {
    pub token: AccessToken,
    pub secret: String,
}

impl Control {
    /// Returns the caller of a token, and the lifetime of that token.
    pub async fn find_caller(&self, token: &str) -> Result<Option<(ControlCaller, TokenLifetime)>> {
        let hash = content_hash(token.as_bytes());
        // Subscribes before the lookup. A token revoked in between is either not found or its end is noticed.
        let stay = self.token_lifetimes.for_token(&hash);
        let found = self.db.read(move |tx: &mut Tx<'_>| tokens::find_by_hash(tx, &hash)).await?;
        Ok(found.map(|token| (ControlCaller::from(token), stay)))
    }

    /// Returns the caller of the token with this id, and the lifetime of that token.
    pub async fn find_caller_by_id(&self, id: &str) -> Result<Option<(ControlCaller, TokenLifetime)>> {
        let (id, stay) = (id.to_owned(), self.token_lifetimes.for_token(id));
        let found = self.db.read(move |tx: &mut Tx<'_>| tokens::find_by_id(tx, &id)).await?;
        Ok(found.map(|token| (ControlCaller::from(token), stay)))
    }

    /// Lists tokens, newest first, after the given creation time and id.
    pub async fn list_tokens(
        &self,
        behind: Option<(Millis, String)>,
        limit: usize,
    ) -> Result<Vec<AccessToken>> {
        let read = move |tx: &mut Tx<'_>| tokens::list(tx, behind.clone(), limit);
        Ok(self.db.read(read).await?)
    }

    /// Records in the audit log that a login link is issued. Call it before issuing.
    pub async fn record_login(&self, by: &ControlCaller) -> Result<()> {
        let target = by.token.as_deref().unwrap_or(&by.who);
        self.record_audit(self.audit_entry(by, "login.make", target)).await
    }

    /// Records in the audit log that a browser login is ended. Call it before ending.
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

    /// Creates the instance's own token and replaces its previous one.
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
