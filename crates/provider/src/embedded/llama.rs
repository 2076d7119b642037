//! The network: what follows a sequence of tokens, as a number for each token of the vocabulary.

use std::io::{Read, Seek};

use super::Damaged;
use super::cache::Cache;
use super::gguf::Gguf;
use super::kernel::{Activations, Kernel, Lane};
use super::matrix::{BLOCK, Format, Matrix, floats};
use super::tokenizer::Token;

/// Tokens that go through the layers together: enough to share the work, few enough to stop soon after a cancel.
pub(super) const BATCH: usize = 32;

#[derive(Clone, Debug)]
struct Shape {
    width: usize,
    inner: usize,
    heads: usize,
    kv_heads: usize,
    /// Numbers of one head.
    head: usize,
    vocabulary: usize,
    epsilon: f32,
    base: f32,
}

struct Layer {
    attention_norm: Vec<f32>,
    query: Matrix,
    key: Matrix,
    value: Matrix,
    output: Matrix,
    inner_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

pub(super) struct Llama {
    shape: Shape,
    kernel: Kernel,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// `None` where the embedding serves for both ways.
    unembedding: Option<Matrix>,
}

/// Room for one batch on its way through the layers, kept between calls.
#[derive(Default)]
struct Room {
    stream: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mixed: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    scores: Vec<f32>,
    /// Cosines and sines of each token's position.
    turns: Vec<(f32, f32)>,
    inputs: Activations,
}

impl Llama {
    pub fn read<R: Read + Seek>(
        file: &mut Gguf<R>,
        kernel: Kernel,
        vocabulary: usize,
    ) -> Result<Self, Damaged> {
        let (shape, layers) = Shape::read(file, vocabulary)?;
        let (width, inner, kv) = (shape.width, shape.inner, shape.kv_heads * shape.head);
        let embedding = matrix(file, "token_embd.weight", vocabulary, width)?;
        let mut read = Vec::new();
        for index in 0..layers {
            let name = |part: &str| format!("blk.{index}.{part}.weight");
            read.push(Layer {
                attention_norm: vector(file, &name("attn_norm"), width)?,
                query: matrix(file, &name("attn_q"), width, width)?,
                key: matrix(file, &name("attn_k"), kv, width)?,
                value: matrix(file, &name("attn_v"), kv, width)?,
                output: matrix(file, &name("attn_output"), width, width)?,
                inner_norm: vector(file, &name("ffn_norm"), width)?,
                gate: matrix(file, &name("ffn_gate"), inner, width)?,
                up: matrix(file, &name("ffn_up"), inner, width)?,
                down: matrix(file, &name("ffn_down"), width, inner)?,
            });
        }
        let norm = vector(file, "output_norm.weight", width)?;
        let own = file.has("output.weight").then(|| matrix(file, "output.weight", vocabulary, width));
        Ok(Self { shape, kernel, embedding, layers: read, norm, unembedding: own.transpose()? })
    }

    pub fn cache(&self) -> Cache {
        Cache::new(self.layers.len())
    }

    pub fn kernel(&self) -> &'static str {
        self.kernel.name()
    }

    /// Takes in more tokens and says what follows the last of them. `go_on` is asked between batches; where it says
    /// no, nothing is said and the cache holds what was taken in so far.
    pub fn extend(&self, cache: &mut Cache, tokens: &[Token], go_on: &dyn Fn() -> bool) -> Option<Vec<f32>> {
        let mut room = Room::default();
        for batch in tokens.chunks(BATCH) {
            if !go_on() {
                return None;
            }
            self.pass(cache, batch, &mut room);
        }
        let last = room.stream.len().checked_sub(self.shape.width)?;
        Some(self.read_out(&room.stream[last..], &mut room.inputs))
    }

    /// The same, saying what follows after each token: for measuring how well a text is foreseen.
    pub fn extend_each(&self, cache: &mut Cache, tokens: &[Token]) -> Vec<Vec<f32>> {
        let (mut room, mut all) = (Room::default(), Vec::new());
        for batch in tokens.chunks(BATCH) {
            self.pass(cache, batch, &mut room);
            let stream = std::mem::take(&mut room.stream);
            all.extend(stream.chunks_exact(self.shape.width).map(|row| self.read_out(row, &mut room.inputs)));
        }
        all
    }

    fn read_out(&self, stream: &[f32], inputs: &mut Activations) -> Vec<f32> {
        let mut normed = Vec::new();
        self.normalise(stream, &self.norm, &mut normed);
        inputs.fill(self.kernel, &normed, self.shape.width);
        let mut scores = vec![0.0; self.shape.vocabulary];
        self.kernel.multiply(self.unembedding.as_ref().unwrap_or(&self.embedding), inputs, &mut scores);
        scores
    }

    fn pass(&self, cache: &mut Cache, tokens: &[Token], room: &mut Room) {
        let (shape, first) = (&self.shape, cache.len());
        room.stream.resize(tokens.len() * shape.width, 0.0);
        for (token, out) in tokens.iter().zip(room.stream.chunks_exact_mut(shape.width)) {
            // An id beyond the vocabulary can not come from the tokenizer; it would stand for the first token.
            let row = if (*token as usize) < shape.vocabulary { *token as usize } else { 0 };
            self.embedding.unpack(row, out);
        }
        shape.turns(first, tokens.len(), &mut room.turns);
        for (index, layer) in self.layers.iter().enumerate() {
            self.attend(layer, cache.layer(index), first, room);
            self.think(layer, room);
        }
        cache.note(tokens);
    }

