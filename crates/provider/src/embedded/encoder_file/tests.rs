//! A tiny made-up network, and malicious files.

use std::io::Cursor;

use serde_json::{Map, json};

use super::super::kernel::Kernel;
use super::*;

pub const TINY: EncoderShape =
    EncoderShape { layers: 1, width: 32, inner: 64, heads: 1, vocabulary: 7, positions: 4 };
pub const WORDS: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nship\nsea\n##s\n";

/// A file in the published format: every tensor of the tiny network in sequence.
pub fn published() -> Vec<u8> {
    let (width, inner) = (TINY.width, TINY.inner);
    let mut tensors: Vec<(String, Vec<usize>)> = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![TINY.vocabulary, width]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![TINY.positions, width]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, width]),
    ];
    let mut pair = |name: &str, weight: Vec<usize>| {
        tensors.push((format!("{name}.bias"), vec![weight[0]]));
        tensors.push((format!("{name}.weight"), weight));
    };
    pair("embeddings.LayerNorm", vec![width]);
    for part in
        ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
    {
        pair(&format!("encoder.layer.0.{part}"), vec![width, width]);
    }
    pair("encoder.layer.0.attention.output.LayerNorm", vec![width]);
    pair("encoder.layer.0.intermediate.dense", vec![inner, width]);
    pair("encoder.layer.0.output.dense", vec![width, inner]);
    pair("encoder.layer.0.output.LayerNorm", vec![width]);
    let (mut table, mut data) = (Map::new(), Vec::<u8>::new());
    for (name, shape) in tensors {
        let start = data.len();
        let count: usize = shape.iter().product();
        data.extend((0..count).flat_map(|at| (((at * 37 + start) % 200) as f32 / 100.0 - 1.0).to_le_bytes()));
        table.insert(name, json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] }));
    }
    file(&json!(table).to_string(), &data)
}

fn file(table: &str, data: &[u8]) -> Vec<u8> {
    [&(table.len() as u64).to_le_bytes()[..], table.as_bytes(), data].concat()
}

/// A file in our format with this content and its hash.
pub fn hashed(body: &[u8]) -> Vec<u8> {
    [&FILE_MAGIC[..], &FILE_VERSION.to_le_bytes(), &Sha256::digest(body), body].concat()
}

fn converted(bytes: &[u8]) -> Result<Vec<u8>, CorruptModelFile> {
    convert_encoder(Cursor::new(bytes), WORDS, TINY)
}

#[test]
fn converted_file_is_read_back_and_embeds() {
    let (encoder, words) = read_encoder(Cursor::new(converted(&published()).unwrap()), TINY).unwrap();
    for kernel in [Kernel::Scalar, Kernel::detect()] {
        let vector = encoder.embed(kernel, &words.encode("Ships sea", 4));
        let length: f32 = vector.iter().map(|value| value * value).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
        assert_eq!(encoder.embed(kernel, &[]), [0.0; 32]);
        // Out-of-range ids and positions are clamped.
        assert!(encoder.embed(kernel, &[9999; 9]).iter().all(|value| value.is_finite()));
    }
}

#[test]
fn damaged_published_files_never_panic() {
    let good = published();
    for end in (0..good.len()).step_by(31) {
        assert!(converted(&good[..end]).is_err(), "cut at {end}");
    }
    let table = 8 + u64::from_le_bytes(good[..8].try_into().unwrap()) as usize;
    for at in 0..table {
        for value in [0, b'9', b'"', 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let _ = converted(&bad);
        }
    }
}

#[test]
fn inconsistent_tensor_tables_are_refused() {
    let entry = |shape: &str, offsets: &str| {
        let name = "embeddings.word_embeddings.weight";
        file(
            &format!(
                "{{\"{name}\": {{\"dtype\": \"F32\", \"shape\": {shape}, \"data_offsets\": {offsets}}}}}"
            ),
            &[0; 896],
        )
    };
    for bad in [
        entry("[7, 32]", "[896, 0]"),
        entry("[7, 32]", "[0, 18446744073709551615]"),
        entry("[7, 32]", "[18446744073709551000, 18446744073709551615]"),
        entry("[4294967296, 4294967296]", "[0, 896]"),
        entry("[7, 32, -1]", "[0, 896]"),
        file(&"[".repeat(100_000), &[]),
        [&u64::MAX.to_le_bytes()[..], b"{}"].concat(),
    ] {
        assert!(converted(&bad).is_err());
    }
}

/// The hash of the file is right and its content is not.
#[test]
fn converted_file_with_wrong_shape_is_refused() {
    let good = converted(&published()).unwrap();
    for at in 0..24 {
        let mut body = good[44..].to_vec();
        body[at] ^= 0x20;
        assert!(read_encoder(Cursor::new(hashed(&body)), TINY).is_err(), "byte {at}");
    }
    for end in 0..44 {
        assert!(read_encoder(Cursor::new(&good[..end]), TINY).is_err());
    }
    assert!(read_encoder(Cursor::new(good), MINILM_SHAPE).is_err(), "a whole network of another shape");
}

#[test]
fn overflowing_weights_embed_to_zero_vector() {
    let mut body = converted(&published()).unwrap()[44..].to_vec();
    // The last two vectors belong to the last layer norm.
    let norm = body.len() - 2 * 4 * TINY.width;
    body[norm..].chunks_exact_mut(4).for_each(|value| value.copy_from_slice(&f32::MAX.to_le_bytes()));
    let (encoder, words) = read_encoder(Cursor::new(hashed(&body)), TINY).unwrap();
    for kernel in [Kernel::Scalar, Kernel::detect()] {
        assert_eq!(encoder.embed(kernel, &words.encode("Ships sea", 4)), [0.0; 32]);
    }
}
