//! The lifetime of long-lived connections: until the server shuts down or their token is revoked.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::extract::ws::close_code;
use axum::http::Extensions;
use axum::http::request::Parts;
use polyclaw_control::TokenLifetime;
use serde_json::{Value, json};

use crate::serve::ShutdownSignal;

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// The server shuts down.
    Closing,
    /// The token was revoked.
    Revoked,
}

impl ConnectionEnd {
    /// The close code of a socket.
    pub fn close_code(self) -> u16 {
        match self {
            Self::Closing => close_code::AWAY,
            Self::Revoked => UNAUTHORIZED_CLOSE_CODE,
        }
    }

    /// The frame that a socket gets before it is closed.
    pub fn error_frame(self) -> Option<Value> {
        let revoked = json!({ "type": "error", "code": "unauthorized", "message": "the token was revoked" });
        (self == Self::Revoked).then_some(revoked)
    }
}

/// The close code of a socket whose reader is not authorized.
pub const UNAUTHORIZED_CLOSE_CODE: u16 = 4401;

#[derive(Clone, Default)]
pub struct ConnectionLifetime {
    closing: Option<ShutdownSignal>,
    /// `None` for the operator's own token, which is never revoked.
    token_lifetime: Option<TokenLifetime>,
}

impl ConnectionLifetime {
    pub fn from_extensions(extensions: &Extensions) -> Self {
        Self { closing: extensions.get().cloned(), token_lifetime: extensions.get().cloned() }
    }

    /// Waits until the connection must end, and returns why.
    pub async fn wait_for_end(mut self) -> ConnectionEnd {
        let closed = async {
            match &mut self.closing {
                Some(closing) => closing.wait_for_shutdown().await,
                None => std::future::pending().await,
            }
        };
        let stay = Self { closing: None, token_lifetime: self.token_lifetime };
        tokio::select! {
            () = stay.wait_for_revocation() => ConnectionEnd::Revoked,
            () = closed => ConnectionEnd::Closing,
        }
    }

    /// Waits until the token is revoked.
    pub async fn wait_for_revocation(self) {
        match self.token_lifetime {
            Some(mut stay) => stay.wait_revoked().await,
            None => std::future::pending().await,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for ConnectionLifetime {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_extensions(&parts.extensions))
    }
}
