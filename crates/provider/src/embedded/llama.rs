//! The Llama network: takes a sequence of tokens and scores each token of the vocabulary as the next one.

use std::io::{Read, Seek};

use super::CorruptModelFile;
use super::cache::KvCache;
use super::gguf::Gguf;
use super::kernel::{Activations, HeadSlice, Kernel};
use super::matrix::{BLOCK, QuantMatrix, TensorFormat, decode_floats};
use super::tokenizer::VocabToken;

/// Tokens processed per batch: enough to share the work, few enough to react quickly to a cancel.
pub(super) const PREFILL_BATCH_SIZE: usize = 32;

#[derive(Clone, Debug)]
struct LlamaShape {
    width: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    /// Numbers per head.
    head: usize,
    vocabulary: usize,
    epsilon: f32,
    base: f32,
}

struct LlamaLayer {
    attention_norm: Vec<f32>,
    query: QuantMatrix,
    key: QuantMatrix,
    value: QuantMatrix,
    output: QuantMatrix,
    inner_norm: Vec<f32>,
    gate: QuantMatrix,
    up: QuantMatrix,
    down: QuantMatrix,
}

pub(super) struct Llama {
    shape: LlamaShape,
    kernel: Kernel,
    embedding: QuantMatrix,
    layers: Vec<LlamaLayer>,
    norm: Vec<f32>,
    /// `None` if the embedding matrix is also the output matrix.
    unembedding: Option<QuantMatrix>,
}

/// Buffers for one batch, reused between layers and batches.
#[derive(Default)]
struct LlamaScratch {
    stream: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mixed: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    scores: Vec<f32>,
    /// Rotary cosines and sines of each token's position.
    turns: Vec<(f32, f32)>,
    inputs: Activations,
}

impl Llama {
    pub fn read<R: Read + Seek>(
        file: &mut Gguf<R>,
        kernel: Kernel,
        vocabulary: usize,
    ) -> Result<Self, CorruptModelFile> {
        let (shape, layers) = LlamaShape::read(file, vocabulary)?;
        let (width, inner, kv) = (shape.width, shape.inner, shape.kv_heads * shape.head);
        let embedding = read_matrix(file, "token_embd.weight", vocabulary, width)?;
        let mut read = Vec::new();
        for index in 0..layers {
            let name = |part: &str| format!("blk.{index}.{part}.weight");
            read.push(LlamaLayer {
                attention_norm: read_vector(file, &name("attn_norm"), width)?,
                query: read_matrix(file, &name("attn_q"), width, width)?,
                key: read_matrix(file, &name("attn_k"), kv, width)?,
                value: read_matrix(file, &name("attn_v"), kv, width)?,
                output: read_matrix(file, &name("attn_output"), width, width)?,
                inner_norm: read_vector(file, &name("ffn_norm"), width)?,
                gate: read_matrix(file, &name("ffn_gate"), inner, width)?,
                up: read_matrix(file, &name("ffn_up"), inner, width)?,
                down: read_matrix(file, &name("ffn_down"), width, inner)?,
            });
        }
        let norm = read_vector(file, "output_norm.weight", width)?;
        let own =
            file.has_tensor("output.weight").then(|| read_matrix(file, "output.weight", vocabulary, width));
        Ok(Self { shape, kernel, embedding, layers: read, norm, unembedding: own.transpose()? })
    }

    pub fn new_cache(&self) -> KvCache {
        KvCache::new(self.layers.len())
    }

