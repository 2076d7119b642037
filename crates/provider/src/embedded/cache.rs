//! The KV cache of processed tokens: keys and values of every layer, in half precision.

use super::tokenizer::VocabToken;

pub(super) struct KvCache {
    layers: Vec<KvLayer>,
    tokens: Vec<VocabToken>,
}

#[derive(Default)]
pub(super) struct KvLayer {
    pub keys: Vec<u16>,
    pub values: Vec<u16>,
}

impl KvCache {
    pub fn new(layers: usize) -> Self {
        Self { layers: (0..layers).map(|_| KvLayer::default()).collect(), tokens: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn layer_mut(&mut self, index: usize) -> &mut KvLayer {
        &mut self.layers[index]
    }

    /// Records tokens whose keys and values are in every layer.
    pub fn append_tokens(&mut self, tokens: &[VocabToken]) {
        self.tokens.extend_from_slice(tokens);
    }

    /// Keeps the common prefix with the new tokens, drops the rest and returns its length. The last new token is always
    /// recomputed, because the cache does not hold its output.
    pub fn reuse_prefix(&mut self, tokens: &[VocabToken]) -> usize {
        let same = self.tokens.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let kept = same.min(tokens.len().saturating_sub(1));
        self.truncate(kept);
        kept
    }

    fn truncate(&mut self, kept: usize) {
        let width = |halves: &Vec<u16>, seen: usize| halves.len().checked_div(seen).unwrap_or(0);
        let seen = self.tokens.len();
        for layer in &mut self.layers {
            let (keys, values) = (width(&layer.keys, seen), width(&layer.values, seen));
            layer.keys.truncate(keys * kept);
            layer.values.truncate(values * kept);
        }
        self.tokens.truncate(kept);
    }
}