    fn attend(&self, layer: &Layer, cache: &mut super::cache::Layer, first: usize, room: &mut Room) {
        let (shape, kernel) = (&self.shape, self.kernel);
        let kv = shape.kv_heads * shape.head;
        self.normalise(&room.stream, &layer.attention_norm, &mut room.normed);
        room.inputs.fill(kernel, &room.normed, shape.width);
        multiply(kernel, &layer.query, &room.inputs, &mut room.query);
        multiply(kernel, &layer.key, &room.inputs, &mut room.key);
        multiply(kernel, &layer.value, &room.inputs, &mut room.value);
        shape.turn(&mut room.query, &room.turns, shape.heads);
        shape.turn(&mut room.key, &room.turns, shape.kv_heads);
        let (start, more) = (first * kv, room.key.len());
        cache.keys.resize(start + more, 0);
        cache.values.resize(start + more, 0);
        kernel.halve(&room.key, &mut cache.keys[start..]);
        kernel.halve(&room.value, &mut cache.values[start..]);

        let scale = 1.0 / (shape.head as f32).sqrt();
        room.query.iter_mut().for_each(|value| *value *= scale);
        room.mixed.resize(room.query.len(), 0.0);
        // Query heads that share keys are asked together.
        let group = shape.heads / shape.kv_heads * shape.head;
        let groups = room.query.chunks_exact(group).zip(room.mixed.chunks_exact_mut(group));
        for (at, (query, mixed)) in groups.enumerate() {
            let (token, kv_head) = (at / shape.kv_heads, at % shape.kv_heads);
            let lane = |halves| Lane {
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
        room.inputs.fill(kernel, &room.mixed, shape.width);
        multiply(kernel, &layer.output, &room.inputs, &mut room.normed);
        add(&mut room.stream, &room.normed);
    }

    fn think(&self, layer: &Layer, room: &mut Room) {
        let kernel = self.kernel;
        self.normalise(&room.stream, &layer.inner_norm, &mut room.normed);
        room.inputs.fill(kernel, &room.normed, self.shape.width);
        multiply(kernel, &layer.gate, &room.inputs, &mut room.gate);
        multiply(kernel, &layer.up, &room.inputs, &mut room.up);
        kernel.gate(&mut room.gate, &room.up);
        room.inputs.fill(kernel, &room.gate, self.shape.inner);
        multiply(kernel, &layer.down, &room.inputs, &mut room.normed);
        add(&mut room.stream, &room.normed);
    }

    fn normalise(&self, rows: &[f32], weights: &[f32], out: &mut Vec<f32>) {
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

impl Shape {
    fn read<R: Read + Seek>(file: &Gguf<R>, vocabulary: usize) -> Result<(Self, usize), Damaged> {
        let architecture = file.text("general.architecture")?;
        if architecture != "llama" {
            return Err(Damaged::new(format!("its architecture is {architecture}; llama is run")));
        }
        let size = |key: &str| file.size(&format!("llama.{key}"));
        let (width, heads) = (size("embedding_length")?, size("attention.head_count")?);
        let shape = Self {
            width,
            inner: size("feed_forward_length")?,
            heads,
            kv_heads: size("attention.head_count_kv").unwrap_or(heads),
            head: width / heads,
            vocabulary,
            epsilon: file.number("llama.attention.layer_norm_rms_epsilon")? as f32,
            base: file.number("llama.rope.freq_base").unwrap_or(10_000.0) as f32,
        };
        let layers = size("block_count")?;
        shape.check(layers)?;
        match size("rope.dimension_count") {
            Ok(turned) if turned != shape.head => Err(Damaged::new("it turns only a part of each head")),
            _ => Ok((shape, layers)),
        }
    }

    fn check(&self, layers: usize) -> Result<(), Damaged> {
        let even = self.width == self.heads * self.head
            && self.heads.is_multiple_of(self.kv_heads)
            && self.head.is_multiple_of(BLOCK);
        let small = layers <= 256 && self.width <= 1 << 14 && self.inner <= 1 << 16;
        let sound = self.epsilon > 0.0 && self.epsilon < 1.0 && self.base > 1.0 && self.base.is_finite();
        match even && small && sound {
            true => Ok(()),
            false => Err(Damaged::new("its dimensions do not fit together")),
        }
    }

    /// The angles by which a position turns each pair of numbers.
    fn turns(&self, first: usize, count: usize, out: &mut Vec<(f32, f32)>) {
        out.clear();
        for position in first..first + count {
            out.extend((0..self.head / 2).map(|pair| {
                let speed = self.base.powf(-2.0 * pair as f32 / self.head as f32);
                let (sin, cos) = (position as f32 * speed).sin_cos();
                (cos, sin)
            }));
        }
    }

    fn turn(&self, rows: &mut [f32], turns: &[(f32, f32)], heads: usize) {
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

fn multiply(kernel: Kernel, matrix: &Matrix, inputs: &Activations, out: &mut Vec<f32>) {
    out.resize(inputs.count * matrix.rows, 0.0);
    kernel.multiply(matrix, inputs, out);
}

fn add(stream: &mut [f32], more: &[f32]) {
    stream.iter_mut().zip(more).for_each(|(stream, more)| *stream += more);
}

fn matrix<R: Read + Seek>(
    file: &mut Gguf<R>,
    name: &str,
    rows: usize,
    columns: usize,
) -> Result<Matrix, Damaged> {
    let (format, bytes) = file.tensor(name, rows, columns)?;
    Matrix::new(format, rows, columns, &bytes).map_err(|error| error.in_part(name))
}

fn vector<R: Read + Seek>(file: &mut Gguf<R>, name: &str, len: usize) -> Result<Vec<f32>, Damaged> {
    match file.tensor(name, 1, len)? {
        (format @ (Format::F32 | Format::F16), bytes) => Ok(floats(format, &bytes)),
        _ => Err(Damaged::new(format!("'{name}' is quantised"))),
    }
}
