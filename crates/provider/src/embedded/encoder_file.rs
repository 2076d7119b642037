//! The embedding model as a file of our own: signed bytes instead of the 32 bits each number has where it comes from,
//! so a quarter of the size. Written once when the model is pulled.
//!
//! `PCLEMBED`, a version, the SHA-256 of all that follows; then the shape, the vocabulary and the tensors, each in a
//! fixed order.

use std::io::{Read, Seek};

use sha2::{Digest, Sha256};

use super::Damaged;
use super::bytes::Bytes;
use super::encoder::{Dense, Encoder, Layer, Norm, Shape};
use super::matrix::{BLOCK, Format, Matrix, floats};
use super::safetensors::Safetensors;
use super::wordpiece::WordPiece;

const MAGIC: [u8; 8] = *b"PCLEMBED";
const VERSION: u32 = 1;
const LARGEST_FILE: u64 = 1 << 28;

/// all-MiniLM-L6-v2.
pub(super) const MINILM: Shape =
    Shape { layers: 6, width: 384, inner: 1536, heads: 12, vocabulary: 30_522, positions: 512 };

/// Makes our file of the one that is published.
pub(super) fn convert<R: Read + Seek>(
    weights: R,
    vocabulary: &str,
    shape: Shape,
) -> Result<Vec<u8>, Damaged> {
    let mut source = Safetensors::open(weights)?;
    WordPiece::new(vocabulary)?;
    let mut body = Vec::new();
    body.extend(shape.sizes().iter().flat_map(|size| size.to_le_bytes()));
    body.extend((vocabulary.len() as u64).to_le_bytes());
    body.extend(vocabulary.as_bytes());
    let mut writer = Writer { source: &mut source, body: &mut body };
    let (width, inner) = (shape.width, shape.inner);
    writer.matrix("embeddings.word_embeddings.weight", shape.vocabulary, width)?;
    writer.places(shape)?;
    writer.norm("embeddings.LayerNorm", width)?;
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            writer.dense(&name(&format!("attention.{part}")), width, width)?;
        }
        writer.norm(&name("attention.output.LayerNorm"), width)?;
        writer.dense(&name("intermediate.dense"), inner, width)?;
        writer.dense(&name("output.dense"), width, inner)?;
        writer.norm(&name("output.LayerNorm"), width)?;
    }
    let hash = Sha256::digest(&body);
    Ok([&MAGIC[..], &VERSION.to_le_bytes(), &hash, &body].concat())
}

struct Writer<'a, R> {
    source: &'a mut Safetensors<R>,
    body: &'a mut Vec<u8>,
}

impl<R: Read + Seek> Writer<'_, R> {
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<(), Damaged> {
        let values = self.source.floats(name, &[rows, columns])?;
        self.body.extend(Matrix::quantised(rows, columns, &values).to_blocks());
        Ok(())
    }

    /// Every token of a single text is of the first kind, so what a kind adds is added to the positions at once.
    fn places(&mut self, shape: Shape) -> Result<(), Damaged> {
        let (rows, width) = (shape.positions, shape.width);
        let mut values = self.source.floats("embeddings.position_embeddings.weight", &[rows, width])?;
        let kinds = self.source.floats("embeddings.token_type_embeddings.weight", &[2, width])?;
        for row in values.chunks_exact_mut(width) {
            row.iter_mut().zip(&kinds).for_each(|(value, kind)| *value += kind);
        }
        self.body.extend(Matrix::quantised(rows, width, &values).to_blocks());
        Ok(())
    }

    fn vector(&mut self, name: &str, len: usize) -> Result<(), Damaged> {
        let values = self.source.floats(name, &[len])?;
        self.body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Ok(())
    }

    fn dense(&mut self, name: &str, rows: usize, columns: usize) -> Result<(), Damaged> {
        self.matrix(&format!("{name}.weight"), rows, columns)?;
        self.vector(&format!("{name}.bias"), rows)
    }

    fn norm(&mut self, name: &str, len: usize) -> Result<(), Damaged> {
        self.vector(&format!("{name}.weight"), len)?;
        self.vector(&format!("{name}.bias"), len)
    }
}

/// Reads a file of ours, if the network in it has this shape.
pub(super) fn read<R: Read + Seek>(file: R, shape: Shape) -> Result<(Encoder, WordPiece), Damaged> {
    let mut bytes = Bytes::new(file)?;
    if bytes.array::<8>()? != MAGIC {
        return Err(Damaged::new("it is no embedding model of ours"));
    }
    let version = bytes.u32()?;
    if version != VERSION {
        return Err(Damaged::new(format!("its version is {version}; {VERSION} is read")));
    }
    let hash = bytes.array::<32>()?;
    if bytes.left() > LARGEST_FILE {
        return Err(Damaged::new("it is larger than any model this engine runs"));
    }
    let size = bytes.left();
    let body = bytes.take(size)?;
    if Sha256::digest(&body)[..] != hash {
        return Err(Damaged::new("its content is not what was written: pull it again"));
    }
    Body(Bytes::new(std::io::Cursor::new(body))?).read(shape)
}

struct Body<R>(Bytes<R>);

impl<R: Read + Seek> Body<R> {
    fn read(mut self, shape: Shape) -> Result<(Encoder, WordPiece), Damaged> {
        for size in shape.sizes() {
            if self.0.u32()? != size {
                return Err(Damaged::new("its dimensions are not those of the embedding model"));
            }
        }
        let width = shape.width;
        let words = WordPiece::new(&self.0.text()?)?;
        let encoder = Encoder {
            shape,
            words: self.matrix(shape.vocabulary, width)?,
            places: self.matrix(shape.positions, width)?,
            norm: self.norm(width)?,
            layers: (0..shape.layers).map(|_| self.layer(shape)).collect::<Result<_, _>>()?,
        };
        match self.0.left() {
            0 => Ok((encoder, words)),
            left => Err(Damaged::new(format!("{left} bytes of it belong to nothing"))),
        }
    }

    fn layer(&mut self, shape: Shape) -> Result<Layer, Damaged> {
        let (width, inner) = (shape.width, shape.inner);
        Ok(Layer {
            query: self.dense(width, width)?,
            key: self.dense(width, width)?,
            value: self.dense(width, width)?,
            output: self.dense(width, width)?,
            attention_norm: self.norm(width)?,
            up: self.dense(inner, width)?,
            down: self.dense(width, inner)?,
            norm: self.norm(width)?,
        })
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Result<Matrix, Damaged> {
        let size = (rows as u64) * (columns / BLOCK) as u64 * 34;
        Matrix::new(Format::Q8_0, rows, columns, &self.0.take(size)?)
    }

    fn vector(&mut self, len: usize) -> Result<Vec<f32>, Damaged> {
        Ok(floats(Format::F32, &self.0.take(len as u64 * 4)?))
    }

    fn dense(&mut self, rows: usize, columns: usize) -> Result<Dense, Damaged> {
        Ok(Dense { weights: self.matrix(rows, columns)?, bias: self.vector(rows)? })
    }

    fn norm(&mut self, len: usize) -> Result<Norm, Damaged> {
        Ok(Norm { weight: self.vector(len)?, bias: self.vector(len)? })
    }
}

#[cfg(test)]
pub(super) mod tests;
