//! The embedding model with its real weights, compared with the same network in plain f32.

use std::fs::File;
use std::io::Cursor;
use std::sync::LazyLock;

use super::embed::{EmbeddingModel, convert_model, open_model};
use super::encoder_file::tests::hashed;
use super::golden_tests::{GoldenTokens, model_file};
use super::kernel::Kernel;
use super::safetensors::Safetensors;
use super::wordpiece::WordPiece;

static CONVERTED_MODEL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let vocabulary = std::fs::read_to_string(model_file("minilm.vocab.txt")).unwrap();
    convert_model(File::open(model_file("minilm.safetensors")).unwrap(), &vocabulary).unwrap()
});

fn embedding_model(kernel: Kernel) -> EmbeddingModel {
    EmbeddingModel::read(Cursor::new(&CONVERTED_MODEL[..]), kernel).unwrap()
}

/// Rows of a sentence, its paraphrase, a sentence that shares its words, and a near copy with another meaning.
const PARAPHRASES: &str = include_str!("../../tests/golden/paraphrases.tsv");
/// The same without the last column, on other topics.
const NOTES: &str = include_str!("../../tests/golden/notes.tsv");
/// Like the notes. Distractors of the other sets use all words of the sentence; these share one word with it.
const MEMOS: &str = include_str!("../../tests/golden/memos.tsv");

fn tsv_rows<const COLUMNS: usize>(set: &str) -> Vec<[&str; COLUMNS]> {
    let rows: Vec<_> =
        set.lines().map(|line| line.split('\t').collect::<Vec<_>>().try_into().unwrap()).collect();
    assert_eq!(rows.len(), 50);
    rows
}

