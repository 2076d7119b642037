//! A tiny made-up model file for tests: valid structure in a few kilobytes, so that tests need no weights.

use super::generate::EmbeddedEngine;
use super::kernel::Kernel;

const WIDTH: usize = 64;
const INNER: usize = 96;
const LAYERS: usize = 2;

/// Builds a GGUF file from values and tensors.
#[derive(Default)]
pub struct GgufBuilder {
    values: Vec<Vec<u8>>,
    tensors: Vec<(String, Vec<u64>, Vec<u8>)>,
}

pub fn encode_text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl GgufBuilder {
    fn with_value(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.values.push([&encode_text(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub fn with_text(self, key: &str, value: &str) -> Self {
        let value = encode_text(value);
        self.with_value(key, 8, &value)
    }

    pub fn with_number(self, key: &str, value: u32) -> Self {
        self.with_value(key, 4, &value.to_le_bytes())
    }

    pub fn with_float(self, key: &str, value: f32) -> Self {
        self.with_value(key, 6, &value.to_le_bytes())
    }

    pub fn with_list(self, key: &str, kind: u32, items: &[Vec<u8>]) -> Self {
        let head = [&kind.to_le_bytes()[..], &(items.len() as u64).to_le_bytes()].concat();
        let list = [head, items.concat()].concat();
        self.with_value(key, 9, &list)
    }

    fn with_tensor(mut self, name: &str, sizes: &[usize], seed: usize, spread: f32) -> Self {
        let count: usize = sizes.iter().product();
        let number = |at: usize| {
            let mixed = (at * 7919 + seed * 104_729).wrapping_mul(2_654_435_761) >> 7;
            ((mixed % 2000) as f32 / 1000.0 - 1.0) * spread + if spread < 0.02 { 1.0 } else { 0.0 }
        };
        let bytes = (0..count).flat_map(|at| number(at).to_le_bytes()).collect();
        self.tensors.push((name.to_owned(), sizes.iter().map(|size| *size as u64).collect(), bytes));
        self
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let mut file = [&b"GGUF"[..], &3_u32.to_le_bytes()].concat();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.values.len() as u64).to_le_bytes());
        file.extend(self.values.concat());
        let mut offset = 0_u64;
        for (name, sizes, bytes) in &self.tensors {
            file.extend(encode_text(name));
            file.extend((sizes.len() as u32).to_le_bytes());
            file.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
            file.extend([0; 4]);
            file.extend(offset.to_le_bytes());
            offset += (bytes.len() as u64).next_multiple_of(32);
        }
        for (_, _, bytes) in self.tensors {
            file.resize(file.len().next_multiple_of(32), 0);
            file.extend(bytes);
        }
        file
    }
}

/// The vocabulary has every byte and a few words.
pub fn model_file() -> Vec<u8> {
    let mut words: Vec<String> = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"].map(str::to_owned).to_vec();
    let mut next = 256;
    for byte in 0..=255_u8 {
        let printable = matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
        let code = if printable { u32::from(byte) } else { next };
        next += u32::from(!printable);
        words.push(char::from_u32(code).unwrap().to_string());
    }
    let merges = ["h e", "l l", "he ll", "hell o", "Ġ w"];
    words.extend(merges.map(|merge| merge.replace(' ', "")));
    let kinds: Vec<_> =
        (0..words.len()).map(|at| if at < 3 { 3_i32 } else { 1 }.to_le_bytes().to_vec()).collect();
    let vocabulary = words.len();
    let mut file = GgufBuilder::default()
        .with_text("general.architecture", "llama")
        .with_number("llama.block_count", LAYERS as u32)
        .with_number("llama.embedding_length", WIDTH as u32)
        .with_number("llama.feed_forward_length", INNER as u32)
        .with_number("llama.attention.head_count", 2)
        .with_number("llama.attention.head_count_kv", 1)
        .with_float("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .with_float("llama.rope.freq_base", 10_000.0)
        .with_text("tokenizer.ggml.model", "gpt2")
        .with_text("tokenizer.ggml.pre", "smollm")
        .with_list(
            "tokenizer.ggml.tokens",
            8,
            &words.iter().map(|word| encode_text(word)).collect::<Vec<_>>(),
        )
        .with_list("tokenizer.ggml.token_type", 5, &kinds)
        .with_list("tokenizer.ggml.merges", 8, &merges.map(encode_text))
        .with_tensor("token_embd.weight", &[WIDTH, vocabulary], 1, 0.8)
        .with_tensor("output_norm.weight", &[WIDTH], 2, 0.01);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        file = file
            .with_tensor(&name("attn_norm"), &[WIDTH], 3 + layer, 0.01)
            .with_tensor(&name("attn_q"), &[WIDTH, WIDTH], 13 + layer, 0.3)
            .with_tensor(&name("attn_k"), &[WIDTH, WIDTH / 2], 23 + layer, 0.3)
            .with_tensor(&name("attn_v"), &[WIDTH, WIDTH / 2], 33 + layer, 0.3)
            .with_tensor(&name("attn_output"), &[WIDTH, WIDTH], 43 + layer, 0.3)
            .with_tensor(&name("ffn_norm"), &[WIDTH], 53 + layer, 0.01)
            .with_tensor(&name("ffn_gate"), &[WIDTH, INNER], 63 + layer, 0.3)
            .with_tensor(&name("ffn_up"), &[WIDTH, INNER], 73 + layer, 0.3)
            .with_tensor(&name("ffn_down"), &[INNER, WIDTH], 83 + layer, 0.3);
    }
    file.into_bytes()
}

pub fn synthetic_engine(kernel: Kernel) -> EmbeddedEngine {
    EmbeddedEngine::read(std::io::Cursor::new(model_file()), kernel).unwrap()
}
