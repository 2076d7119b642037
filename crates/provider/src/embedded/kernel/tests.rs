//! Compares the AVX2 kernel with the scalar one on many shapes.

use super::super::half;
use super::super::matrix::{QuantMatrix, TensorFormat};
use super::*;

/// Pseudo-random numbers between -1 and 1, the same in every run.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 23) - 1.0
    };
    (0..count).map(|_| next() as f32).collect()
}

fn fast() -> Kernel {
    let kernel = Kernel::detect();
    assert!(
        kernel.name() == "avx2" || !cfg!(target_arch = "x86_64"),
        "these tests need AVX2 to say anything"
    );
    kernel
}

fn assert_close(fast: &[f32], plain: &[f32], tolerance: f32) {
    assert_eq!(fast.len(), plain.len());
    for (at, (fast, plain)) in fast.iter().zip(plain).enumerate() {
        let close = (fast - plain).abs() <= tolerance * (1.0 + plain.abs());
        assert!(close, "number {at}: {fast} against {plain}");
    }
}

/// A matrix in file blocks, with every nibble and sign.
fn matrix(format: TensorFormat, rows: usize, columns: usize) -> QuantMatrix {
    let size = format.byte_len(rows, columns).unwrap() as usize;
    let mut bytes: Vec<u8> = (0..size).map(|at| (at * 89 + at / 7) as u8).collect();
    let (block, heads) = if format == TensorFormat::Q4_1 { (20, 2) } else { (34, 1) };
    for (index, block) in bytes.chunks_exact_mut(block).enumerate() {
        for head in 0..heads {
            let scale = half::from_f32(0.01 + (index % 5) as f32 * 0.003 - head as f32 * 0.05);
            block[head * 2..head * 2 + 2].copy_from_slice(&scale.to_le_bytes());
        }
    }
    QuantMatrix::new(format, rows, columns, &bytes).unwrap()
}

#[test]
fn multiply_agrees_for_all_formats_and_shapes() {
    for format in [TensorFormat::Q4_1, TensorFormat::Q8_0] {
        for columns in [32, 256, 288, 576, 1536] {
            let matrix = matrix(format, 7, columns);
            for count in [1, 3, 4, 9] {
                let values = numbers(columns * count, 5);
                let result = |kernel: Kernel| {
                    let (mut inputs, mut out) = (Activations::default(), vec![0.0; 7 * count]);
                    inputs.quantize_rows(kernel, &values, columns);
                    kernel.multiply(&matrix, &inputs, &mut out);
                    out
                };
                assert_close(&result(fast()), &result(Kernel::Scalar), 1e-4);
            }
        }
    }
}

#[test]
fn quantized_product_is_close_to_exact_product() {
    let (columns, matrix) = (576, matrix(TensorFormat::Q4_1, 3, 576));
    let values = numbers(columns, 9);
    let (mut inputs, mut out, mut row) = (Activations::default(), [0.0; 3], vec![0.0; columns]);
    inputs.quantize_rows(Kernel::Scalar, &values, columns);
    Kernel::Scalar.multiply(&matrix, &inputs, &mut out);
    for (index, out) in out.iter().enumerate() {
        matrix.unpack_row(index, &mut row);
        let exact = scalar::dot(&row, &values);
        assert!((out - exact).abs() < 0.05, "{out} against {exact}");
    }
}

#[test]
fn quantized_rows_agree_and_zeros_stay_zero() {
    let mut values = numbers(96, 3);
    values[32..64].fill(0.0);
    let filled = |kernel| {
        let mut inputs = Activations::default();
        inputs.quantize_rows(kernel, &values, 96);
        inputs
    };
    let (fast, plain) = (filled(fast()), filled(Kernel::Scalar));
    assert_eq!(fast.quants, plain.quants);
    assert_eq!(plain.quants[1], [0; 32]);
    assert_close(fast.scales.as_flattened(), plain.scales.as_flattened(), 1e-6);
    assert_close(fast.sums.as_flattened(), plain.sums.as_flattened(), 1e-5);
}

#[test]
fn attention_agrees_for_every_head_count() {
    let (width, positions, stride) = (64, 37, 192);
    let halves: Vec<u16> = numbers(positions * stride, 4).into_iter().map(half::from_f32).collect();
    let lane = HeadSlice { halves: &halves, stride, offset: 64, positions };
    for heads in 1..=7 {
        let (queries, weights) = (numbers(heads * width, 6), numbers(heads * positions, 7));
        let scores = |kernel: Kernel| {
            let mut out = vec![0.0; heads * positions];
            kernel.scores(&queries, width, lane, &mut out);
            out
        };
        let mixed = |kernel: Kernel| {
            let mut out = vec![9.0; heads * width];
            kernel.mix(&weights, lane, width, &mut out);
            out
        };
        assert_close(&scores(fast()), &scores(Kernel::Scalar), 1e-5);
        assert_close(&mixed(fast()), &mixed(Kernel::Scalar), 1e-5);
    }
}

type Operation<'a> = &'a dyn Fn(Kernel, &mut [f32]);

#[test]
fn activation_functions_agree_far_from_zero() {
    let wide: Vec<f32> = (-450..450).map(|at| at as f32 / 5.0).chain([0.0, -0.0, 1e-20]).collect();
    let up = numbers(wide.len(), 2);
    let run = |operation: Operation<'_>, kernel: Kernel| {
        let mut values = wide.clone();
        operation(kernel, &mut values);
        values
    };
    let operations: [Operation<'_>; 3] = [
        &|kernel, values| kernel.softmax(values),
        &|kernel, values| kernel.gelu(values),
        &|kernel, values| {
            kernel.gate(values, &up);
        },
    ];
    for operation in operations {
        assert_close(&run(operation, fast()), &run(operation, Kernel::Scalar), 1e-5);
    }
    assert!((run(operations[0], fast()).iter().sum::<f32>() - 1.0).abs() < 1e-4);
}

#[test]
fn dot_and_half_conversion_agree_for_odd_lengths() {
    let (a, b) = (numbers(67, 1), numbers(67, 2));
    assert!((fast().dot(&a, &b) - Kernel::Scalar.dot(&a, &b)).abs() < 1e-5);
    let (mut fast_out, mut plain_out) = ([0; 67], [0; 67]);
    fast().halve(&a, &mut fast_out);
    Kernel::Scalar.halve(&a, &mut plain_out);
    assert_eq!(fast_out, plain_out);
}

#[test]
fn integer_dot_products_agree_for_every_length() {
    for length in [0, 1, 31, 32, 33, 384, 1000] {
        let a: Vec<i8> = (0..length).map(|n| i8::try_from(n % 255 - 127).unwrap()).collect();
        let b: Vec<i8> = (0..length).map(|n| i8::try_from(n * 7 % 256 - 128).unwrap()).collect();
        for (a, b) in [(&a, &b), (&b, &b)] {
            assert_eq!(fast().dot_product(a, b), Kernel::Scalar.dot_product(a, b), "{length}");
        }
    }
    assert_eq!(fast().dot_product(&[-128; 4096], &[-128; 4096]), 4096 * 128 * 128);
}
