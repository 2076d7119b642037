//! Picks the next token: the likeliest, or a seeded random one among the likely ones.

use super::tokenizer::VocabToken;

/// How far back a token counts as repeated, and the penalty for it.
const REPEAT_WINDOW: usize = 64;
const REPEAT_PENALTY: f32 = 1.1;
/// Number of likeliest tokens to draw from.
const TOP_K: usize = 40;

pub(super) struct Sampler {
    /// 0 always picks the likeliest token.
    temperature: f32,
    state: u64,
    recent: Vec<VocabToken>,
}

impl Sampler {
    pub fn new(temperature: f32, seed: u64) -> Self {
        Self { temperature: temperature.clamp(0.0, 2.0), state: seed, recent: Vec::new() }
    }

    /// Records a written token for the repeat penalty, also if it was forced and not picked.
    pub fn record_token(&mut self, token: VocabToken) {
        if self.recent.len() == REPEAT_WINDOW {
            self.recent.remove(0);
        }
        self.recent.push(token);
    }

    /// Picks an allowed token; `None` if there is none.
    pub fn pick_token(
        &mut self,
        scores: &mut [f32],
        allowed: &mut dyn FnMut(VocabToken) -> bool,
    ) -> Option<VocabToken> {
        self.penalize_repeats(scores);
        let wanted = if self.temperature > 0.0 { TOP_K } else { 1 };
        let best = top_scores(scores, wanted, allowed);
        let likeliest = *best.first()?;
        if wanted == 1 {
            return Some(likeliest.1);
        }
        let temperature = self.temperature;
        let weight = |score: f32| ((score - likeliest.0) / temperature).exp();
        let total: f32 = best.iter().map(|(score, _)| weight(*score)).sum();
        let mut left = self.random_float() * total;
        for (score, token) in &best {
            left -= weight(*score);
            if left <= 0.0 {
                return Some(*token);
            }
        }
        Some(likeliest.1)
    }

    /// Lowers the score of recent tokens, once per token, because small models tend to repeat themselves.
    fn penalize_repeats(&self, scores: &mut [f32]) {
        for (at, token) in self.recent.iter().enumerate() {
            if self.recent[..at].contains(token) {
                continue;
            }
            if let Some(score) = scores.get_mut(*token as usize) {
                *score = if *score > 0.0 { *score / REPEAT_PENALTY } else { *score * REPEAT_PENALTY };
            }
        }
    }

    /// Returns a number in 0..1, by SplitMix64.
    fn random_float(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u64 << 24) as f32
    }
}

/// Returns the allowed tokens with the highest scores, best first. Checks whether a token is allowed only if its score
/// counts, because the check is expensive.
fn top_scores(
    scores: &[f32],
    wanted: usize,
    allowed: &mut dyn FnMut(VocabToken) -> bool,
) -> Vec<(f32, VocabToken)> {
    let mut best: Vec<(f32, VocabToken)> = Vec::with_capacity(wanted + 1);
    for (token, score) in (0..).zip(scores) {
        let counts = best.len() < wanted || best.last().is_some_and(|(least, _)| score > least);
        if counts && !score.is_nan() && allowed(token) {
            let at = best.partition_point(|(other, _)| other >= score);
            best.insert(at, (*score, token));
            best.truncate(wanted);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeliest_allowed_token_wins_and_repeats_are_penalized() {
        let mut sampler = Sampler::new(0.0, 1);
        let scores = [1.0, 3.0, 2.9, f32::NAN];
        assert_eq!(sampler.pick_token(&mut scores.clone(), &mut |_| true), Some(1));
        assert_eq!(sampler.pick_token(&mut scores.clone(), &mut |token| token != 1), Some(2));
        assert_eq!(sampler.pick_token(&mut scores.clone(), &mut |_| false), None);
        sampler.record_token(1);
        assert_eq!(sampler.pick_token(&mut scores.clone(), &mut |_| true), Some(2));
    }

    #[test]
    fn seeded_draws_repeat_and_prefer_likely_tokens() {
        let draw = |seed| {
            let mut sampler = Sampler::new(1.0, seed);
            (0..300)
                .map(|_| sampler.pick_token(&mut [0.0, 2.0, -9.0], &mut |_| true).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let often = draw(7).into_iter().filter(|token| *token == 1).count();
        assert!((200..300).contains(&often), "{often} of 300");
    }
}
