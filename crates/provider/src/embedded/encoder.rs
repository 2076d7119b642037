//! The embedding network: a text's tokens all look at each other, and the mean of what they see is its vector.

use super::kernel::{Activations, Kernel, Lane};
use super::matrix::Matrix;

const EPSILON: f32 = 1e-12;

/// The numbers that shape a network, in the order in which its file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub layers: usize,
    pub width: usize,
    pub inner: usize,
    pub heads: usize,
    pub vocabulary: usize,
    pub positions: usize,
}

impl Shape {
    pub fn sizes(self) -> [u32; 6] {
        [self.layers, self.width, self.inner, self.heads, self.vocabulary, self.positions]
            .map(|size| size as u32)
    }
}

pub(super) struct Dense {
    pub weights: Matrix,
    pub bias: Vec<f32>,
}

/// Weights and shifts of a layer norm.
pub(super) struct Norm {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

pub(super) struct Layer {
    pub query: Dense,
    pub key: Dense,
    pub value: Dense,
    pub output: Dense,
    pub attention_norm: Norm,
    pub up: Dense,
    pub down: Dense,
    pub norm: Norm,
}

pub(super) struct Encoder {
    pub shape: Shape,
    pub words: Matrix,
    /// Of each position, with what every token of a single text gets besides.
    pub places: Matrix,
    pub norm: Norm,
    pub layers: Vec<Layer>,
}

impl Encoder {
    /// A vector of length one, or of zeros where there are no tokens or the weights lead beyond all numbers.
    pub fn embed(&self, kernel: Kernel, tokens: &[u32]) -> Vec<f32> {
        let width = self.shape.width;
        let mut mean = vec![0.0; width];
        if tokens.is_empty() {
            return mean;
        }
        let mut stream = self.begin(tokens);
        let mut inputs = Activations::default();
        for layer in &self.layers {
            self.attend(layer, kernel, &mut stream, &mut inputs);
            let mut inner = dense(kernel, &layer.up, &stream, &mut inputs);
            kernel.gelu(&mut inner);
            let more = dense(kernel, &layer.down, &inner, &mut inputs);
            add_norm(&mut stream, &more, &layer.norm);
        }
        for row in stream.chunks_exact(width) {
            mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
        }
        let length = kernel.dot(&mean, &mean).sqrt();
        // A factor of zero would not do: what is no number stays none.
        if !(length > 0.0 && length.is_finite()) {
            return vec![0.0; width];
        }
        let inverse = 1.0 / length;
        mean.iter_mut().for_each(|value| *value *= inverse);
        mean
    }

    fn begin(&self, tokens: &[u32]) -> Vec<f32> {
        let width = self.shape.width;
        let (mut stream, mut place) = (vec![0.0; tokens.len() * width], vec![0.0; width]);
        for (position, (token, row)) in tokens.iter().zip(stream.chunks_exact_mut(width)).enumerate() {
            self.words.unpack((*token as usize).min(self.shape.vocabulary - 1), row);
            self.places.unpack(position.min(self.shape.positions - 1), &mut place);
            row.iter_mut().zip(&place).for_each(|(value, place)| *value += place);
            normalise(row, &self.norm);
        }
        stream
    }

    fn attend(&self, layer: &Layer, kernel: Kernel, stream: &mut [f32], inputs: &mut Activations) {
        let (width, head) = (self.shape.width, self.shape.width / self.shape.heads);
        let positions = stream.len() / width;
        let mut query = dense(kernel, &layer.query, stream, inputs);
        let scale = 1.0 / (head as f32).sqrt();
        query.iter_mut().for_each(|value| *value *= scale);
        let halves = |values: Vec<f32>| {
            let mut out = vec![0; values.len()];
            kernel.halve(&values, &mut out);
            out
        };
        let keys = halves(dense(kernel, &layer.key, stream, inputs));
        let values = halves(dense(kernel, &layer.value, stream, inputs));
        let (mut mixed, mut scores) = (vec![0.0; stream.len()], vec![0.0; positions]);
        for (at, (query, mixed)) in query.chunks_exact(head).zip(mixed.chunks_exact_mut(head)).enumerate() {
            let lane =
                |halves| Lane { halves, stride: width, offset: at % self.shape.heads * head, positions };
            kernel.scores(query, head, lane(&keys), &mut scores);
            kernel.softmax(&mut scores);
            kernel.mix(&scores, lane(&values), head, mixed);
        }
        let more = dense(kernel, &layer.output, &mixed, inputs);
        add_norm(stream, &more, &layer.attention_norm);
    }
}

fn dense(kernel: Kernel, dense: &Dense, values: &[f32], inputs: &mut Activations) -> Vec<f32> {
    inputs.fill(kernel, values, dense.weights.columns);
    let mut out = vec![0.0; inputs.count * dense.weights.rows];
    kernel.multiply(&dense.weights, inputs, &mut out);
    for row in out.chunks_exact_mut(dense.weights.rows) {
        row.iter_mut().zip(&dense.bias).for_each(|(value, bias)| *value += bias);
    }
    out
}

fn add_norm(stream: &mut [f32], more: &[f32], norm: &Norm) {
    stream.iter_mut().zip(more).for_each(|(value, more)| *value += more);
    stream.chunks_exact_mut(norm.weight.len()).for_each(|row| normalise(row, norm));
}

fn normalise(row: &mut [f32], norm: &Norm) {
    let count = row.len() as f32;
    let mean = row.iter().sum::<f32>() / count;
    let spread = row.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>() / count;
    let inverse = 1.0 / (spread + EPSILON).sqrt();
    for ((value, weight), bias) in row.iter_mut().zip(&norm.weight).zip(&norm.bias) {
        *value = (*value - mean) * inverse * weight + bias;
    }
}
