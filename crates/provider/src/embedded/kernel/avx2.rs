//! The operations on eight numbers at a time. The only file of the project with `unsafe`.
//!
//! It needs `unsafe` for two reasons. A function compiled for AVX2 may only be called on a processor with AVX2: the
//! value [`Avx2`] exists only after detection, and every such call goes through it. A load or store takes a pointer:
//! each is made from a reference to an array of exactly the size that is read or written.
#![expect(unsafe_code, reason = "vector instructions; see above")]

use std::arch::x86_64::*;
use std::array::from_fn;

use super::super::matrix::{BLOCK, MatrixRow, QuantKind, QuantMatrix, scale_stride};
use super::{Activations, HeadSlice, scalar};

/// Proof that this processor has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

/// Defines methods that call the AVX2 functions on the proof.
macro_rules! proven {
    ($(fn $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        impl Avx2 {
            $(pub fn $name(self, $($argument: $kind),*) $(-> $result)? {
                // SAFETY: `self` exists only if `detect` found every feature these functions are compiled for.
                unsafe { $name($($argument),*) }
            })*
        }
    };
}

proven! {
    fn multiply(matrix: &QuantMatrix, values: &Activations, out: &mut [f32]);
    fn quantise(values: &[f32], quants: &mut [[i8; BLOCK]], scales: &mut [f32], sums: &mut [f32]);
    fn dot(a: &[f32], b: &[f32]) -> f32;
    fn dot_product(a: &[i8], b: &[i8]) -> i32;
    fn scores(queries: &[f32], width: usize, keys: HeadSlice<'_>, out: &mut [f32]);
    fn mix(weights: &[f32], values: HeadSlice<'_>, width: usize, out: &mut [f32]);
    fn exponents(row: &mut [f32], largest: f32) -> f32;
    fn gate(values: &mut [f32], up: &[f32]);
    fn gelu(values: &mut [f32]);
    fn halve(values: &[f32], out: &mut [u16]);
}

impl Avx2 {
    pub fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_floats(values: &[f32; 8]) -> __m256 {
    // SAFETY: the reference is to eight numbers, and the load needs no alignment.
    unsafe { _mm256_loadu_ps(values.as_ptr()) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn store_floats(values: &mut [f32; 8], vector: __m256) {
    // SAFETY: the exclusive reference covers eight floats, and the store has no alignment requirement.
    unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_halves(values: &[u16; 8]) -> __m256 {
    // SAFETY: the reference is to sixteen bytes, and the load needs no alignment.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(values.as_ptr().cast())) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn store_halves(values: &mut [u16; 8], vector: __m256) {
    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(vector);
    // SAFETY: the exclusive reference covers sixteen bytes, and the store has no alignment requirement.
    unsafe { _mm_storeu_si128(values.as_mut_ptr().cast(), halves) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_bytes<T>(values: &[T; 32]) -> __m256i {
    const { assert!(size_of::<T>() == 1) }
    // SAFETY: the reference is to 32 bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

/// Loads sixteen bytes as 32 nibbles, low nibbles first.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn load_nibbles(values: &[u8; 16]) -> __m256i {
    // SAFETY: the reference is to sixteen bytes, and the load needs no alignment.
    let bytes = unsafe { _mm_loadu_si128(values.as_ptr().cast()) };
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn store_bytes(values: &mut [i8; 32], vector: __m256i) {
    // SAFETY: the exclusive reference covers 32 bytes, and the store has no alignment requirement.
    unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), vector) }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn horizontal_sum(vector: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(vector), _mm256_extractf128_ps::<1>(vector));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

/// Handles several tokens at a time, so that a row is unpacked once for all of them.
#[target_feature(enable = "avx2,fma,f16c")]
fn multiply(matrix: &QuantMatrix, values: &Activations, out: &mut [f32]) {
    for index in 0..matrix.rows {
        let row = matrix.row(index);
        let mut token = 0;
        while token < values.count {
            let out = out[token * matrix.rows..].iter_mut().skip(index).step_by(matrix.rows);
            token += match (row.kind, values.count - token) {
                (QuantKind::Nibbles, 4..) => multiply_tile::<4, true>(row, values, token, out),
                (QuantKind::Nibbles, 2..) => multiply_tile::<2, true>(row, values, token, out),
                (QuantKind::Nibbles, _) => multiply_tile::<1, true>(row, values, token, out),
                (QuantKind::Bytes, 4..) => multiply_tile::<4, false>(row, values, token, out),
                (QuantKind::Bytes, 2..) => multiply_tile::<2, false>(row, values, token, out),
                (QuantKind::Bytes, _) => multiply_tile::<1, false>(row, values, token, out),
            };
        }
    }
}

/// Returns `N` consecutive rows of length `len`, from row `first` on. Not compiled for AVX2, so that its closure is not
/// either: an AVX2 closure would be called instead of inlined.
#[inline(always)]
fn row_slices<T, const N: usize>(all: &[T], first: usize, len: usize) -> [&[T]; N] {
    from_fn(|at| &all[(first + at) * len..][..len])
}

/// Multiplies one row with `T` tokens. Uses loops instead of closures: a closure is not compiled for AVX2, and a vector
/// passed through one goes through memory.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn multiply_tile<'a, const T: usize, const NIBBLES: bool>(
    row: MatrixRow<'_>,
    values: &Activations,
    first: usize,
    out: impl Iterator<Item = &'a mut f32>,
) -> usize {
    let (blocks, chunks) = (values.columns / BLOCK, scale_stride(values.columns) / 8);
    let inputs: [_; T] = row_slices(&values.quants, first, blocks);
    let (scales, sums): ([_; T], [_; T]) =
        (row_slices(&values.scales, first, chunks), row_slices(&values.sums, first, chunks));
    let (row_scales, minima) = (row.scales.as_chunks::<8>().0, row.minima.as_chunks::<8>().0);
    let (nibbles, bytes) = (row.quants.as_chunks::<16>().0, row.quants.as_chunks::<32>().0);
    let ones = _mm256_set1_epi16(1);
    let mut totals = [_mm256_setzero_ps(); T];
    let mut factors = [[0.0_f32; 8]; T];
    for chunk in 0..chunks {
        let scale = load_halves(&row_scales[chunk]);
        for t in 0..T {
            store_floats(&mut factors[t], _mm256_mul_ps(scale, load_floats(&scales[t][chunk])));
        }
        if NIBBLES {
            let minima = load_halves(&minima[chunk]);
            for t in 0..T {
                totals[t] = _mm256_fmadd_ps(minima, load_floats(&sums[t][chunk]), totals[t]);
            }
        }
        let from = chunk * 8;
        for block in from..blocks.min(from + 8) {
            let weights = if NIBBLES { load_nibbles(&nibbles[block]) } else { load_bytes(&bytes[block]) };
            // The instruction takes one unsigned side, so signs of weight bytes move to the input.
            let sizes = if NIBBLES { weights } else { _mm256_abs_epi8(weights) };
            for t in 0..T {
                let input = load_bytes(&inputs[t][block]);
                let input = if NIBBLES { input } else { _mm256_sign_epi8(input, weights) };
                let product = _mm256_madd_epi16(_mm256_maddubs_epi16(sizes, input), ones);
                let factor = _mm256_set1_ps(factors[t][block - from]);
                totals[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(product), factor, totals[t]);
            }
        }
    }
    for (out, total) in out.zip(totals) {
        *out = horizontal_sum(total);
    }
    T
}

#[target_feature(enable = "avx2,fma,f16c")]
fn quantise(values: &[f32], quants: &mut [[i8; BLOCK]], scales: &mut [f32], sums: &mut [f32]) {
    let without_sign = _mm256_set1_ps(-0.0);
    // Packing works on vector halves and leaves groups of four out of order.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    for (index, (block, quants)) in values.as_chunks::<8>().0.chunks_exact(4).zip(quants).enumerate() {
        let parts =
            [load_floats(&block[0]), load_floats(&block[1]), load_floats(&block[2]), load_floats(&block[3])];
        let sizes = parts.map(|part| _mm256_andnot_ps(without_sign, part));
        let largest = _mm256_max_ps(_mm256_max_ps(sizes[0], sizes[1]), _mm256_max_ps(sizes[2], sizes[3]));
        let mut lanes = [0.0; 8];
        store_floats(&mut lanes, largest);
        let scale = lanes.into_iter().fold(0.0_f32, f32::max) / 127.0;
        let inverse = _mm256_set1_ps(if scale > 0.0 { 1.0 / scale } else { 0.0 });
        let [a, b, c, d] = parts.map(|part| _mm256_cvtps_epi32(_mm256_mul_ps(part, inverse)));
        let total = _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
        let packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        store_bytes(quants, _mm256_permutevar8x32_epi32(packed, order));
        scales[index] = scale;
        sums[index] = horizontal_sum(_mm256_cvtepi32_ps(total)) * scale;
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut total = _mm256_setzero_ps();
    for (a, b) in a.iter().zip(b) {
        total = _mm256_fmadd_ps(load_floats(a), load_floats(b), total);
    }
    horizontal_sum(total) + scalar::dot(a_rest, b_rest)
}

/// Widens bytes to 16 bits, multiplies and adds pairs, so no sum overflows.
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_product(a: &[i8], b: &[i8]) -> i32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<32>(), b.as_chunks::<32>());
    let mut totals = [_mm256_setzero_si256(); 2];
    for (a, b) in a.iter().zip(b) {
        for (total, (a, b)) in totals.iter_mut().zip(widen_bytes(a).into_iter().zip(widen_bytes(b))) {
            *total = _mm256_add_epi32(*total, _mm256_madd_epi16(a, b));
        }
    }
    let eight = _mm256_add_epi32(totals[0], totals[1]);
    let four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    let whole = _mm_cvtsi128_si32(two) + _mm_extract_epi32::<1>(two);
    whole + scalar::dot_product(a_rest, b_rest)
}

/// Widens 32 signed bytes to 16 bits.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn widen_bytes(bytes: &[i8; 32]) -> [__m256i; 2] {
    let all = load_bytes(bytes);
    let (low, high) = (_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
    [_mm256_cvtepi8_epi16(low), _mm256_cvtepi8_epi16(high)]
}

#[target_feature(enable = "avx2,fma,f16c")]
fn scores(queries: &[f32], width: usize, keys: HeadSlice<'_>, out: &mut [f32]) {
    let mut done = 0;
    let heads = queries.len() / width;
    while done < heads {
        let (queries, out) = (&queries[done * width..], &mut out[done * keys.positions..]);
        done += match heads - done {
            3.. => heads_scores::<3>(queries, width, keys, out),
            _ => heads_scores::<1>(queries, width, keys, out),
        };
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn heads_scores<const H: usize>(
    queries: &[f32],
    width: usize,
    keys: HeadSlice<'_>,
    out: &mut [f32],
) -> usize {
    let queries: [_; H] = row_slices(queries.as_chunks::<8>().0, 0, width / 8);
    for position in 0..keys.positions {
        let mut totals = [_mm256_setzero_ps(); H];
        for (at, key) in keys.at_position(position, width).as_chunks::<8>().0.iter().enumerate() {
            let key = load_halves(key);
            for head in 0..H {
                totals[head] = _mm256_fmadd_ps(key, load_floats(&queries[head][at]), totals[head]);
            }
        }
        for head in 0..H {
            out[head * keys.positions + position] = horizontal_sum(totals[head]);
        }
    }
    H
}

#[target_feature(enable = "avx2,fma,f16c")]
fn mix(weights: &[f32], values: HeadSlice<'_>, width: usize, out: &mut [f32]) {
    let mut done = 0;
    let heads = weights.len() / values.positions;
    while done < heads {
        let (weights, out) = (&weights[done * values.positions..], &mut out[done * width..]);
        done += match heads - done {
            3.. => heads_mix::<3>(weights, values, width, out),
            _ => heads_mix::<1>(weights, values, width, out),
        };
    }
}

/// Keeps 32 numbers of a head in registers while it goes through all positions.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn heads_mix<const H: usize>(weights: &[f32], values: HeadSlice<'_>, width: usize, out: &mut [f32]) -> usize {
    let weights: [&[f32]; H] = row_slices(weights, 0, values.positions);
    for from in (0..width).step_by(32) {
        let mut totals = [[_mm256_setzero_ps(); 4]; H];
        #[expect(clippy::needless_range_loop, reason = "several rows are read in parallel")]
        for position in 0..values.positions {
            let part = &values.at_position(position, width)[from..];
            for (at, value) in part.as_chunks::<8>().0.iter().take(4).enumerate() {
                let value = load_halves(value);
                for head in 0..H {
                    totals[head][at] =
                        _mm256_fmadd_ps(value, _mm256_set1_ps(weights[head][position]), totals[head][at]);
                }
            }
        }
        for (head, totals) in totals.into_iter().enumerate() {
            let out = out[head * width + from..(head + 1) * width].as_chunks_mut::<8>().0;
            out.iter_mut().zip(totals).for_each(|(out, total)| store_floats(out, total));
        }
    }
    H
}

/// e^x as 2^n × e^r with |r| ≤ ln 2 / 2, where eight terms of the series are exact enough.
#[target_feature(enable = "avx2,fma,f16c")]
#[inline]
fn exp_vector(x: __m256) -> __m256 {
    let x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(88.0)), _mm256_set1_ps(-87.0));
    let n = _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(_mm256_mul_ps(
        x,
        _mm256_set1_ps(std::f32::consts::LOG2_E),
    ));
    // ln 2 in two parts. The first has so few bits that its product with n is exact.
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693_359_4), x);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-0.000_212_194_44), r);
    let mut series = _mm256_set1_ps(1.0 / 5040.0);
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        series = _mm256_fmadd_ps(series, r, _mm256_set1_ps(term));
    }
    let power = _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
    _mm256_mul_ps(series, _mm256_castsi256_ps(power))
}

