//! Fuzzing of model files: no panic, no unbounded memory, no vector with NaN. `make fuzz` runs more cases;
//! `POLYCLAW_SEED` repeats one.

use std::io::Cursor;

use polyclaw_testkit::fuzz::{self, Rng};
use serde_json::json;

use super::encoder_file::tests::{TINY, WORDS, hashed, published};
use super::encoder_file::{convert_encoder, read_encoder};
use super::generate::{EmbeddedEngine, GenerationRequest, TemplateMessage};
use super::gguf::Gguf;
use super::kernel::Kernel;
use super::synthetic::{self, GgufBuilder};
use super::tokenizer::Tokenizer;
use super::wordpiece::WordPiece;

/// Values at the limits of lengths, counts and sizes.
const EDGE_VALUES: [u64; 18] = [
    0,
    1,
    2,
    7,
    8,
    31,
    32,
    33,
    255,
    256,
    65_535,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 63,
    u64::MAX,
    0x7ff8_0000_0000_0000,
];
const EXTREME_FLOATS: [f32; 7] = [f32::NAN, f32::INFINITY, f32::MAX, f32::MIN, 1e30, 1e-45, 0.0];
/// Address space that a target may use, in kilobytes. Files use some hundred; the rest is for parallel tests in the
/// same process and is still below what the larger edge values would allocate.
const MAX_GROWTH_KB: u64 = 3 << 20;

/// Returns the file with a few mutations, mostly in its first `head` bytes, which describe the rest.
fn mutate_file(good: &[u8], head: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..rng.usize(1..5) {
        let end = if rng.u8(..8) > 0 { head } else { bytes.len() };
        let at = rng.usize(..end.min(bytes.len()).max(1));
        mutate_bytes(&mut bytes, at, rng);
    }
    if rng.u8(..20) == 0 {
        bytes.truncate(rng.usize(..=bytes.len()));
    }
    bytes
}

fn mutate_bytes(bytes: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let edge = EDGE_VALUES[rng.usize(..EDGE_VALUES.len())].to_le_bytes();
    let extreme = EXTREME_FLOATS[rng.usize(..EXTREME_FLOATS.len())].to_le_bytes();
    let end = bytes.len().min(at + rng.usize(..200));
    match rng.u8(..7) {
        0 => overwrite(bytes, at, &[rng.u8(..)]),
        1 => overwrite(bytes, at, &edge),
        2 => overwrite(bytes, at, &edge[..4]),
        3 => overwrite(bytes, at, &extreme),
        4 => drop(bytes.drain(at..end)),
        5 => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
        _ => overwrite_weights(bytes, extreme, rng),
    }
}

fn overwrite(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes.iter_mut().skip(at).zip(with).for_each(|(byte, with)| *byte = *with);
}

/// Overwrites a range of weights, which are in the second half, with an extreme value.
fn overwrite_weights(bytes: &mut [u8], extreme: [u8; 4], rng: &mut Rng) {
    let half = bytes.len() / 2;
    let weights = bytes[half..].chunks_exact_mut(4);
    let (from, count) = (rng.usize(..=weights.len()), rng.usize(..20_000));
    weights.skip(from).take(count).for_each(|weight| weight.copy_from_slice(&extreme));
}

fn random_kernel(rng: &mut Rng) -> Kernel {
    if rng.bool() { Kernel::Scalar } else { Kernel::detect() }
}

/// Returns the peak address space of this process in kilobytes. It includes memory that was allocated and never
/// touched.
fn peak_memory_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn fuzz_each(target: &str, usual: u64, check: impl Fn(&mut Rng)) {
    let before = peak_memory_kb();
    fuzz::run_generated_cases(target, usual, check);
    let grown = peak_memory_kb() - before;
    assert!(grown < MAX_GROWTH_KB, "{target}: {grown} kB more");
}

fn generate_something(mut engine: EmbeddedEngine) {
    let schema = json!({ "type": "object", "required": ["city"],
        "properties": { "city": { "type": "string" }, "n": { "type": "integer" } } });
    for (schema, temperature) in [(None, 0.0), (Some(schema), 1.0)] {
        let lines = vec![TemplateMessage { role: "user", text: "hello wörld 12 🦀".to_owned() }];
        let ask = GenerationRequest { lines, schema, temperature, seed: 1, most: 12 };
        let _ = engine.generate(&ask, &mut |_| {}, &|| true);
    }
    engine.mean_surprise("hello");
}

