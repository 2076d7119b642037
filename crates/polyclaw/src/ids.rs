//! IDs that sort by time: ULIDs in lower case.

use std::sync::{Arc, Mutex, PoisonError};

use polyclaw_domain::hex::encode_hex;
use polyclaw_domain::port::{IdGenerator, WallClock};
use ulid::Ulid;

pub struct SortableIds {
    clock: Arc<dyn WallClock>,
    last: Mutex<Ulid>,
}

impl SortableIds {
    pub fn new(clock: Arc<dyn WallClock>) -> Self {
        Self { clock, last: Mutex::new(Ulid::nil()) }
    }
}

impl IdGenerator for SortableIds {
    fn next_id(&self) -> String {
        let millis = self.clock.now().0.unsigned_abs();
        let fresh = Ulid::from_parts(millis, u128::from_be_bytes(random_bytes()));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        // Within one millisecond, or after the clock went back, the next number keeps the order.
        *last = if fresh > *last { fresh } else { successor(*last) };
        last.to_string().to_ascii_lowercase()
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

/// The next ULID. When the random bits of a millisecond are used up, it is the first of the next one.
fn successor(last: Ulid) -> Ulid {
    last.increment().unwrap_or_else(|_| Ulid::from_parts(last.timestamp_ms() + 1, 0))
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
    fn ids_of_one_millisecond_are_ordered_and_unique() {
        let ids = SortableIds::new(Arc::new(Stopped));
        let made: Vec<String> = (0..1000).map(|_| ids.next_id()).collect();
        assert!(made.is_sorted() && made.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(made.iter().all(|id| id.len() == 26));
    }

    #[test]
    fn successor_of_the_last_id_of_a_millisecond_is_in_the_next_one() {
        let next = successor(Ulid::from_parts(7, u128::MAX));
        assert_eq!((next.timestamp_ms(), next.random()), (8, 0));
    }
}
