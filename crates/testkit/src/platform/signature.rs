//! Signatures in both directions, implemented separately from the product so that they do not share its bugs.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

pub(super) const SIGNATURE_HEADER: &str = "X-Polyclaw-Signature";

pub(super) fn sign(secret: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(body);
    let hex: Vec<_> = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={}", hex.concat())
}
