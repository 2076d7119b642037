//! The hot arithmetic, on the fastest path of this processor. Every operation exists in plain Rust, which is the
//! reference, and for AVX2, which tests compare with it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;
#[cfg(test)]
mod tests;

use super::matrix::{BLOCK, QuantMatrix, scale_stride};

#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
}

/// Quantized inputs of a matrix: signed bytes in blocks of 32, one row per token. `sums` are needed by matrices with
/// minima.
#[derive(Default)]
pub(super) struct Activations {
    pub count: usize,
    pub columns: usize,
    pub quants: Vec<[i8; BLOCK]>,
    pub scales: Vec<[f32; 8]>,
    pub sums: Vec<[f32; 8]>,
}

/// Keys or values of one head within those of all heads and positions.
#[derive(Clone, Copy)]
pub(super) struct HeadSlice<'a> {
    pub halves: &'a [u16],
    /// Distance between positions.
    pub stride: usize,
    /// Start of the head within a position.
    pub offset: usize,
    pub positions: usize,
}

impl<'a> HeadSlice<'a> {
    pub fn at_position(&self, position: usize, width: usize) -> &'a [u16] {
        let start = position * self.stride + self.offset;
        &self.halves[start..start + width]
    }
}

macro_rules! on_fastest {
    ($kernel:expr, $operation:ident ( $($argument:expr),* )) => {
        match $kernel {
            Kernel::Scalar => scalar::$operation($($argument),*),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(avx2) => avx2.$operation($($argument),*),
        }
    };
}

impl Kernel {
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = avx2::Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Scalar
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2",
        }
    }

    /// Multiplies every row of `values` by `matrix`. `out` gets one row per token.
    pub fn multiply(self, matrix: &QuantMatrix, values: &Activations, out: &mut [f32]) {
        assert_eq!(matrix.columns, values.columns, "the shapes fit");
        assert_eq!(out.len(), values.count * matrix.rows, "the result has its room");
        on_fastest!(self, multiply(matrix, values, out));
    }

    pub fn dot(self, a: &[f32], b: &[f32]) -> f32 {
        on_fastest!(self, dot(a, b))
    }

    /// Returns the dot product of two byte rows.
    pub fn dot_product(self, a: &[i8], b: &[i8]) -> i32 {
        on_fastest!(self, dot_product(a, b))
    }

    /// Computes the attention scores of several query heads that share keys. `out` has one row per head.
    pub fn scores(self, queries: &[f32], width: usize, keys: HeadSlice<'_>, out: &mut [f32]) {
        on_fastest!(self, scores(queries, width, keys, out));
    }

    /// Sums the values, weighted by each head's row of `weights`.
    pub fn mix(self, weights: &[f32], values: HeadSlice<'_>, width: usize, out: &mut [f32]) {
        on_fastest!(self, mix(weights, values, width, out));
    }

    /// Applies softmax to a row.
    pub fn softmax(self, row: &mut [f32]) {
        let largest = row.iter().fold(f32::NEG_INFINITY, |largest, value| largest.max(*value));
        let sum = on_fastest!(self, exponents(row, largest));
        let inverse = 1.0 / sum;
        row.iter_mut().for_each(|value| *value *= inverse);
    }

    /// Sets `gate` to silu(gate) × up.
    pub fn gate(self, gate: &mut [f32], up: &[f32]) {
        on_fastest!(self, gate(gate, up));
    }

    pub fn gelu(self, values: &mut [f32]) {
        on_fastest!(self, gelu(values));
    }

    pub fn halve(self, values: &[f32], out: &mut [u16]) {
        on_fastest!(self, halve(values, out));
    }
}

impl Activations {
    /// Quantizes rows of `columns` numbers.
    pub fn quantize_rows(&mut self, kernel: Kernel, values: &[f32], columns: usize) {
        let (blocks, chunks) = (columns / BLOCK, scale_stride(columns) / 8);
        self.columns = columns;
        self.count = values.len() / columns;
        self.quants.resize(self.count * blocks, [0; BLOCK]);
        self.scales.resize(self.count * chunks, [0.0; 8]);
        self.sums.resize(self.count * chunks, [0.0; 8]);
        for (index, row) in values.chunks_exact(columns).enumerate() {
            let (quants, from) = (&mut self.quants[index * blocks..][..blocks], index * chunks);
            let scales = self.scales[from..from + chunks].as_flattened_mut();
            let sums = self.sums[from..from + chunks].as_flattened_mut();
            scales[blocks..].fill(0.0);
            sums[blocks..].fill(0.0);
            on_fastest!(kernel, quantise(row, quants, scales, sums));
        }
    }
}
