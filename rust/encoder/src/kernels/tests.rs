//! Every kernel of this processor against plain loops in f64.

use proptest::prelude::*;

use super::*;

/// Numbers in -1..1 that depend on `seed` alone.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..count).map(next).collect()
}

fn panels(inputs: usize, weights: &[f32], bias: &[f32]) -> Panels {
    let dense = Dense::new(inputs, weights.to_vec(), bias.to_vec());
    Panels::pack(dense, &mut Buffer::zeroed(weights.len()))
}

fn quantized_panels(inputs: usize, weights: &[f32], bias: &[f32]) -> QuantizedPanels {
    let dense = Dense::new(inputs, weights.to_vec(), bias.to_vec());
    QuantizedPanels::pack(dense, &mut Buffer::zeroed(weights.len()))
}

fn tables() -> Vec<&'static Kernels> {
    let tables = Level::ALL
        .into_iter()
        .filter_map(Kernels::for_level)
        .collect::<Vec<_>>();
    assert!(!tables.is_empty(), "there is a level to test");
    tables
}

/// `erf` by its Taylor series for small arguments and a continued fraction of `erfc` for large ones.
fn erf(x: f64) -> f64 {
    if x.abs() < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..60 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        return sum * 2.0 / std::f64::consts::PI.sqrt();
    }
    let fraction = (1..60)
        .rev()
        .fold(0.0, |tail, n| f64::from(n) / 2.0 / (x.abs() + tail));
    let erfc = (-x * x).exp() / std::f64::consts::PI.sqrt() / (x.abs() + fraction);
    x.signum() * (1.0 - erfc)
}

fn gelu(x: f64) -> f64 {
    x * (1.0 + erf(x / std::f64::consts::SQRT_2)) / 2.0
}

/// What a projection should give, and the magnitude that its rounding errors are measured against.
fn projected(
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    before: &[f32],
    finish: Finish,
) -> Vec<f64> {
    let depth = weights.len() / bias.len();
    let rows = input.chunks_exact(depth);
    let sums = rows.flat_map(|row| {
        weights
            .chunks_exact(depth)
            .zip(bias)
            .map(move |(weights, &bias)| {
                let products = row
                    .iter()
                    .zip(weights)
                    .map(|(&a, &b)| f64::from(a) * f64::from(b));
                products.sum::<f64>() + f64::from(bias)
            })
    });
    sums.zip(before)
        .map(|(sum, &before)| match finish {
            Finish::Store => sum,
            Finish::Gelu => gelu(sum),
            Finish::Add => sum + f64::from(before),
        })
        .collect()
}

fn assert_close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected).abs();
        assert!(
            error <= tolerance,
            "{what}: {found} at {at}, expected {expected}"
        );
    }
}

#[test]
fn a_projection_of_any_number_of_rows_is_the_sum_of_products() {
    let (depth, width) = (48, 64);
    let (weights, bias) = (numbers(depth * width, 1), numbers(width, 2));
    let panels = panels(depth, &weights, &bias);
    for rows in 0..=2 * MOST_ROWS + 1 {
        let (input, before) = (numbers(rows * depth, 3), numbers(rows * width, 4));
        for finish in [Finish::Store, Finish::Gelu, Finish::Add] {
            let expected = projected(&input, &weights, &bias, &before, finish);
            for kernels in tables() {
                let mut output = before.clone();
                kernels.project(&input, &panels, &mut output, finish);
                assert_close(
                    &output,
                    &expected,
                    1e-5,
                    &format!("{} {rows} {finish:?}", kernels.level()),
                );
            }
        }
    }
}

#[test]
fn an_int8_projection_is_exact_but_for_the_rounding_of_its_factors() {
    let (depth, width) = (48, 64);
    let (weights, bias) = (numbers(depth * width, 1), numbers(width, 2));
    let panels = quantized_panels(depth, &weights, &bias);
    let weights = rounded_weights(&weights, depth);
    let Some(kernels) = Int8Kernels::for_level(Level::detect()) else {
        return;
    };
    for rows in 0..=2 * MOST_ROWS + 1 {
        let (input, before) = (numbers(rows * depth, 3), numbers(rows * width, 4));
        for finish in [Finish::Store, Finish::Gelu, Finish::Add] {
            let rounded = rounded_rows(&input, depth);
            let expected = projected(&rounded, &weights, &bias, &before, finish);
            let mut output = before.clone();
            kernels.project(
                &input,
                &mut QuantizedRows::new(rows, depth),
                &panels,
                &mut output,
                finish,
            );
            assert_close(&output, &expected, 1e-5, &format!("{rows} {finish:?}"));
        }
    }
}