#[test]
fn gguf_files() {
    let good = synthetic::model_file();
    fuzz_each("GGUF files", 1_000, |rng| {
        let bad = mutate_file(&good, 14_000, rng);
        match EmbeddedEngine::read(Cursor::new(bad), random_kernel(rng)) {
            Ok(engine) => generate_something(engine),
            Err(damaged) => assert!(damaged.to_string().len() > 40, "a refusal says why: {damaged}"),
        }
    });
}

#[test]
fn safetensors_files() {
    let good = published();
    let head = 8 + u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    fuzz_each("safetensors files", 5_000, |rng| {
        if let Ok(file) = convert_encoder(Cursor::new(mutate_file(&good, head, rng)), WORDS, TINY) {
            let (encoder, words) = read_encoder(Cursor::new(file), TINY).expect("what was converted is read");
            let vector = encoder.embed(random_kernel(rng), &words.encode("Ships sea", 4));
            assert!(vector.iter().all(|value| value.is_finite()), "{vector:?}");
        }
    });
}

/// The hash is valid: anyone who changes the content can compute a new one.
#[test]
fn embedding_files() {
    let good = convert_encoder(Cursor::new(published()), WORDS, TINY).unwrap();
    fuzz_each("embedding files", 5_000, |rng| {
        let bad = hashed(&mutate_file(&good[44..], 120, rng));
        if let Ok((encoder, words)) = read_encoder(Cursor::new(bad), TINY) {
            let vector = encoder.embed(random_kernel(rng), &words.encode("Ships sea [CLS] x", 8));
            assert!(vector.iter().all(|value| value.is_finite()), "{vector:?}");
        }
    });
}

const TOKENIZER_PIECES: [&str; 18] = [
    "a",
    "b",
    "aa",
    "ab",
    "h",
    "e",
    "he",
    " ",
    "",
    "Ġ",
    "Ġa",
    "é",
    "\0",
    "日",
    "<|im_end|>",
    "he he",
    "ĊĊ",
    "\u{10ffff}",
];

fn random_piece(most: usize, rng: &mut Rng) -> &'static str {
    TOKENIZER_PIECES[rng.usize(..most)]
}

/// A well-formed file with random tokenizer lists.
fn random_tokenizer_file(rng: &mut Rng) -> Vec<u8> {
    let count = rng.usize(..300);
    let word = |rng: &mut Rng| {
        synthetic::encode_text(&(0..rng.u8(1..4)).map(|_| random_piece(18, rng)).collect::<String>())
    };
    let words: Vec<_> = (0..count).map(|_| word(rng)).collect();
    let kind = |rng: &mut Rng| [1_i32, 1, 1, 1, 3, 0, -1][rng.usize(..7)].to_le_bytes().to_vec();
    let kinds: Vec<Vec<u8>> = (0..count).map(|_| kind(rng)).collect();
    let merge = |rng: &mut Rng| {
        let space = if rng.u8(..6) > 0 { " " } else { "" };
        synthetic::encode_text(&format!("{}{space}{}", random_piece(8, rng), random_piece(8, rng)))
    };
    let merges: Vec<_> = (0..rng.usize(..6)).map(|_| merge(rng)).collect();
    GgufBuilder::default()
        .with_text("tokenizer.ggml.model", "gpt2")
        .with_text("tokenizer.ggml.pre", "smollm")
        .with_list("tokenizer.ggml.tokens", 8, &words)
        .with_list("tokenizer.ggml.token_type", 5, &kinds)
        .with_list("tokenizer.ggml.merges", 8, &merges)
        .into_bytes()
}

#[test]
fn malformed_tokenizer_lists_never_panic() {
    fuzz_each("lists of tokenizers", 5_000, |rng| {
        let file = Gguf::open(Cursor::new(random_tokenizer_file(rng))).unwrap();
        if let Ok(tokenizer) = Tokenizer::read(&file) {
            let tokens = tokenizer.encode("he aa ab 日 <|im_end|>  abab\n\n12'sé");
            assert!(tokens.iter().all(|token| (*token as usize) < tokenizer.len()), "{tokens:?}");
        }
    });
}

#[test]
fn vocabularies() {
    fuzz_each("vocabularies", 5_000, |rng| {
        let vocabulary =
            String::from_utf8_lossy(&mutate_file(WORDS.as_bytes(), WORDS.len(), rng)).into_owned();
        if let Ok(words) = WordPiece::new(&vocabulary) {
            assert!(words.encode("Ships sea [CLS] 日 x", 8).len() <= 8);
        }
    });
}
