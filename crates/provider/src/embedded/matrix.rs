//! Matrices in the layout of the kernels: integers in blocks of 32, with the scales stored separately.

use super::{CorruptModelFile, half};

pub(super) const BLOCK: usize = 32;
/// Scales are read eight at a time, so each row of them is padded to a multiple of this.
const SCALE_ALIGNMENT: usize = 8;

/// The number format of a tensor in a file. Unquantized tensors are quantized when they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TensorFormat {
    F32,
    F16,
    /// Blocks of a scale, a minimum and 32 nibbles.
    Q4_1,
    /// Blocks of a scale and 32 signed bytes.
    Q8_0,
}

impl TensorFormat {
    pub fn from_gguf(kind: u32) -> Result<Self, CorruptModelFile> {
        match kind {
            0 => Ok(Self::F32),
            1 => Ok(Self::F16),
            3 => Ok(Self::Q4_1),
            8 => Ok(Self::Q8_0),
            _ => Err(CorruptModelFile::new(format!(
                "tensor type {kind} is not supported; use F32, F16, Q4_1 or Q8_0"
            ))),
        }
    }

    /// Returns the byte size of a matrix; `None` if the shape does not fit the format.
    pub fn byte_len(self, rows: usize, columns: usize) -> Option<u64> {
        let (group, size) = match self {
            Self::F32 => (1, 4),
            Self::F16 => (1, 2),
            Self::Q4_1 => (BLOCK, 20),
            Self::Q8_0 => (BLOCK, 34),
        };
        if rows == 0 || columns == 0 || !columns.is_multiple_of(group) {
            return None;
        }
        let groups = (columns / group).checked_mul(rows)?;
        u64::try_from(groups.checked_mul(size)?).ok()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuantKind {
    /// 16 bytes per block. The low nibbles are the first 16 numbers.
    Nibbles,
    /// 32 signed bytes per block.
    Bytes,
}

pub(super) struct QuantMatrix {
    pub rows: usize,
    pub columns: usize,
    pub kind: QuantKind,
    quants: Vec<u8>,
    /// Half-precision scales, [`scale_stride`] per row.
    scales: Vec<u16>,
    /// Half-precision minima, likewise; empty if the format has none.
    minima: Vec<u16>,
}

/// One row, for the kernels.
#[derive(Clone, Copy)]
pub(super) struct MatrixRow<'a> {
    pub kind: QuantKind,
    pub quants: &'a [u8],
    pub scales: &'a [u16],
    pub minima: &'a [u16],
}

/// Returns the number of scales per row of `columns` numbers, including padding.
pub(super) fn scale_stride(columns: usize) -> usize {
    (columns / BLOCK).next_multiple_of(SCALE_ALIGNMENT)
}

impl QuantMatrix {
    pub fn new(
        format: TensorFormat,
        rows: usize,
        columns: usize,
        bytes: &[u8],
    ) -> Result<Self, CorruptModelFile> {
        let fits = format.byte_len(rows, columns) == u64::try_from(bytes.len()).ok();
        if !fits || !columns.is_multiple_of(BLOCK) {
            return Err(CorruptModelFile::new(format!("a matrix of {rows} × {columns} is not supported")));
        }
        let mut matrix = match format {
            TensorFormat::Q4_1 => Self::from_blocks(QuantKind::Nibbles, rows, columns, bytes),
            TensorFormat::Q8_0 => Self::from_blocks(QuantKind::Bytes, rows, columns, bytes),
            TensorFormat::F32 | TensorFormat::F16 => {
                Self::quantize_floats(rows, columns, &decode_floats(format, bytes))
            }
        };
        // A scale that is NaN or infinite would spread to every answer.
        for scale in matrix.scales.iter_mut().chain(&mut matrix.minima) {
            if !half::to_f32(*scale).is_finite() {
                *scale = 0;
            }
        }
        Ok(matrix)
    }

