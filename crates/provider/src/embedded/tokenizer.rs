//! Converts text to token ids and back exactly as in training: byte-pair merges within pieces that a fixed rule cuts
//! (`pieces`).
//!
//! Special tokens, such as the end of a message, are never produced from text, so nobody can write one into a prompt.

mod pieces;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{Read, Seek};

use super::CorruptModelFile;
use super::gguf::{Gguf, GgufValue};

pub(super) type VocabToken = u32;

/// Real vocabularies are far smaller. Ids are used as indexes.
const MAX_VOCABULARY: usize = 1 << 20;
/// The type of an ordinary token in the file format.
const ORDINARY_TOKEN_KIND: f64 = 1.0;

pub(super) struct Tokenizer {
    /// The bytes of each token; empty for special tokens.
    texts: Vec<Box<[u8]>>,
    bytes: [Option<VocabToken>; 256],
    /// Maps a pair of neighbours to the rank of its merge and the merged token.
    merges: HashMap<(VocabToken, VocabToken), (u32, VocabToken)>,
    specials: HashMap<String, VocabToken>,
    cutter: pieces::PieceSplitter,
}

impl Tokenizer {
    pub fn read<R: Read + Seek>(file: &Gguf<R>) -> Result<Self, CorruptModelFile> {
        let (model, rule) =
            (file.text_value("tokenizer.ggml.model")?, file.text_value("tokenizer.ggml.pre")?);
        if (model, rule) != ("gpt2", "smollm") {
            return Err(CorruptModelFile::new(format!(
                "its tokenizer is {model}/{rule}; only gpt2/smollm is supported"
            )));
        }
        let words = file.text_list("tokenizer.ggml.tokens")?;
        let kinds = match file.find_value("tokenizer.ggml.token_type") {
            Some(GgufValue::Numbers(kinds)) if kinds.len() == words.len() => kinds,
            _ => return Err(CorruptModelFile::new("its tokens have no types")),
        };
        if words.len() > MAX_VOCABULARY {
            return Err(CorruptModelFile::new("its vocabulary is too large"));
        }
        Self::new(words, kinds, file.text_list("tokenizer.ggml.merges")?)
    }

