//! The proof that an answer comes from this instance and was not changed on its way.

use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use polyclaw_domain::config::Secret;
use sha2::Sha256;

pub(crate) const HEADER: &str = "X-Polyclaw-Signature";

/// `sha256=` and the HMAC-SHA256 of the body in hex.
pub(crate) fn sign(secret: &Secret, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    let mut signature = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(signature, "{byte:02x}");
    }
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn a_signature_is_the_hmac_of_the_body() {
        let signed = sign(&Secret::new("Jefe"), b"what do ya want for nothing?");
        let known = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(signed, format!("sha256={known}"));
    }
}
