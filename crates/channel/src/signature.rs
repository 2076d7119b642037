//! HMAC-SHA256 signatures that prove the origin and integrity of a body. Compared in constant time.

use hmac::{Hmac, KeyInit, Mac};
use polyclaw_domain::config::Secret;
use polyclaw_domain::hex::{decode_hex, encode_hex};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Header with the signature of a request from this instance.
pub(crate) const SIGNATURE_HEADER: &str = "X-Polyclaw-Signature";

/// Returns the value of the signature header.
pub(crate) fn signature_header_value(secret: &Secret, body: &[u8]) -> String {
    format!("sha256={}", sign(secret, &[body]))
}

/// Signs the concatenated pieces. Returns hex.
pub(crate) fn sign(secret: &Secret, pieces: &[&[u8]]) -> String {
    encode_hex(&hmac_sha256(secret, pieces).finalize().into_bytes())
}

/// Whether `given`, in hex, is the signature of the concatenated pieces.
pub(crate) fn is_genuine(secret: &Secret, pieces: &[&[u8]], given: &str) -> bool {
    decode_hex(given).is_some_and(|given| hmac_sha256(secret, pieces).verify_slice(&given).is_ok())
}

/// Whether `given` is the secret. Timing reveals only the secret's length.
pub(crate) fn matches_secret(secret: &Secret, given: &str) -> bool {
    secret.expose().as_bytes().ct_eq(given.as_bytes()).into()
}

fn hmac_sha256(secret: &Secret, pieces: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes a key of any length");
    pieces.iter().for_each(|piece| mac.update(piece));
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    const KNOWN: &str = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";

    #[test]
    fn signature_is_hmac_of_all_pieces() {
        let secret = Secret::new("Jefe");
        let pieces: [&[u8]; 2] = [b"what do ya want ", b"for nothing?"];
        assert_eq!(sign(&secret, &pieces), KNOWN);
        assert!(is_genuine(&secret, &pieces, KNOWN));
        assert!(is_genuine(&secret, &pieces, &KNOWN.to_uppercase()));
    }

    #[test]
    fn wrong_signatures_and_secrets_are_refused() {
        let pieces: [&[u8]; 1] = [b"what do ya want for nothing?"];
        let secret = Secret::new("Jefe");
        for given in
            ["", "5b", &KNOWN[..62], &KNOWN[..63], &format!("{KNOWN}00"), "zz", "é", &KNOWN.replace('5', "6")]
        {
            assert!(!is_genuine(&secret, &pieces, given), "{given}");
        }
        assert!(!is_genuine(&Secret::new("jefe"), &pieces, KNOWN));
        assert!(!is_genuine(&secret, &[b"what do ya want for nothing!"], KNOWN));
        assert!(
            matches_secret(&secret, "Jefe")
                && !matches_secret(&secret, "Jef")
                && !matches_secret(&secret, "jefe")
        );
    }
}
