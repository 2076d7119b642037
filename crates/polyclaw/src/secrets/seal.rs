//! Encrypts a value with ChaCha20-Poly1305 and a fresh nonce, bound to its name so that entries cannot be swapped.

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use polyclaw_domain::config::Secret;
use polyclaw_domain::hex::{decode_hex, encode_hex};

use crate::failure::CommandFailure;
use crate::ids::random_bytes;

pub type KeyBytes = [u8; 32];

fn cipher(key: &KeyBytes) -> Result<LessSafeKey, CommandFailure> {
    Ok(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| unseal_failure("the key"))?))
}

/// Returns the nonce followed by the ciphertext, in hex.
pub fn seal_value(key: &KeyBytes, name: &str, value: &Secret) -> Result<String, CommandFailure> {
    let nonce = random_bytes::<NONCE_LEN>();
    let mut bytes = value.expose().as_bytes().to_vec();
    cipher(key)?
        .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name.as_bytes()), &mut bytes)
        .map_err(|_| unseal_failure(name))?;
    Ok(encode_hex(&nonce) + &encode_hex(&bytes))
}

pub fn open_value(key: &KeyBytes, name: &str, sealed: &str) -> Result<Secret, CommandFailure> {
    let opened = || {
        let bytes = decode_hex(sealed)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = cipher(key).ok()?.open_in_place(nonce, Aad::from(name.as_bytes()), &mut sealed).ok()?;
        Some(Secret::new(std::str::from_utf8(plain).ok()?))
    };
    opened().ok_or_else(|| unseal_failure(name))
}

fn unseal_failure(name: &str) -> CommandFailure {
    super::locked_store(
        format!("cannot decrypt secret {name}: it was modified, or encrypted with another key"),
        "set it again with `polyclaw secrets set`",
    )
}