fn cosine_similarity(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns how many queries have their paraphrase among the `most` nearest.
fn count_in_nearest(queries: &[Vec<f32>], answers: &[Vec<f32>], others: &[Vec<f32>], most: usize) -> usize {
    let is_found = |(query, answer): &(&Vec<f32>, &Vec<f32>)| {
        let near = cosine_similarity(query, answer);
        let nearer = answers.iter().chain(others).filter(|other| cosine_similarity(query, other) > near);
        nearer.count() < most
    };
    queries.iter().zip(answers).filter(is_found).count()
}

/// Counts how often the paraphrase ranks first among the answers of all rows; then, with each further column added, how
/// often it ranks first and in the top three.
fn measure_recall<const COLUMNS: usize>(model: &EmbeddingModel, set: &str) -> Vec<usize> {
    let rows = tsv_rows::<COLUMNS>(set);
    let column = |at: usize| rows.iter().map(|row| model.embed_text(row[at])).collect::<Vec<_>>();
    let (queries, answers) = (column(0), column(1));
    let with = |others: &[Vec<f32>], most| count_in_nearest(&queries, &answers, others, most);
    let further = (2..COLUMNS).map(column).flat_map(|others| [with(&others, 1), with(&others, 3)]);
    std::iter::once(with(&[], 1)).chain(further).collect()
}

/// llama.cpp finds exactly as many with the same weights in 32 bits, so the misses are the model's.
#[test]
fn paraphrases_are_found_among_distractors() {
    let model = embedding_model(Kernel::detect());
    let (first, second) = (measure_recall::<4>(&model, PARAPHRASES), measure_recall::<3>(&model, NOTES));
    let third = measure_recall::<3>(&model, MEMOS);
    println!("of 50, alone, with distractors, with near copies: {first:?}, {second:?} and {third:?}");
    let all = |found: &[usize], least: &[usize]| found.iter().zip(least).all(|(found, least)| found >= least);
    assert!(all(&first, &[48, 30, 49, 23, 48]) && all(&second, &[47, 30, 49]), "{first:?} and {second:?}");
    assert!(all(&third, &[49, 42, 49]), "{third:?}");
}

#[test]
fn wordpiece_tokens_match_reference_tokenizer() {
    let golden: Vec<GoldenTokens> =
        serde_json::from_str(include_str!("../../tests/golden/pieces.json")).unwrap();
    assert!(golden.len() >= 200);
    let words = WordPiece::new(&std::fs::read_to_string(model_file("minilm.vocab.txt")).unwrap()).unwrap();
    for GoldenTokens { text, tokens } in golden {
        assert_eq!(words.encode(&text, 4096), tokens, "{text:?}");
    }
}

#[test]
fn empty_text_embeds_to_zero_and_long_text_is_cut() {
    let model = embedding_model(Kernel::detect());
    for empty in ["", " \n\t", "\u{0}\u{200b}"] {
        assert!(model.embed_text(empty).iter().all(|value| *value == 0.0));
    }
    let long = model.embed_text(&"The harbour is quiet before dawn. ".repeat(2000));
    assert!(long.len() == 384 && (cosine_similarity(&long, &long) - 1.0).abs() < 1e-4);
}

#[test]
fn unknown_script_embeds_to_zero_vector() {
    let model = embedding_model(Kernel::detect());
    for foreign in [
        "我的猫叫小白，喜欢睡觉",
        "明天上午开会讨论预算",
        "🎉🍰🥳",
        "나는 매일 아침 수영을 한다",
        "Я живу в Берлине",
        "أحب القهوة",
        "ฉันชอบกาแฟ",
        "東京タワーに行きました",
    ] {
        assert!(model.embed_text(foreign).iter().all(|value| *value == 0.0), "{foreign}");
    }
    let (plain, signed) = (model.embed_text("The cake is ready"), model.embed_text("The cake is ready 🎂"));
    assert!(cosine_similarity(&plain, &signed) > 0.5, "{}", cosine_similarity(&plain, &signed));
    let german = model.embed_text("Die Straße ist lang");
    assert!(cosine_similarity(&german, &german) > 0.99, "Latin letters are read");
}

#[test]
fn kernels_agree_with_reference_encoder() {
    let (fast, plain) = (embedding_model(Kernel::detect()), embedding_model(Kernel::Scalar));
    let mut reference = ReferenceEncoder::open();
    for [query, answer, _] in tsv_rows(NOTES).into_iter().step_by(7) {
        for text in [query, answer] {
            let (fast, exact) = (fast.embed_text(text), reference.embed(text));
            assert!(
                cosine_similarity(&fast, &exact) >= 0.999,
                "{text}: {}",
                cosine_similarity(&fast, &exact)
            );
            // A different last bit changes a rounding, and that changes others.
            assert!(cosine_similarity(&fast, &plain.embed_text(text)) >= 0.999, "{text}");
        }
    }
}

#[test]
fn converted_model_is_small_and_changes_are_detected() {
    assert!((23_000_000..26_000_000).contains(&CONVERTED_MODEL.len()), "{} bytes", CONVERTED_MODEL.len());
    let open = |bytes: &[u8]| {
        EmbeddingModel::read(Cursor::new(bytes.to_vec()), Kernel::Scalar).map(|_| ()).unwrap_err().to_string()
    };
    let mut changed = CONVERTED_MODEL.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert!(open(&changed).contains("checksum does not match"));
    assert!(open(&CONVERTED_MODEL[..1_000_000]).contains("checksum does not match"));
    changed[8] = 9;
    assert!(open(&changed).contains("version is 9"));
}

/// The content is well-formed and its hash matches. Only the pinned hash distinguishes it from the model.
#[test]
fn model_with_other_weights_is_refused() {
    let folder = std::env::temp_dir().join(format!("polyclaw-converted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("minilm.embed");
    std::fs::write(&file, &CONVERTED_MODEL[..]).unwrap();
    assert!(open_model(&file).is_ok());
    let mut body = CONVERTED_MODEL[44..].to_vec();
    *body.last_mut().unwrap() ^= 1;
    assert!(EmbeddingModel::read(Cursor::new(hashed(&body)), Kernel::Scalar).is_ok());
    std::fs::write(&file, hashed(&body)).unwrap();
    let damaged = open_model(&file).err().unwrap().to_string();
    assert!(damaged.ends_with("its SHA-256 does not match the pinned one"), "{damaged}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The network as its authors describe it: slow, exact and without the kernels.
struct ReferenceEncoder {
    weights: Safetensors<File>,
    words: WordPiece,
}

const WIDTH: usize = 384;

impl ReferenceEncoder {
    fn open() -> Self {
        let words =
            WordPiece::new(&std::fs::read_to_string(model_file("minilm.vocab.txt")).unwrap()).unwrap();
        Self {
            weights: Safetensors::open(File::open(model_file("minilm.safetensors")).unwrap()).unwrap(),
            words,
        }
    }

    fn dense(&mut self, name: &str, rows: &[Vec<f64>], out: usize) -> Vec<Vec<f64>> {
        let weight = self.weights.read_floats(&format!("{name}.weight"), &[out, rows[0].len()]).unwrap();
        let bias = self.weights.read_floats(&format!("{name}.bias"), &[out]).unwrap();
        let times = |row: &Vec<f64>| {
            let line = |(weights, bias): (&[f32], &f32)| {
                f64::from(*bias) + weights.iter().zip(row).map(|(w, x)| f64::from(*w) * x).sum::<f64>()
            };
            weight.chunks_exact(row.len()).zip(&bias).map(line).collect()
        };
        rows.iter().map(times).collect()
    }

    fn norm(&mut self, name: &str, rows: &mut [Vec<f64>]) {
        let weight = self.weights.read_floats(&format!("{name}.weight"), &[WIDTH]).unwrap();
        let bias = self.weights.read_floats(&format!("{name}.bias"), &[WIDTH]).unwrap();
        for row in rows {
            let mean = row.iter().sum::<f64>() / WIDTH as f64;
            let spread = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / WIDTH as f64;
            for (at, x) in row.iter_mut().enumerate() {
                *x = (*x - mean) / (spread + 1e-12).sqrt() * f64::from(weight[at]) + f64::from(bias[at]);
            }
        }
    }

    fn begin(&mut self, text: &str) -> Vec<Vec<f64>> {
        let tokens = self.words.encode(text, 256);
        let words = self.weights.read_floats("embeddings.word_embeddings.weight", &[30_522, WIDTH]).unwrap();
        let places =
            self.weights.read_floats("embeddings.position_embeddings.weight", &[512, WIDTH]).unwrap();
        let kinds = self.weights.read_floats("embeddings.token_type_embeddings.weight", &[2, WIDTH]).unwrap();
        let row = |(position, token): (usize, &u32)| {
            let part = |from: &[f32], at: usize, x: usize| f64::from(from[at * WIDTH + x]);
            let sum = |x| part(&words, *token as usize, x) + part(&places, position, x) + part(&kinds, 0, x);
            (0..WIDTH).map(sum).collect()
        };
        tokens.iter().enumerate().map(row).collect()
    }

    fn attend(&mut self, name: &str, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let [query, key, value] = ["query", "key", "value"]
            .map(|part| self.dense(&format!("{name}.attention.self.{part}"), rows, WIDTH));
        let mut mixed = vec![vec![0.0; WIDTH]; rows.len()];
        for head in (0..WIDTH).step_by(32) {
            for (query, mixed) in query.iter().zip(&mut mixed) {
                let score = |key: &Vec<f64>| {
                    let dot: f64 = (head..head + 32).map(|x| query[x] * key[x]).sum();
                    (dot / 32_f64.sqrt()).exp()
                };
                let scores: Vec<f64> = key.iter().map(score).collect();
                let total: f64 = scores.iter().sum();
                for (score, value) in scores.iter().zip(&value) {
                    (head..head + 32).for_each(|x| mixed[x] += score / total * value[x]);
                }
            }
        }
        self.dense(&format!("{name}.attention.output.dense"), &mixed, WIDTH)
    }

    fn embed(&mut self, text: &str) -> Vec<f32> {
        let add = |rows: &mut [Vec<f64>], more: Vec<Vec<f64>>| {
            rows.iter_mut().flatten().zip(more.into_iter().flatten()).for_each(|(x, more)| *x += more);
        };
        let mut rows = self.begin(text);
        self.norm("embeddings.LayerNorm", &mut rows);
        for layer in 0..6 {
            let name = format!("encoder.layer.{layer}");
            let more = self.attend(&name, &rows);
            add(&mut rows, more);
            self.norm(&format!("{name}.attention.output.LayerNorm"), &mut rows);
            let mut inner = self.dense(&format!("{name}.intermediate.dense"), &rows, 1536);
            inner.iter_mut().flatten().for_each(|x| *x *= 0.5 * (1.0 + erf(*x / 2_f64.sqrt())));
            let more = self.dense(&format!("{name}.output.dense"), &inner, WIDTH);
            add(&mut rows, more);
            self.norm(&format!("{name}.output.LayerNorm"), &mut rows);
        }
        let mean: Vec<f64> = (0..WIDTH).map(|x| rows.iter().map(|row| row[x]).sum()).collect();
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| (x / length) as f32).collect()
    }
}

/// The power series of the error function. Beyond 6 it is 1 in all digits.
fn erf(x: f64) -> f64 {
    if x.abs() > 6.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}