/// Each row of weights at the resolution of its codes, which are symmetric.
fn rounded_weights(values: &[f32], width: usize) -> Vec<f32> {
    let rows = values.chunks_exact(width);
    rows.flat_map(|row| {
        let scale = row.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0;
        row.iter().map(move |value| (value / scale).round() * scale)
    })
    .collect()
}

/// Each row of activations at the resolution of its codes, which span the row's range.
fn rounded_rows(values: &[f32], width: usize) -> Vec<f32> {
    let rows = values.chunks_exact(width);
    rows.flat_map(|row| {
        let least = row.iter().copied().fold(0.0, f32::min);
        let scale = (row.iter().copied().fold(0.0, f32::max) - least) / 255.0;
        let zero = -128.0 - (least * scale.recip()).round_ties_even();
        let code = move |value: f32| value.mul_add(scale.recip(), zero).round_ties_even();
        row.iter()
            .map(move |&value| (code(value).min(127.0) - zero) * scale)
    })
    .collect()
}

#[test]
fn int8_takes_rows_and_weights_of_zeros() {
    let Some(kernels) = Int8Kernels::for_level(Level::detect()) else {
        return;
    };
    let panels = quantized_panels(16, &[0.0; 16 * 32], &[0.5; 32]);
    let mut output = vec![1.0; 32];
    kernels.project(
        &[0.0; 16],
        &mut QuantizedRows::new(1, 16),
        &panels,
        &mut output,
        Finish::Store,
    );
    assert_eq!(output, [0.5; 32]);
}

#[test]
fn a_row_has_the_same_bits_whatever_the_rows_beside_it() {
    let (depth, width, rows) = (96, 32, 29);
    let panels = panels(depth, &numbers(depth * width, 1), &numbers(width, 2));
    let input = numbers(rows * depth, 3);
    for kernels in tables() {
        let mut together = vec![0.0; rows * width];
        kernels.project(&input, &panels, &mut together, Finish::Gelu);
        for (row, expected) in input.chunks_exact(depth).zip(together.chunks_exact(width)) {
            let mut alone = vec![0.0; width];
            kernels.project(row, &panels, &mut alone, Finish::Gelu);
            assert_eq!(alone, expected, "{}", kernels.level());
        }
    }
}

#[test]
fn gelu_is_within_rounding_of_its_definition_over_the_whole_range() {
    let inputs = (-1200..1200)
        .map(|step| step as f32 / 100.0)
        .chain([1e-30, -1e-30, 1e4, -1e4]);
    let inputs = inputs.collect::<Vec<_>>();
    let mut weights = vec![0.0; 32 * 16];
    (0..32).for_each(|output| weights[output * 16] = 1.0);
    let panels = panels(16, &weights, &[0.0; 32]);
    for kernels in tables() {
        for &x in &inputs {
            let mut row = [0.0; 16];
            row[0] = x;
            let mut output = [0.0; 32];
            kernels.project(&row, &panels, &mut output, Finish::Gelu);
            let expected = gelu(f64::from(x));
            let tolerance = 4e-7 * f64::from(x.abs()).max(1e-20);
            assert_close(
                &output,
                &[expected; 32],
                tolerance,
                &format!("{} {x}", kernels.level()),
            );
        }
    }
}

#[test]
fn attention_of_any_length_is_the_mix_that_softmax_gives() {
    for len in [1, 2, 3, 14, 15, 31, 32, 33, 65, 97] {
        let mut qkv = numbers(len * 3 * HIDDEN, len as u64);
        qkv.iter_mut().for_each(|value| *value *= 3.0);
        let expected = attention(&qkv, len);
        for kernels in tables() {
            let mut scratch = AttentionScratch::new(256);
            let mut output = vec![0.0; len * HIDDEN];
            kernels.attend(&qkv, &mut scratch, &mut output);
            assert_close(
                &output,
                &expected,
                1e-4,
                &format!("{} {len}", kernels.level()),
            );
        }
    }
}

#[test]
fn softmax_takes_scores_that_are_far_apart() {
    let len = 3;
    let mut qkv = numbers(len * 3 * HIDDEN, 1);
    qkv.iter_mut().for_each(|value| *value *= 100.0);
    let expected = attention(&qkv, len);
    for kernels in tables() {
        let mut output = vec![0.0; len * HIDDEN];
        kernels.attend(&qkv, &mut AttentionScratch::new(256), &mut output);
        assert_close(&output, &expected, 0.3, kernels.level().name());
    }
}

