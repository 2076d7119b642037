//! A small mutation fuzzer. A case is a seed, so `POLYCLAW_SEED` repeats a failing case.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub use fastrand::Rng;

/// Number of cases to run instead of the default.
pub const CASES_VARIABLE: &str = "POLYCLAW_FUZZ_CASES";
/// Seed of the only case to run.
pub const SEED_VARIABLE: &str = "POLYCLAW_SEED";

/// Maximum length of a case. Larger input would not find unbounded behavior.
const MAX_CASE_LEN: usize = 64 * 1024;

/// Bytes with a special meaning in some format.
const DICTIONARY: &[&str] = &[
    "\0",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
    "\r\n\r\n",
    "%",
    "%00",
    "../",
    "$",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "\u{feff}",
    "\u{202e}",
    "é",
    "\u{1f980}",
    "data: ",
    "[DONE]",
    "[[",
    "'''",
    "#",
];

/// Returns the seeds to run: the requested one, or the default number.
fn seeds(usual: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    number(SEED_VARIABLE)
        .map_or_else(|| (0..number(CASES_VARIABLE).unwrap_or(usual)).collect(), |seed| vec![seed])
}

/// Returns the cases of a target with their seeds.
pub fn cases(corpus: &[&str], usual: u64) -> Vec<(u64, Vec<u8>)> {
    seeds(usual).into_iter().map(|seed| (seed, make_case(corpus, seed))).collect()
}

/// Runs a check on each case and reports the seed that fails.
pub fn run_cases(target: &str, corpus: &[&str], usual: u64, check: impl Fn(&[u8])) {
    for (seed, bytes) in cases(corpus, usual) {
        let text_of = || format!(": {:?}", String::from_utf8_lossy(&bytes));
        run_case(target, seed, || check(&bytes), text_of);
    }
}

/// Runs cases that the target generates itself, such as binary or very large ones.
pub fn run_generated_cases(target: &str, usual: u64, check: impl Fn(&mut Rng)) {
    for seed in seeds(usual) {
        run_case(target, seed, || check(&mut Rng::with_seed(seed)), String::new);
    }
}

fn run_case(target: &str, seed: u64, check: impl FnOnce(), text_of: impl Fn() -> String) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(check)) {
        eprintln!("{target}: {SEED_VARIABLE}={seed} repeats it{}", text_of());
        resume_unwind(panic);
    }
}

/// Mutates one corpus entry a few times.
pub fn make_case(corpus: &[&str], seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    let mut bytes = rng.choice(corpus).map_or_else(Vec::new, |text| text.as_bytes().to_vec());
    for _ in 0..rng.usize(0..8) {
        mutate_case(&mut bytes, corpus, &mut rng);
    }
    bytes.truncate(MAX_CASE_LEN);
    bytes
}

fn mutate_case(bytes: &mut Vec<u8>, corpus: &[&str], rng: &mut Rng) {
    let (from, to) = (rng.usize(..=bytes.len()), rng.usize(..=bytes.len()));
    let (from, to) = (from.min(to), from.max(to));
    match rng.u8(0..6) {
        0 if from < bytes.len() => bytes[from] ^= 1 << rng.u8(0..8),
        1 => drop(bytes.drain(from..to.min(from + 16))),
        2 => {
            let word = rng.choice(DICTIONARY).map_or(&b""[..], |word| word.as_bytes());
            bytes.splice(from..from, word.iter().copied());
        }
        3 => {
            let part = bytes[from..to].to_vec();
            let times = rng.usize(1..=if part.len() < 8 { 200 } else { 3 });
            bytes.splice(to..to, part.repeat(times));
        }
        4 => {
            let other = rng.choice(corpus).map_or(&b""[..], |text| text.as_bytes());
            let cut = rng.usize(..=other.len());
            bytes.splice(from.., other[cut..].iter().copied());
        }
        _ => bytes.truncate(to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fuzz_cases_repeat_by_seed_and_differ() {
        let corpus = ["agent:main:web:dm:x", "{\"a\": [1, 2]}"];
        let made: Vec<Vec<u8>> = (0..200).map(|seed| make_case(&corpus, seed)).collect();
        assert!((0..200).all(|seed| made[seed] == make_case(&corpus, seed as u64)));
        let different: std::collections::HashSet<_> = made.iter().collect();
        assert!(different.len() > 120, "{}", different.len());
        assert!(made.iter().all(|bytes| bytes.len() <= MAX_CASE_LEN));
    }

    #[test]
    fn failing_fuzz_case_panics() {
        let broken = catch_unwind(|| run_cases("demo", &["ab"], 50, |bytes| assert!(bytes.len() < 3)));
        assert!(broken.is_err());
        assert!(catch_unwind(|| run_generated_cases("demo", 50, |rng| assert!(rng.u8(..) < 200))).is_err());
    }
}
