//! The file format of the embedding model: 8-bit instead of the published 32-bit weights, so a quarter of the size.
//! Written once when the model is pulled.
//!
//! `PCLEMBED`, a version, the SHA-256 of all that follows; then the shape, the vocabulary and the tensors in a fixed
//! order.

use std::io::{Read, Seek};

use sha2::{Digest, Sha256};

use super::CorruptModelFile;
use super::bytes::ModelFileReader;
use super::encoder::{DenseLayer, EncoderLayer, EncoderShape, LayerNorm, TextEncoder};
use super::matrix::{BLOCK, QuantMatrix, TensorFormat, decode_floats};
use super::safetensors::Safetensors;
use super::wordpiece::WordPiece;

const FILE_MAGIC: [u8; 8] = *b"PCLEMBED";
const FILE_VERSION: u32 = 1;
const MAX_FILE_BYTES: u64 = 1 << 28;

/// The shape of all-MiniLM-L6-v2.
pub(super) const MINILM_SHAPE: EncoderShape =
    EncoderShape { layers: 6, width: 384, inner: 1536, heads: 12, vocabulary: 30_522, positions: 512 };

/// Converts the published model to this format.
pub(super) fn convert_encoder<R: Read + Seek>(
    weights: R,
    vocabulary: &str,
    shape: EncoderShape,
) -> Result<Vec<u8>, CorruptModelFile> {
    let mut source = Safetensors::open(weights)?;
    WordPiece::new(vocabulary)?;
    let mut body = Vec::new();
    body.extend(shape.sizes().iter().flat_map(|size| size.to_le_bytes()));
    body.extend((vocabulary.len() as u64).to_le_bytes());
    body.extend(vocabulary.as_bytes());
    let mut writer = EncoderFileWriter { source: &mut source, body: &mut body };
    let (width, inner) = (shape.width, shape.inner);
    writer.write_matrix("embeddings.word_embeddings.weight", shape.vocabulary, width)?;
    writer.write_positions(shape)?;
    writer.write_norm("embeddings.LayerNorm", width)?;
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        for part in ["self.query", "self.key", "self.value", "output.dense"] {
            writer.write_dense(&name(&format!("attention.{part}")), width, width)?;
        }
        writer.write_norm(&name("attention.output.LayerNorm"), width)?;
        writer.write_dense(&name("intermediate.dense"), inner, width)?;
        writer.write_dense(&name("output.dense"), width, inner)?;
        writer.write_norm(&name("output.LayerNorm"), width)?;
    }
    let hash = Sha256::digest(&body);
    Ok([&FILE_MAGIC[..], &FILE_VERSION.to_le_bytes(), &hash, &body].concat())
}

struct EncoderFileWriter<'a, R> {
    source: &'a mut Safetensors<R>,
    body: &'a mut Vec<u8>,
}

impl<R: Read + Seek> EncoderFileWriter<'_, R> {
    fn write_matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<(), CorruptModelFile> {
        let values = self.source.read_floats(name, &[rows, columns])?;
        self.body.extend(QuantMatrix::quantize_floats(rows, columns, &values).to_blocks());
        Ok(())
    }

    /// Every token of a single text has the first token type, so its embedding is added to the positions here.
    fn write_positions(&mut self, shape: EncoderShape) -> Result<(), CorruptModelFile> {
        let (rows, width) = (shape.positions, shape.width);
        let mut values = self.source.read_floats("embeddings.position_embeddings.weight", &[rows, width])?;
        let kinds = self.source.read_floats("embeddings.token_type_embeddings.weight", &[2, width])?;
        for row in values.chunks_exact_mut(width) {
            row.iter_mut().zip(&kinds).for_each(|(value, kind)| *value += kind);
        }
        self.body.extend(QuantMatrix::quantize_floats(rows, width, &values).to_blocks());
        Ok(())
    }

    fn write_vector(&mut self, name: &str, len: usize) -> Result<(), CorruptModelFile> {
        let values = self.source.read_floats(name, &[len])?;
        self.body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        Ok(())
    }

    fn write_dense(&mut self, name: &str, rows: usize, columns: usize) -> Result<(), CorruptModelFile> {
        self.write_matrix(&format!("{name}.weight"), rows, columns)?;
        self.write_vector(&format!("{name}.bias"), rows)
    }

    fn write_norm(&mut self, name: &str, len: usize) -> Result<(), CorruptModelFile> {
        self.write_vector(&format!("{name}.weight"), len)?;
        self.write_vector(&format!("{name}.bias"), len)
    }
}

