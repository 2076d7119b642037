//! Access levels of callers. The instance's token gives full access. The control plane uses that token for callers
//! with less access, and states their scope with every call.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use polyclaw_domain::authority::Authority;
use polyclaw_domain::instance::TokenAccess;

/// The scope of the original caller. It can only reduce access.
pub const SCOPE_HEADER: HeaderName = HeaderName::from_static("polyclaw-scope");

/// What the caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessLevel(pub TokenAccess);

impl AccessLevel {
    /// The authority of turns that this caller starts.
    pub fn authority(self) -> Authority {
        match self.0 {
            TokenAccess::Admin => Authority::Owner,
            TokenAccess::Operate | TokenAccess::Read => Authority::Operator,
        }
    }

    pub fn from_headers(headers: &HeaderMap) -> Self {
        let reply = headers.get_all(SCOPE_HEADER).iter();
        // The lowest of several values counts, and an unknown value counts as the lowest.
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
    fn scope_header_only_reduces_access() {
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
