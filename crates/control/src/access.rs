//! Who calls, and the tokens by which they are known.

use polyclaw_domain::audit::{Entry, fingerprint};
use polyclaw_domain::id::InstanceId;
use polyclaw_domain::instance::Access;
use polyclaw_store::Tx;
use polyclaw_store::registry::tokens::{self, Token};

use crate::audit;
use crate::control::Control;
use crate::error::{Error, Result};

/// Whoever a call comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// As the audit names them.
    pub who: String,
    pub access: Access,
    /// The instance whose own token it is.
    pub instance: Option<InstanceId>,
}

impl Caller {
    /// Whoever has the token of the control plane itself.
    pub fn operator() -> Self {
        Self { who: "operator".to_owned(), access: Access::Admin, instance: None }
    }

    pub(crate) fn supervisor() -> Self {
        Self { who: "supervisor".to_owned(), ..Self::operator() }
    }
}

impl From<Token> for Caller {
    fn from(token: Token) -> Self {
        let who = match &token.instance {
            Some(instance) => format!("instance:{instance}"),
            None => format!("token:{}", token.id),
        };
        Self { who, access: token.access, instance: token.instance }
    }
}

/// A token that was just made: the only time it is seen.
pub struct Made {
    pub token: Token,
    pub secret: String,
}

impl Control {
    /// Whose token this is.
    pub async fn caller(&self, token: &str) -> Result<Option<Caller>> {
        let hash = fingerprint(token.as_bytes());
        let found = self.db.read(move |tx: &mut Tx<'_>| tokens::find(tx, &hash)).await?;
        Ok(found.map(Caller::from))
    }

    pub async fn tokens(&self) -> Result<Vec<Token>> {
        Ok(self.db.read(tokens::list).await?)
    }

    pub async fn make_token(&self, by: &Caller, name: String, access: Access) -> Result<Made> {
        let token = Token {
            id: self.ids.next(),
            name,
            access,
            instance: None,
            created_at: self.now(),
            revoked_at: None,
        };
        let detail = format!("{} '{}'", access.as_str(), token.name);
        let entry = Entry { detail, ..self.entry(by, "token.make", &token.id) };
        self.keep_token(token, Some(entry)).await
    }

    /// An instance's own, in place of the one it had.
    pub(crate) async fn instance_token(&self, instance: &InstanceId) -> Result<String> {
        let token = Token {
            id: self.ids.next(),
            name: "instance".to_owned(),
            access: Access::Read,
            instance: Some(instance.clone()),
            created_at: self.now(),
            revoked_at: None,
        };
        Ok(self.keep_token(token, None).await?.secret)
    }

    async fn keep_token(&self, token: Token, entry: Option<Entry>) -> Result<Made> {
        let secret = format!("{}{}", self.ids.nonce(), self.ids.nonce());
        let (stored, hash) = (token.clone(), fingerprint(secret.as_bytes()));
        let kept = self.db.write(move |tx| {
            tokens::add(tx, &stored, &hash)?;
            audit::note(tx, entry.as_ref())
        });
        kept.await?;
        Ok(Made { token, secret })
    }

    pub async fn revoke_token(&self, by: &Caller, id: &str) -> Result<()> {
        let (entry, now, wanted) = (self.entry(by, "token.revoke", id), self.now(), id.to_owned());
        let revoked = self.db.write(move |tx| {
            let revoked = tokens::revoke(tx, &wanted, now)?;
            audit::note(tx, Some(&entry).filter(|_| revoked))?;
            Ok(revoked)
        });
        if revoked.await? { Ok(()) } else { Err(Error::UnknownToken(id.to_owned())) }
    }
}