/// Reads a file of this format with the given shape.
pub(super) fn read_encoder<R: Read + Seek>(
    file: R,
    shape: EncoderShape,
) -> Result<(TextEncoder, WordPiece), CorruptModelFile> {
    let mut bytes = ModelFileReader::new(file)?;
    if bytes.read_array::<8>()? != FILE_MAGIC {
        return Err(CorruptModelFile::new("it is not a Polyclaw embedding model"));
    }
    let version = bytes.read_u32()?;
    if version != FILE_VERSION {
        return Err(CorruptModelFile::new(format!(
            "its version is {version}; only {FILE_VERSION} is supported"
        )));
    }
    let hash = bytes.read_array::<32>()?;
    if bytes.remaining_bytes() > MAX_FILE_BYTES {
        return Err(CorruptModelFile::new("it is larger than any supported model"));
    }
    let size = bytes.remaining_bytes();
    let body = bytes.read_bytes(size)?;
    if Sha256::digest(&body)[..] != hash {
        return Err(CorruptModelFile::new("its checksum does not match: pull it again"));
    }
    EncoderFileReader(ModelFileReader::new(std::io::Cursor::new(body))?).read(shape)
}

struct EncoderFileReader<R>(ModelFileReader<R>);

impl<R: Read + Seek> EncoderFileReader<R> {
    fn read(mut self, shape: EncoderShape) -> Result<(TextEncoder, WordPiece), CorruptModelFile> {
        for size in shape.sizes() {
            if self.0.read_u32()? != size {
                return Err(CorruptModelFile::new("its dimensions differ from those of the embedding model"));
            }
        }
        let width = shape.width;
        let words = WordPiece::new(&self.0.read_text()?)?;
        let encoder = TextEncoder {
            shape,
            words: self.read_matrix(shape.vocabulary, width)?,
            places: self.read_matrix(shape.positions, width)?,
            norm: self.read_norm(width)?,
            layers: (0..shape.layers).map(|_| self.read_layer(shape)).collect::<Result<_, _>>()?,
        };
        match self.0.remaining_bytes() {
            0 => Ok((encoder, words)),
            left => Err(CorruptModelFile::new(format!("it has {left} unexpected bytes at the end"))),
        }
    }

    fn read_layer(&mut self, shape: EncoderShape) -> Result<EncoderLayer, CorruptModelFile> {
        let (width, inner) = (shape.width, shape.inner);
        Ok(EncoderLayer {
            query: self.read_dense(width, width)?,
            key: self.read_dense(width, width)?,
            value: self.read_dense(width, width)?,
            output: self.read_dense(width, width)?,
            attention_norm: self.read_norm(width)?,
            up: self.read_dense(inner, width)?,
            down: self.read_dense(width, inner)?,
            norm: self.read_norm(width)?,
        })
    }

    fn read_matrix(&mut self, rows: usize, columns: usize) -> Result<QuantMatrix, CorruptModelFile> {
        let size = (rows as u64) * (columns / BLOCK) as u64 * 34;
        QuantMatrix::new(TensorFormat::Q8_0, rows, columns, &self.0.read_bytes(size)?)
    }

    fn read_vector(&mut self, len: usize) -> Result<Vec<f32>, CorruptModelFile> {
        Ok(decode_floats(TensorFormat::F32, &self.0.read_bytes(len as u64 * 4)?))
    }

    fn read_dense(&mut self, rows: usize, columns: usize) -> Result<DenseLayer, CorruptModelFile> {
        Ok(DenseLayer { weights: self.read_matrix(rows, columns)?, bias: self.read_vector(rows)? })
    }

    fn read_norm(&mut self, len: usize) -> Result<LayerNorm, CorruptModelFile> {
        Ok(LayerNorm { weight: self.read_vector(len)?, bias: self.read_vector(len)? })
    }
}

#[cfg(test)]
pub(super) mod tests;