    /// Splits the blocks of a file into numbers and scales.
    fn from_blocks(kind: QuantKind, rows: usize, columns: usize, bytes: &[u8]) -> Self {
        let (head, body) = match kind {
            QuantKind::Nibbles => (4, 16),
            QuantKind::Bytes => (2, 32),
        };
        let (stride, per_row) = (scale_stride(columns), columns / BLOCK);
        let mut quants = Vec::with_capacity(rows * per_row * body);
        let mut scales = vec![0; rows * stride];
        let mut minima = if kind == QuantKind::Nibbles { vec![0; rows * stride] } else { Vec::new() };
        for (index, block) in bytes.chunks_exact(head + body).enumerate() {
            let at = index / per_row * stride + index % per_row;
            scales[at] = u16::from_le_bytes([block[0], block[1]]);
            if kind == QuantKind::Nibbles {
                minima[at] = u16::from_le_bytes([block[2], block[3]]);
            }
            quants.extend_from_slice(&block[head..]);
        }
        Self { rows, columns, kind, quants, scales, minima }
    }

    /// Quantizes plain numbers to signed bytes with one scale per block: about a quarter of the size of f32 with hardly
    /// any loss.
    pub fn quantize_floats(rows: usize, columns: usize, values: &[f32]) -> Self {
        let (stride, per_row) = (scale_stride(columns), columns / BLOCK);
        let mut quants = Vec::with_capacity(values.len());
        let mut scales = vec![0; rows * stride];
        for (index, block) in values.chunks_exact(BLOCK).enumerate() {
            let largest = block.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
            let scale = half::from_f32(largest / 127.0);
            scales[index / per_row * stride + index % per_row] = scale;
            let scale = half::to_f32(scale);
            let inverse = if scale > 0.0 && scale.is_finite() { 1.0 / scale } else { 0.0 };
            quants
                .extend(block.iter().map(|value| (value * inverse).round().clamp(-127.0, 127.0) as i8 as u8));
        }
        Self { rows, columns, kind: QuantKind::Bytes, quants, scales, minima: Vec::new() }
    }

    /// Writes signed bytes as the blocks of a file.
    pub fn to_blocks(&self) -> Vec<u8> {
        let (stride, per_row) = (scale_stride(self.columns), self.columns / BLOCK);
        let mut blocks = Vec::with_capacity(self.quants.len() / BLOCK * 34);
        for (index, quants) in self.quants.chunks_exact(BLOCK).enumerate() {
            blocks.extend(self.scales[index / per_row * stride + index % per_row].to_le_bytes());
            blocks.extend_from_slice(quants);
        }
        blocks
    }

    pub fn row(&self, index: usize) -> MatrixRow<'_> {
        let stride = scale_stride(self.columns);
        let bytes = self.quants.len() / self.rows;
        let minima = if self.minima.is_empty() { 0..0 } else { index * stride..(index + 1) * stride };
        MatrixRow {
            kind: self.kind,
            quants: &self.quants[index * bytes..(index + 1) * bytes],
            scales: &self.scales[index * stride..(index + 1) * stride],
            minima: &self.minima[minima],
        }
    }

    /// Unpacks one row into plain numbers, for example the embedding of a token.
    pub fn unpack_row(&self, index: usize, out: &mut [f32]) {
        let row = self.row(index);
        for (block, out) in out.chunks_exact_mut(BLOCK).enumerate() {
            let scale = half::to_f32(row.scales[block]);
            match row.kind {
                QuantKind::Nibbles => {
                    let minimum = half::to_f32(row.minima[block]);
                    let bytes = &row.quants[block * 16..(block + 1) * 16];
                    for (at, byte) in bytes.iter().enumerate() {
                        out[at] = f32::from(byte & 15) * scale + minimum;
                        out[at + 16] = f32::from(byte >> 4) * scale + minimum;
                    }
                }
                QuantKind::Bytes => {
                    let bytes = &row.quants[block * BLOCK..(block + 1) * BLOCK];
                    for (out, byte) in out.iter_mut().zip(bytes) {
                        *out = f32::from(*byte as i8) * scale;
                    }
                }
            }
        }
    }
}

/// Decodes plain numbers of a file. NaN and infinity become zero.
pub(super) fn decode_floats(format: TensorFormat, bytes: &[u8]) -> Vec<f32> {
    let finite = |value: f32| if value.is_finite() { value } else { 0.0 };
    match format {
        TensorFormat::F16 => {
            let (pairs, _) = bytes.as_chunks::<2>();
            pairs.iter().map(|pair| finite(half::to_f32(u16::from_le_bytes(*pair)))).collect()
        }
        _ => {
            let (quads, _) = bytes.as_chunks::<4>();
            quads.iter().map(|quad| finite(f32::from_le_bytes(*quad))).collect()
        }
    }
}