    pub fn kernel_name(&self) -> &'static str {
        self.kernel.name()
    }

    /// Processes more tokens and returns the scores after the last one. Checks `go_on` between batches; if it returns
    /// false, returns `None`, and the cache holds the tokens processed so far.
    pub fn extend(
        &self,
        cache: &mut KvCache,
        tokens: &[VocabToken],
        go_on: &dyn Fn() -> bool,
    ) -> Option<Vec<f32>> {
        let mut room = LlamaScratch::default();
        for batch in tokens.chunks(PREFILL_BATCH_SIZE) {
            if !go_on() {
                return None;
            }
            self.forward_pass(cache, batch, &mut room);
        }
        let last = room.stream.len().checked_sub(self.shape.width)?;
        Some(self.output_scores(&room.stream[last..], &mut room.inputs))
    }

    /// Like [`Self::extend`], but returns the scores after each token, for measuring how well a text is predicted.
    pub fn extend_each(&self, cache: &mut KvCache, tokens: &[VocabToken]) -> Vec<Vec<f32>> {
        let (mut room, mut all) = (LlamaScratch::default(), Vec::new());
        for batch in tokens.chunks(PREFILL_BATCH_SIZE) {
            self.forward_pass(cache, batch, &mut room);
            let stream = std::mem::take(&mut room.stream);
            all.extend(
                stream.chunks_exact(self.shape.width).map(|row| self.output_scores(row, &mut room.inputs)),
            );
        }
        all
    }

    fn output_scores(&self, stream: &[f32], inputs: &mut Activations) -> Vec<f32> {
        let mut normed = Vec::new();
        self.rms_normalize(stream, &self.norm, &mut normed);
        inputs.quantize_rows(self.kernel, &normed, self.shape.width);
        let mut scores = vec![0.0; self.shape.vocabulary];
        self.kernel.multiply(self.unembedding.as_ref().unwrap_or(&self.embedding), inputs, &mut scores);
        scores
    }

    fn forward_pass(&self, cache: &mut KvCache, tokens: &[VocabToken], room: &mut LlamaScratch) {
        let (shape, first) = (&self.shape, cache.len());
        room.stream.resize(tokens.len() * shape.width, 0.0);
        for (token, out) in tokens.iter().zip(room.stream.chunks_exact_mut(shape.width)) {
            // The tokenizer never produces an id beyond the vocabulary; it would be treated as the first token.
            let row = if (*token as usize) < shape.vocabulary { *token as usize } else { 0 };
            self.embedding.unpack_row(row, out);
        }
        shape.rope_angles(first, tokens.len(), &mut room.turns);
        for (index, layer) in self.layers.iter().enumerate() {
            self.apply_attention(layer, cache.layer_mut(index), first, room);
            self.apply_feed_forward(layer, room);
        }
        cache.append_tokens(tokens);
    }

    fn apply_attention(
        &self,
        layer: &LlamaLayer,
        cache: &mut super::cache::KvLayer,
        first: usize,
        room: &mut LlamaScratch,
    ) {
        let (shape, kernel) = (&self.shape, self.kernel);
        let kv = shape.kv_heads * shape.head;
        self.rms_normalize(&room.stream, &layer.attention_norm, &mut room.normed);
        room.inputs.quantize_rows(kernel, &room.normed, shape.width);
        multiply_matrix(kernel, &layer.query, &room.inputs, &mut room.query);
        multiply_matrix(kernel, &layer.key, &room.inputs, &mut room.key);
        multiply_matrix(kernel, &layer.value, &room.inputs, &mut room.value);
        shape.apply_rope(&mut room.query, &room.turns, shape.heads);
        shape.apply_rope(&mut room.key, &room.turns, shape.kv_heads);
        let (start, more) = (first * kv, room.key.len());
        cache.keys.resize(start + more, 0);
        cache.values.resize(start + more, 0);
        kernel.halve(&room.key, &mut cache.keys[start..]);
        kernel.halve(&room.value, &mut cache.values[start..]);

        let scale = 1.0 / (shape.head as f32).sqrt();
        room.query.iter_mut().for_each(|value| *value *= scale);
        room.mixed.resize(room.query.len(), 0.0);
        // Query heads that share keys are computed together.
        let group = shape.heads / shape.kv_heads * shape.head;
        let groups = room.query.chunks_exact(group).zip(room.mixed.chunks_exact_mut(group));
        for (at, (query, mixed)) in groups.enumerate() {
            let (token, kv_head) = (at / shape.kv_heads, at % shape.kv_heads);
            let lane = |halves| HeadSlice {
                halves,
                stride: kv,
                offset: kv_head * shape.head,
                positions: first + token + 1,
            };
            let keys = lane(&cache.keys);
            room.scores.resize(keys.positions * (shape.heads / shape.kv_heads), 0.0);
            kernel.scores(query, shape.head, keys, &mut room.scores);
            room.scores.chunks_exact_mut(keys.positions).for_each(|row| kernel.softmax(row));
            kernel.mix(&room.scores, lane(&cache.values), shape.head, mixed);
        }
        room.inputs.quantize_rows(kernel, &room.mixed, shape.width);
        multiply_matrix(kernel, &layer.output, &room.inputs, &mut room.normed);
        add_residual(&mut room.stream, &room.normed);
    }

    fn apply_feed_forward(&self, layer: &LlamaLayer, room: &mut LlamaScratch) {
        let kernel = self.kernel;
        self.rms_normalize(&room.stream, &layer.inner_norm, &mut room.normed);
        room.inputs.quantize_rows(kernel, &room.normed, self.shape.width);
        multiply_matrix(kernel, &layer.gate, &room.inputs, &mut room.gate);
        multiply_matrix(kernel, &layer.up, &room.inputs, &mut room.up);
        kernel.gate(&mut room.gate, &room.up);
        room.inputs.quantize_rows(kernel, &room.gate, self.shape.inner);
        multiply_matrix(kernel, &layer.down, &room.inputs, &mut room.normed);
        add_residual(&mut room.stream, &room.normed);
    }

    fn rms_normalize(&self, rows: &[f32], weights: &[f32], out: &mut Vec<f32>) {
        out.resize(rows.len(), 0.0);
        let width = self.shape.width;
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            let mean = self.kernel.dot(row, row) / width as f32;
            let inverse = 1.0 / (mean + self.shape.epsilon).sqrt();
            for ((out, value), weight) in out.iter_mut().zip(row).zip(weights) {
                *out = value * inverse * weight;
            }
        }
    }
}