#[target_feature(enable = "avx2,fma,f16c")]
fn exponents(row: &mut [f32], largest: f32) -> f32 {
    let (whole, rest) = row.as_chunks_mut::<8>();
    let mut total = _mm256_setzero_ps();
    for values in whole {
        let power = exp_vector(_mm256_sub_ps(load_floats(values), _mm256_set1_ps(largest)));
        total = _mm256_add_ps(total, power);
        store_floats(values, power);
    }
    horizontal_sum(total) + scalar::exponents(rest, largest)
}

#[target_feature(enable = "avx2,fma,f16c")]
fn gate(gate: &mut [f32], up: &[f32]) {
    let ((gate, gate_rest), (up, up_rest)) = (gate.as_chunks_mut::<8>(), up.as_chunks::<8>());
    for (gate, up) in gate.iter_mut().zip(up) {
        let value = load_floats(gate);
        let below =
            _mm256_add_ps(_mm256_set1_ps(1.0), exp_vector(_mm256_xor_ps(value, _mm256_set1_ps(-0.0))));
        store_floats(gate, _mm256_mul_ps(_mm256_div_ps(value, below), load_floats(up)));
    }
    scalar::gate(gate_rest, up_rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
fn gelu(values: &mut [f32]) {
    let [p, a1, a2, a3, a4, a5] = scalar::ERF;
    let (whole, rest) = values.as_chunks_mut::<8>();
    let (one, minus) = (_mm256_set1_ps(1.0), _mm256_set1_ps(-0.0));
    for values in whole {
        let value = load_floats(values);
        let x = _mm256_mul_ps(value, _mm256_set1_ps(std::f32::consts::FRAC_1_SQRT_2));
        let size = _mm256_andnot_ps(minus, x);
        let t = _mm256_div_ps(one, _mm256_fmadd_ps(_mm256_set1_ps(p), size, one));
        let mut series = _mm256_set1_ps(a5);
        for term in [a4, a3, a2, a1] {
            series = _mm256_fmadd_ps(series, t, _mm256_set1_ps(term));
        }
        let fall = exp_vector(_mm256_xor_ps(_mm256_mul_ps(x, x), minus));
        let erf = _mm256_fnmadd_ps(_mm256_mul_ps(series, t), fall, one);
        let erf = _mm256_or_ps(erf, _mm256_and_ps(x, minus));
        store_floats(
            values,
            _mm256_mul_ps(_mm256_mul_ps(value, _mm256_set1_ps(0.5)), _mm256_add_ps(one, erf)),
        );
    }
    scalar::gelu(rest);
}

#[target_feature(enable = "avx2,fma,f16c")]
fn halve(values: &[f32], out: &mut [u16]) {
    let ((values, rest), (out, out_rest)) = (values.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (value, out) in values.iter().zip(out) {
        store_halves(out, load_floats(value));
    }
    scalar::halve(rest, out_rest);
}