fn attention(qkv: &[f32], len: usize) -> Vec<f64> {
    let at = |token: usize, column: usize| f64::from(qkv[token * 3 * HIDDEN + column]);
    let mut output = vec![0.0; len * HIDDEN];
    for head in (0..HIDDEN).step_by(HEAD) {
        for query in 0..len {
            let score = |key| {
                (head..head + HEAD)
                    .map(|d| at(query, d) * at(key, HIDDEN + d))
                    .sum::<f64>()
            };
            let scores = (0..len).map(score).collect::<Vec<_>>();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let total = scores.iter().map(|score| (score - most).exp()).sum::<f64>();
            for d in head..head + HEAD {
                let mix = scores
                    .iter()
                    .enumerate()
                    .map(|(key, score)| (score - most).exp() * at(key, 2 * HIDDEN + d));
                output[query * HIDDEN + d] = mix.sum::<f64>() / total;
            }
        }
    }
    output
}

#[test]
fn layer_normalisation_has_the_mean_and_variance_of_its_row() {
    let (weight, bias) = (numbers(HIDDEN, 1), numbers(HIDDEN, 2));
    let values = numbers(3 * HIDDEN, 3)
        .iter()
        .map(|value| value * 5.0 + 2.0)
        .collect::<Vec<_>>();
    let expected = values
        .chunks_exact(HIDDEN)
        .flat_map(|row| normalised(row, &weight, &bias))
        .collect::<Vec<_>>();
    for kernels in tables() {
        let mut found = values.clone();
        kernels.layer_norm(&mut found, &weight, &bias);
        assert_close(&found, &expected, 2e-6, kernels.level().name());
    }
}

fn normalised(row: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f64> {
    let row = row
        .iter()
        .map(|&value| f64::from(value))
        .collect::<Vec<_>>();
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / row.len() as f64;
    let scale = (variance + f64::from(LAYER_NORM_EPSILON)).sqrt();
    let values = row.iter().zip(weight).zip(bias);
    values
        .map(|((value, &weight), &bias)| {
            (value - mean) / scale * f64::from(weight) + f64::from(bias)
        })
        .collect()
}

#[test]
#[should_panic(expected = "whole input rows")]
fn a_projection_refuses_input_that_is_not_whole_rows() {
    let panels = panels(16, &[0.0; 16 * 32], &[0.0; 32]);
    tables()[0].project(&[0.0; 17], &panels, &mut [0.0; 32], Finish::Store);
}

#[test]
fn a_level_that_the_processor_lacks_has_no_table() {
    let foreign = if cfg!(target_arch = "x86_64") {
        Level::Neon
    } else {
        Level::Avx512
    };
    assert!(Kernels::for_level(foreign).is_none());
    assert!(Int8Kernels::for_level(Level::Scalar).is_none());
}

proptest! {
    #[test]
    fn rows_are_split_into_even_tiles_without_gaps(rows in 0usize..600, most in 1usize..15) {
        let tiles = tile::even_split(rows, most).collect::<Vec<_>>();
        let mut next = 0;
        for &(first, count) in &tiles {
            prop_assert_eq!(first, next);
            prop_assert!(count >= 1 && count <= most);
            next += count;
        }
        prop_assert_eq!(next, rows);
        let counts = tiles.iter().map(|&(_, count)| count);
        prop_assert!(counts.clone().max().unwrap_or(0) - counts.min().unwrap_or(0) <= 1);
    }
}

#[test]
fn parts_of_a_buffer_lie_one_after_the_other_and_do_not_overlap() {
    let mut rest = Buffer::<f32>::zeroed(64);
    let (mut first, mut second) = (rest.split_to(16), rest.split_to(32));
    first.fill(1.0);
    second.fill(2.0);
    assert_eq!((first.len(), second.len(), rest.len()), (16, 32, 16));
    assert_eq!(first.as_ptr_range().end, second.as_ptr());
    assert!(first.iter().all(|&value| value == 1.0));
    assert!(rest.iter().all(|&value| value == 0.0));
}

#[test]
#[should_panic(expected = "17 of 16 numbers")]
fn a_buffer_gives_no_more_than_it_has() {
    Buffer::<f32>::zeroed(16).split_to(17);
}
