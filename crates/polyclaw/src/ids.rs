//! IDs that sort by time: 48 bits of milliseconds and 80 random bits, as 26 lower-case base32 characters.

use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::port::{IdGenerator, WallClock};

/// Crockford's alphabet. It sorts like its values and has no look-alikes.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const RANDOM_BITS: u32 = 80;

pub struct SortableIds {
    clock: Arc<dyn WallClock>,
    last: Mutex<u128>,
}

impl SortableIds {
    pub fn new(clock: Arc<dyn WallClock>) -> Self {
        Self { clock, last: Mutex::new(0) }
    }
}

impl IdGenerator for SortableIds {
    fn next_id(&self) -> String {
        let millis = u128::from(self.clock.now().0.unsigned_abs()) & ((1 << 48) - 1);
        let random = u128::from_be_bytes(random_bytes()) >> (128 - RANDOM_BITS);
        let fresh = (millis << RANDOM_BITS) | random;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Within one millisecond, or after the clock went back, the next number keeps the order.
        *last = if fresh > *last { fresh } else { *last + 1 };
        encode_crockford(*last)
    }

    fn fresh_nonce(&self) -> String {
        encode_hex(&random_bytes::<16>())
    }
}

/// Returns cryptographically random bytes.
///
/// # Panics
/// If the system has no randomness: tokens would be guessable.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

fn encode_crockford(value: u128) -> String {
    let message_of = |n: u32| char::from(ALPHABET[((value >> (5 * n)) & 31) as usize]);
    (0..26).rev().map(message_of).collect()
}

#[cfg(test)]
mod tests {
    use polyclaw_domain::time::Millis;

    use super::*;

    struct Stopped;

    impl WallClock for Stopped {
        fn now(&self) -> Millis {
            Millis(1_700_000_000_000)
        }
    }

    #[test]
    fn ids_of_one_millisecond_keep_their_order() {
        let ids = SortableIds::new(Arc::new(Stopped));
        let made: Vec<String> = (0..1000).map(|_| ids.next_id()).collect();
        assert!(made.is_sorted() && made.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(made.iter().all(|id| id.len() == 26));
    }

    #[test]
    fn the_letters_sort_as_the_numbers_do() {
        assert_eq!(encode_crockford(0), "0".repeat(26));
        assert_eq!(encode_crockford(u128::MAX), format!("7{}", "z".repeat(25)));
        assert!(
            encode_crockford(31) < encode_crockford(32)
                && encode_crockford(1 << 80) > encode_crockford((1 << 80) - 1)
        );
    }
}
