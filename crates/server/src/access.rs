//! How much of an instance a caller may have. Whoever shows its token may have all; the control plane shows it for people
//! whose own tokens are good for less, and says so with every call.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use polyclaw_domain::authority::Authority;
use polyclaw_domain::instance::TokenAccess;

/// The scope of whoever is behind a call. It can only take away.
pub const SCOPE_HEADER: HeaderName = HeaderName::from_static("polyclaw-scope");

/// What the caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessLevel(pub TokenAccess);

impl AccessLevel {
    /// What those may decide for whom a turn of this caller works.
    pub fn authority(self) -> Authority {
        match self.0 {
            TokenAccess::Admin => Authority::Owner,
            TokenAccess::Operate | TokenAccess::Read => Authority::Operator,
        }
    }

    pub fn from_headers(headers: &HeaderMap) -> Self {
        let reply = headers.get_all(SCOPE_HEADER).iter();
        // Of several the least counts, and a word that is not known is the least there is.
        let reply =
            reply.map(|word| word.to_str().ok().and_then(TokenAccess::parse).unwrap_or(TokenAccess::Read));
        Self(reply.min().unwrap_or(TokenAccess::Admin))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AccessLevel {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::from_headers(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_only_takes_away() {
        for (texts, expected) in [
            (&[] as &[&str], TokenAccess::Admin),
            (&["admin"], TokenAccess::Admin),
            (&["operate"], TokenAccess::Operate),
            (&["admin", "operate"], TokenAccess::Operate),
            (&["owner"], TokenAccess::Read),
            (&[""], TokenAccess::Read),
        ] {
            let headers = texts.iter().map(|word| (SCOPE_HEADER, word.parse().unwrap())).collect();
            assert_eq!(AccessLevel::from_headers(&headers), AccessLevel(expected), "{texts:?}");
        }
    }
}
