//! The operations in plain Rust, for every processor.

use super::super::half;
use super::super::matrix::{BLOCK, MatrixRow, QuantKind, QuantMatrix, scale_stride};
use super::{Activations, HeadSlice};

pub fn multiply(matrix: &QuantMatrix, values: &Activations, out: &mut [f32]) {
    for (token, out) in out.chunks_exact_mut(matrix.rows).enumerate() {
        for (index, out) in out.iter_mut().enumerate() {
            *out = row_times(matrix.row(index), values, token);
        }
    }
}

fn row_times(row: MatrixRow<'_>, values: &Activations, token: usize) -> f32 {
    let (blocks, chunks) = (values.columns / BLOCK, scale_stride(values.columns) / 8);
    let scales = values.scales[token * chunks..][..chunks].as_flattened();
    let sums = values.sums[token * chunks..][..chunks].as_flattened();
    let mut total = 0.0;
    for (block, quants) in values.quants[token * blocks..][..blocks].iter().enumerate() {
        let product = match row.kind {
            QuantKind::Nibbles => {
                total += half::to_f32(row.minima[block]) * sums[block];
                let (first, second) = quants.split_at(16);
                let bytes = row.quants[block * 16..][..16].iter().zip(first.iter().zip(second));
                bytes
                    .map(|(byte, (a, b))| {
                        i32::from(byte & 15) * i32::from(*a) + i32::from(byte >> 4) * i32::from(*b)
                    })
                    .sum::<i32>()
            }
            QuantKind::Bytes => {
                let bytes = row.quants[block * BLOCK..][..BLOCK].iter().zip(quants);
                bytes.map(|(byte, value)| i32::from(*byte as i8) * i32::from(*value)).sum()
            }
        };
        total += product as f32 * half::to_f32(row.scales[block]) * scales[block];
    }
    total
}

pub fn quantise(values: &[f32], quants: &mut [[i8; BLOCK]], scales: &mut [f32], sums: &mut [f32]) {
    for (index, (block, quants)) in values.chunks_exact(BLOCK).zip(quants).enumerate() {
        let largest = block.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = largest / 127.0;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let mut sum = 0;
        for (quant, value) in quants.iter_mut().zip(block) {
            *quant = (value * inverse).round_ties_even() as i8;
            sum += i32::from(*quant);
        }
        scales[index] = scale;
        sums[index] = sum as f32 * scale;
    }
}

pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub use polyclaw_domain::embedding::dot_product;

pub fn scores(queries: &[f32], width: usize, keys: HeadSlice<'_>, out: &mut [f32]) {
    for (query, out) in queries.chunks_exact(width).zip(out.chunks_exact_mut(keys.positions)) {
        for (position, out) in out.iter_mut().enumerate() {
            let key = keys.at_position(position, width);
            *out = query.iter().zip(key).map(|(query, key)| query * half::to_f32(*key)).sum();
        }
    }
}

pub fn mix(weights: &[f32], values: HeadSlice<'_>, width: usize, out: &mut [f32]) {
    for (weights, out) in weights.chunks_exact(values.positions).zip(out.chunks_exact_mut(width)) {
        out.fill(0.0);
        for (position, weight) in weights.iter().enumerate() {
            for (out, value) in out.iter_mut().zip(values.at_position(position, width)) {
                *out += weight * half::to_f32(*value);
            }
        }
    }
}

/// Replaces each number by e to the power of its difference from the largest and returns the sum.
pub fn exponents(row: &mut [f32], largest: f32) -> f32 {
    row.iter_mut().for_each(|value| *value = (*value - largest).exp());
    row.iter().sum()
}

pub fn gate(gate: &mut [f32], up: &[f32]) {
    for (gate, up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + (-*gate).exp()) * up;
    }
}

pub fn gelu(values: &mut [f32]) {
    values
        .iter_mut()
        .for_each(|value| *value = 0.5 * *value * (1.0 + erf(*value * std::f32::consts::FRAC_1_SQRT_2)));
}

/// Coefficients of approximation 7.1.26 of Abramowitz and Stegun, with an error of at most 1.5e-7.
pub const ERF: [f32; 6] = [0.327_591_1, 0.254_829_6, -0.284_496_74, 1.421_413_7, -1.453_152, 1.061_405_4];

fn erf(x: f32) -> f32 {
    let [p, a1, a2, a3, a4, a5] = ERF;
    let t = 1.0 / (1.0 + p * x.abs());
    let series = t * (a1 + t * (a2 + t * (a3 + t * (a4 + t * a5))));
    (1.0 - series * (-x * x).exp()).copysign(x)
}

pub fn halve(values: &[f32], out: &mut [u16]) {
    for (out, value) in out.iter_mut().zip(values) {
        *out = half::from_f32(*value);
    }
}
