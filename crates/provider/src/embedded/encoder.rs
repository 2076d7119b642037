//! The embedding network: every token attends to all others, and the mean of the outputs is the vector of the text.

use super::kernel::{Activations, HeadSlice, Kernel};
use super::matrix::QuantMatrix;

const NORM_EPSILON: f32 = 1e-12;

/// The dimensions of a network, in the order of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EncoderShape {
    pub layers: usize,
    pub width: usize,
    pub inner: usize,
    pub heads: usize,
    pub vocabulary: usize,
    pub positions: usize,
}

impl EncoderShape {
    pub fn sizes(self) -> [u32; 6] {
        [self.layers, self.width, self.inner, self.heads, self.vocabulary, self.positions]
            .map(|size| size as u32)
    }
}

pub(super) struct DenseLayer {
    pub weights: QuantMatrix,
    pub bias: Vec<f32>,
}

/// Weights and biases of a layer norm.
pub(super) struct LayerNorm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

pub(super) struct EncoderLayer {
    pub query: DenseLayer,
    pub key: DenseLayer,
    pub value: DenseLayer,
    pub output: DenseLayer,
    pub attention_norm: LayerNorm,
    pub up: DenseLayer,
    pub down: DenseLayer,
    pub norm: LayerNorm,
}

pub(super) struct TextEncoder {
    pub shape: EncoderShape,
    pub words: QuantMatrix,
    /// One row per position. Includes the token-type embedding that every token of a single text gets.
    pub places: QuantMatrix,
    pub norm: LayerNorm,
    pub layers: Vec<EncoderLayer>,
}

impl TextEncoder {
    /// Returns a vector of length one. Returns zeros if there are no tokens or the result is not finite.
    pub fn embed(&self, kernel: Kernel, tokens: &[u32]) -> Vec<f32> {
        let width = self.shape.width;
        let mut mean = vec![0.0; width];
        if tokens.is_empty() {
            return mean;
        }
        let mut stream = self.embed_tokens(tokens);
        let mut inputs = Activations::default();
        for layer in &self.layers {
            self.apply_attention(layer, kernel, &mut stream, &mut inputs);
            let mut inner = apply_dense(kernel, &layer.up, &stream, &mut inputs);
            kernel.gelu(&mut inner);
            let more = apply_dense(kernel, &layer.down, &inner, &mut inputs);
            add_norm(&mut stream, &more, &layer.norm);
        }
        for row in stream.chunks_exact(width) {
            mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
        }
        let length = kernel.dot(&mean, &mean).sqrt();
        // Multiplying by zero would not help: NaN stays NaN.
        if !(length > 0.0 && length.is_finite()) {
            return vec![0.0; width];
        }
        let inverse = 1.0 / length;
        mean.iter_mut().for_each(|value| *value *= inverse);
        mean
    }

    fn embed_tokens(&self, tokens: &[u32]) -> Vec<f32> {
        let width = self.shape.width;
        let (mut stream, mut place) = (vec![0.0; tokens.len() * width], vec![0.0; width]);
        for (position, (token, row)) in tokens.iter().zip(stream.chunks_exact_mut(width)).enumerate() {
            self.words.unpack_row((*token as usize).min(self.shape.vocabulary - 1), row);
            self.places.unpack_row(position.min(self.shape.positions - 1), &mut place);
            row.iter_mut().zip(&place).for_each(|(value, place)| *value += place);
            normalize_row(row, &self.norm);
        }
        stream
    }

    fn apply_attention(
        &self,
        layer: &EncoderLayer,
        kernel: Kernel,
        stream: &mut [f32],
        inputs: &mut Activations,
    ) {
        let (width, head) = (self.shape.width, self.shape.width / self.shape.heads);
        let positions = stream.len() / width;
        let mut query = apply_dense(kernel, &layer.query, stream, inputs);
        let scale = 1.0 / (head as f32).sqrt();
        query.iter_mut().for_each(|value| *value *= scale);
        let halves = |values: Vec<f32>| {
            let mut out = vec![0; values.len()];
            kernel.halve(&values, &mut out);
            out
        };
        let keys = halves(apply_dense(kernel, &layer.key, stream, inputs));
        let values = halves(apply_dense(kernel, &layer.value, stream, inputs));
        let (mut mixed, mut scores) = (vec![0.0; stream.len()], vec![0.0; positions]);
        for (at, (query, mixed)) in query.chunks_exact(head).zip(mixed.chunks_exact_mut(head)).enumerate() {
            let lane =
                |halves| HeadSlice { halves, stride: width, offset: at % self.shape.heads * head, positions };
            kernel.scores(query, head, lane(&keys), &mut scores);
            kernel.softmax(&mut scores);
            kernel.mix(&scores, lane(&values), head, mixed);
        }
        let more = apply_dense(kernel, &layer.output, &mixed, inputs);
        add_norm(stream, &more, &layer.attention_norm);
    }
}

fn apply_dense(kernel: Kernel, dense: &DenseLayer, values: &[f32], inputs: &mut Activations) -> Vec<f32> {
    inputs.quantize_rows(kernel, values, dense.weights.columns);
    let mut out = vec![0.0; inputs.count * dense.weights.rows];
    kernel.multiply(&dense.weights, inputs, &mut out);
    for row in out.chunks_exact_mut(dense.weights.rows) {
        row.iter_mut().zip(&dense.bias).for_each(|(value, bias)| *value += bias);
    }
    out
}

fn add_norm(stream: &mut [f32], more: &[f32], norm: &LayerNorm) {
    stream.iter_mut().zip(more).for_each(|(value, more)| *value += more);
    stream.chunks_exact_mut(norm.weight.len()).for_each(|row| normalize_row(row, norm));
}

fn normalize_row(row: &mut [f32], norm: &LayerNorm) {
    let count = row.len() as f32;
    let mean = row.iter().sum::<f32>() / count;
    let spread = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
    let inverse = 1.0 / (spread + NORM_EPSILON).sqrt();
    for ((value, weight), bias) in row.iter_mut().zip(&norm.weight).zip(&norm.bias) {
        *value = (*value - mean) * inverse * weight + bias;
    }
}
