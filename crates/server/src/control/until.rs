//! How long what was opened may last: until the server goes down, or the token it was opened with is revoked.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::extract::ws::close_code;
use axum::http::Extensions;
use axum::http::request::Parts;
use polyclaw_control::Stay;
use serde_json::{Value, json};

use crate::serve::Closing;

/// Why something that lasted is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The server goes down.
    Closing,
    /// The token opens nothing any more.
    Revoked,
}

impl End {
    /// The code a socket is closed with.
    pub fn code(self) -> u16 {
        match self {
            Self::Closing => close_code::AWAY,
            Self::Revoked => UNAUTHORIZED,
        }
    }

    /// What a socket is told before it is closed.
    pub fn frame(self) -> Option<Value> {
        let revoked = json!({ "type": "error", "code": "unauthorized", "message": "the token was revoked" });
        (self == Self::Revoked).then_some(revoked)
    }
}

/// Closes a socket whose reader may not read.
pub const UNAUTHORIZED: u16 = 4401;

#[derive(Clone, Default)]
pub struct Until {
    closing: Option<Closing>,
    /// The operator's own token is never revoked.
    stay: Option<Stay>,
}

impl Until {
    pub fn of(extensions: &Extensions) -> Self {
        Self { closing: extensions.get().cloned(), stay: extensions.get().cloned() }
    }

    /// Returns when it is over, and why.
    pub async fn over(mut self) -> End {
        let closed = async {
            match &mut self.closing {
                Some(closing) => closing.wait().await,
                None => std::future::pending().await,
            }
        };
        let stay = Self { closing: None, stay: self.stay };
        tokio::select! {
            () = stay.revoked() => End::Revoked,
            () = closed => End::Closing,
        }
    }

    /// Returns when the token was revoked.
    pub async fn revoked(self) {
        match self.stay {
            Some(mut stay) => stay.ended().await,
            None => std::future::pending().await,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Until {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
    }
}