    fn new(words: &[String], kinds: &[f64], merges: &[String]) -> Result<Self, CorruptModelFile> {
        let alphabet = ByteAlphabet::new();
        let mut texts = Vec::with_capacity(words.len());
        let mut specials = HashMap::new();
        let mut ids: HashMap<&str, VocabToken> = HashMap::new();
        for (id, (word, kind)) in (0..).zip(words.iter().zip(kinds)) {
            if *kind == ORDINARY_TOKEN_KIND {
                ids.entry(word).or_insert(id);
                texts.push(alphabet.to_bytes(word).unwrap_or_default());
            } else {
                specials.insert(word.clone(), id);
                texts.push(Box::default());
            }
        }
        let mut bytes = [None; 256];
        for (byte, slot) in (0..=255).zip(&mut bytes) {
            *slot = ids.get(alphabet.byte_to_char(byte).to_string().as_str()).copied();
        }
        let mut joined = HashMap::with_capacity(merges.len());
        for (rank, merge) in (0..).zip(merges) {
            let merged = merge.split_once(' ').and_then(|(left, right)| {
                let whole = format!("{left}{right}");
                Some(((*ids.get(left)?, *ids.get(right)?), *ids.get(whole.as_str())?))
            });
            let Some((pair, whole)) = merged else {
                return Err(CorruptModelFile::new(format!(
                    "merge {rank} of its tokenizer refers to no tokens"
                )));
            };
            joined.entry(pair).or_insert((rank, whole));
        }
        Ok(Self { texts, bytes, merges: joined, specials, cutter: pieces::PieceSplitter::new() })
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    pub fn special_token(&self, word: &str) -> Result<VocabToken, CorruptModelFile> {
        self.specials
            .get(word)
            .copied()
            .ok_or_else(|| CorruptModelFile::new(format!("it has no token {word}")))
    }

    /// Returns the bytes of a token; empty for special tokens.
    pub fn token_bytes(&self, token: VocabToken) -> &[u8] {
        self.texts.get(token as usize).map_or(&[], |text| text)
    }

    /// Returns the token of a single byte.
    pub fn byte_token(&self, byte: u8) -> Option<VocabToken> {
        self.bytes[usize::from(byte)]
    }

    pub fn encode(&self, text: &str) -> Vec<VocabToken> {
        let mut tokens = Vec::with_capacity(text.len() / 3);
        for piece in self.cutter.split_pieces(text) {
            self.merge_piece(piece.as_bytes(), &mut tokens);
        }
        tokens
    }

    /// Merges neighbours, lowest rank first, until no merge applies. Skips bytes without a token. Candidate merges are
    /// in a heap, so that a piece of a million equal signs takes a moment and not a day.
    fn merge_piece(&self, piece: &[u8], out: &mut Vec<VocabToken>) {
        let mut parts = TokenChain::new(piece.iter().filter_map(|byte| self.byte_token(*byte)));
        let mut waiting = BinaryHeap::new();
        let merge = |parts: &TokenChain, at: usize| {
            let pair = parts.pair_at(at)?;
            let (rank, whole) = *self.merges.get(&pair)?;
            Some(Reverse((rank, at, whole, pair)))
        };
        waiting.extend((0..parts.tokens.len()).filter_map(|at| merge(&parts, at)));
        while let Some(Reverse((_, at, whole, pair))) = waiting.pop() {
            // One of the two may have been merged with another token in the meantime.
            if parts.pair_at(at) == Some(pair) {
                parts.join_pair(at, whole);
                let before = parts.before[at];
                waiting.extend([Some(at), before].into_iter().flatten().filter_map(|at| merge(&parts, at)));
            }
        }
        out.extend(parts.tokens.into_iter().flatten());
    }
}

/// The tokens of a piece as a linked list, so that merging two moves no others.
struct TokenChain {
    /// `None` if the token was merged into the previous one.
    tokens: Vec<Option<VocabToken>>,
    before: Vec<Option<usize>>,
    after: Vec<Option<usize>>,
}

impl TokenChain {
    fn new(tokens: impl Iterator<Item = VocabToken>) -> Self {
        let tokens: Vec<_> = tokens.map(Some).collect();
        let count = tokens.len();
        let before = (0..count).map(|at| at.checked_sub(1)).collect();
        let after = (0..count).map(|at| Some(at + 1).filter(|next| *next < count)).collect();
        Self { tokens, before, after }
    }

    fn pair_at(&self, at: usize) -> Option<(VocabToken, VocabToken)> {
        Some((self.tokens[at]?, self.tokens[self.after[at]?]?))
    }

    fn join_pair(&mut self, at: usize, whole: VocabToken) {
        let Some(gone) = self.after[at] else { return };
        self.tokens[at] = Some(whole);
        self.tokens[gone] = None;
        self.after[at] = self.after[gone];
        if let Some(next) = self.after[at] {
            self.before[next] = Some(at);
        }
    }
}

/// The vocabulary's encoding of bytes: printable ones as themselves, the others as characters from 256 on.
struct ByteAlphabet {
    chars: [char; 256],
    bytes: HashMap<char, u8>,
}

impl ByteAlphabet {
    fn new() -> Self {
        let mut chars = ['\0'; 256];
        let mut next = 256_u32;
        for (byte, character) in (0..=255_u8).zip(&mut chars) {
            *character = match byte {
                b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
                _ => {
                    next += 1;
                    char::from_u32(next - 1).unwrap_or_default()
                }
            };
        }
        let bytes = (0..=255).zip(chars).map(|(byte, character)| (character, byte)).collect();
        Self { chars, bytes }
    }

    fn byte_to_char(&self, byte: u8) -> char {
        self.chars[usize::from(byte)]
    }

    fn to_bytes(&self, word: &str) -> Option<Box<[u8]>> {
        word.chars().map(|character| self.bytes.get(&character).copied()).collect()
    }
}
