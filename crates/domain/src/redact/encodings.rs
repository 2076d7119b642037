//! Encodings of a secret, except those that escape single characters.

use std::iter::successors;

use super::unescape::MAX_ESCAPE_LAYERS;
use super::{MIN_SECRET_BYTES, unescape, url_credentials};

/// Placeholders for services that need no key. Masking them would garble ordinary words.
const PLACEHOLDER_SECRETS: [&str; 6] =
    ["lm-studio", "not-needed", "no-key-required", "sk-no-key-required", "placeholder", "anything"];

/// Minimum length of a line of a key file that is treated as a secret of its own.
const MIN_KEY_LINE_LEN: usize = 16;

/// Returns every byte sequence that reveals a secret.
pub(super) fn secret_encodings(secret: &str) -> Vec<Vec<u8>> {
    let secret = secret.trim();
    let mut values = vec![secret.to_owned()];
    // A key file is read line by line, so each of its lines is a secret too.
    if secret.contains('\n') {
        let lines = secret.lines().map(str::trim).filter(|line| line.len() >= MIN_KEY_LINE_LEN);
        values.extend(lines.filter(|line| !line.contains([' ', '\t'])).map(str::to_owned));
    }
    // The password and key in a URL are secrets too, both encoded and decoded.
    let held = url_credentials::url_credentials_within(secret).into_iter();
    values.extend(held.flat_map(|written| [decode_percent(written), written.to_owned()]));
    // A value that contains escapes itself also appears decoded when escapes are removed.
    let meant: Vec<Vec<u8>> = values.iter().filter_map(|value| unescape::decode_fully(value)).collect();
    let mut values: Vec<Vec<u8>> = values.into_iter().map(String::into_bytes).chain(meant).collect();
    // HTML forms encode a space as `+`. Their other escapes are handled like those of any text.
    let plus = |byte: &u8| if *byte == b' ' { b'+' } else { *byte };
    let posted = |value: &Vec<u8>| value.contains(&b' ').then(|| value.iter().map(plus).collect());
    values.extend(values.iter().filter_map(posted).collect::<Vec<_>>());
    let is_placeholder = |value: &[u8]| PLACEHOLDER_SECRETS.iter().any(|word| word.as_bytes() == value);
    values.retain(|value| value.len() >= MIN_SECRET_BYTES && !is_placeholder(value));
    values
        .iter()
        .flat_map(|value| encoded_shapes(value))
        .filter(|form| form.len() >= MIN_SECRET_BYTES)
        .collect()
}

fn encoded_shapes(value: &[u8]) -> Vec<Vec<u8>> {
    // Text in JSON in JSON: each level escapes the previous one. Binary values do not occur in JSON.
    let text = std::str::from_utf8(value).ok().map(str::to_owned);
    let levels = successors(text, |inner| escape_json(inner).filter(|outer| outer != inner));
    let mut shapes: Vec<String> = levels.take(1 + MAX_ESCAPE_LAYERS).collect();
    shapes.extend([hex_digits(value, b"0123456789abcdef"), hex_digits(value, b"0123456789ABCDEF")]);
    for shift in 0..3 {
        let standard = base64_fragment(value, shift);
        shapes.push(standard.replace('+', "-").replace('/', "_"));
        shapes.push(standard);
    }
    shapes.into_iter().map(String::into_bytes).chain([value.to_owned()]).collect()
}

fn decode_percent(written: &str) -> String {
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        match code.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| written.to_owned())
}

fn escape_json(text: &str) -> Option<String> {
    let quoted = serde_json::to_string(text).ok()?;
    Some(quoted[1..quoted.len() - 1].to_owned())
}

fn hex_digits(bytes: &[u8], digits: &[u8; 16]) -> String {
    let both = |byte: &u8| [byte >> 4, byte & 15];
    bytes.iter().flat_map(both).map(|half| char::from(digits[usize::from(half)])).collect()
}

/// Returns the base64 characters of these bytes inside a longer input: `shift` bytes precede them, and characters that
/// depend on neighbouring bytes are omitted.
fn base64_fragment(bytes: &[u8], shift: usize) -> String {
    const BASE64_ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let at = |bit: usize| -> u8 {
        let (byte, offset) = (bit / 8, bit % 8);
        let byte = byte.checked_sub(shift).and_then(|index| bytes.get(index)).copied().unwrap_or(0);
        byte >> (7 - offset) & 1
    };
    let (first, end) = ((shift * 8).div_ceil(6), (shift + bytes.len()) * 8 / 6);
    let message_of = |index: usize| (0..6).fold(0, |code, bit| code << 1 | at(index * 6 + bit));
    (first..end).map(|index| char::from(BASE64_ALPHABET[usize::from(message_of(index))])).collect()
}