impl LlamaShape {
    fn read<R: Read + Seek>(file: &Gguf<R>, vocabulary: usize) -> Result<(Self, usize), CorruptModelFile> {
        let architecture = file.text_value("general.architecture")?;
        if architecture != "llama" {
            return Err(CorruptModelFile::new(format!(
                "its architecture is {architecture}; only llama is supported"
            )));
        }
        let size = |key: &str| file.size_value(&format!("llama.{key}"));
        let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let shape = Self {
            width,
            inner: size("feed_forward_length")?,
            heads,
            kv_heads: size("attention.head_count_kv").unwrap_or(heads),
            head: width / heads,
            vocabulary,
            epsilon: file.number_value("llama.attention.layer_norm_rms_epsilon")? as f32,
            base: file.number_value("llama.rope.freq_base").unwrap_or(10_000.0) as f32,
        };
        let layers = size("block_count")?;
        shape.validate_shape(layers)?;
        match size("rope.dimension_count") {
            Ok(turned) if turned != shape.head => {
                Err(CorruptModelFile::new("its rotary embedding covers only a part of each head"))
            }
            _ => Ok((shape, layers)),
        }
    }

    fn validate_shape(&self, layers: usize) -> Result<(), CorruptModelFile> {
        let even = self.width == self.heads * self.head
            && self.heads.is_multiple_of(self.kv_heads)
            && self.head.is_multiple_of(BLOCK);
        let small = layers <= 256 && self.width <= 1 << 14 && self.inner <= 1 << 16;
        let sound = self.epsilon > 0.0 && self.epsilon < 1.0 && self.base > 1.0 && self.base.is_finite();
        match even && small && sound {
            true => Ok(()),
            false => Err(CorruptModelFile::new("its dimensions are inconsistent")),
        }
    }

    /// Computes the rotary angles of each pair of numbers.
    fn rope_angles(&self, first: usize, count: usize, out: &mut Vec<(f32, f32)>) {
        out.clear();
        for position in first..first + count {
            out.extend((0..self.head / 2).map(|pair| {
                let speed = self.base.powf(-2.0 * pair as f32 / self.head as f32);
                let (sin, cos) = (position as f32 * speed).sin_cos();
                (cos, sin)
            }));
        }
    }

    fn apply_rope(&self, rows: &mut [f32], turns: &[(f32, f32)], heads: usize) {
        let pairs = self.head / 2;
        for (at, head) in rows.chunks_exact_mut(self.head).enumerate() {
            let turns = &turns[at / heads * pairs..][..pairs];
            for (pair, (cos, sin)) in head.chunks_exact_mut(2).zip(turns) {
                let (a, b) = (pair[0], pair[1]);
                pair[0] = a * cos - b * sin;
                pair[1] = a * sin + b * cos;
            }
        }
    }
}

fn multiply_matrix(kernel: Kernel, matrix: &QuantMatrix, inputs: &Activations, out: &mut Vec<f32>) {
    out.resize(inputs.count * matrix.rows, 0.0);
    kernel.multiply(matrix, inputs, out);
}

fn add_residual(stream: &mut [f32], more: &[f32]) {
    stream.iter_mut().zip(more).for_each(|(stream, more)| *stream += more);
}

fn read_matrix<R: Read + Seek>(
    file: &mut Gguf<R>,
    name: &str,
    rows: usize,
    columns: usize,
) -> Result<QuantMatrix, CorruptModelFile> {
    let (format, bytes) = file.read_tensor(name, rows, columns)?;
    QuantMatrix::new(format, rows, columns, &bytes).map_err(|error| error.in_part(name))
}

fn read_vector<R: Read + Seek>(
    file: &mut Gguf<R>,
    name: &str,
    len: usize,
) -> Result<Vec<f32>, CorruptModelFile> {
    match file.read_tensor(name, 1, len)? {
        (format @ (TensorFormat::F32 | TensorFormat::F16), bytes) => Ok(decode_floats(format, &bytes)),
        _ => Err(CorruptModelFile::new(format!("'{name}' is quantised"))),
    }
}
