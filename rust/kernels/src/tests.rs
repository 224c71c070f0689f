//! Every table against the specification, and the specification against exact arithmetic.

use proptest::prelude::*;

use super::*;

/// Two strides of every loop over a row, and every tail.
const LENGTHS: std::ops::Range<usize> = 0..3 * LANES;

/// Two tiles of rows, and every tail.
const ROW_COUNTS: std::ops::RangeInclusive<usize> = 0..=11;

/// The bound on the rounding error of a dot product over `a` and `b`: each product passes through at most
/// `len / LANES + 1` multiply-adds and four folds, each of which errs by half a unit in the last place (Higham, Accuracy
/// and Stability of Numerical Algorithms, section 3.1), and the bound is doubled for the terms of second order.
fn rounding_bound(a: &[f32], b: &[f32]) -> f64 {
    let steps = (a.len() / LANES + 1 + 4) as f64;
    let magnitude: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| (f64::from(*a) * f64::from(*b)).abs())
        .sum();
    steps * f64::from(f32::EPSILON) * magnitude
}

/// Values without a pattern, in -1..1, from the multiplicative generator of Lehmer with Park and Miller's constants.
fn values(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed * 2 + 1;
    let mut next = || {
        state = state * 48_271 % 0x7fff_ffff;
        state as f32 / 0x4000_0000 as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn scalar() -> &'static Kernels {
    Kernels::for_level(Level::Scalar).expect("the specification runs everywhere")
}

/// The bits of a result, with one pattern for every NaN.
fn bits(value: f32) -> u32 {
    if value.is_nan() {
        f32::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

fn assert_rows_agree(query: &[f32], rows: &[f32], count: usize) {
    let expected: Vec<u32> = (0..count)
        .map(|r| bits(scalar().dot(query, &rows[r * query.len()..][..query.len()])))
        .collect();
    for kernels in Kernels::available() {
        let mut out = vec![f32::MAX; count];
        kernels.dot_rows(query, rows, &mut out);
        let found: Vec<u32> = out.into_iter().map(bits).collect();
        assert_eq!(
            found,
            expected,
            "{} rows of {} at {}",
            count,
            query.len(),
            kernels.level()
        );
    }
}

fn assert_dot_agrees(a: &[f32], b: &[f32]) {
    let expected = bits(scalar().dot(a, b));
    for kernels in Kernels::available() {
        assert_eq!(
            bits(kernels.dot(a, b)),
            expected,
            "{} values at {}",
            a.len(),
            kernels.level()
        );
    }
}

#[test]
fn the_processor_of_the_tests_has_more_than_the_specification() {
    assert!(Kernels::available().count() > 1);
    assert_eq!(Kernels::best().level(), Level::detect());
}

#[test]
fn a_level_is_chosen_by_its_name() {
    for level in Level::ALL {
        assert_eq!(level.to_string().parse(), Ok(level));
    }
    assert_eq!(
        "sse9".parse::<Level>(),
        Err(UnknownLevel("sse9".to_owned()))
    );
}

#[test]
fn a_level_that_the_processor_lacks_has_no_table() {
    for level in Level::ALL {
        assert_eq!(
            Kernels::for_level(level).is_some(),
            level.is_available(),
            "{level}"
        );
    }
}

#[test]
fn every_level_gives_the_bits_of_the_specification_at_every_length() {
    for len in LENGTHS.chain([384, 385, 1023]) {
        assert_dot_agrees(&values(1, len), &values(2, len));
    }
}

#[test]
fn every_level_gives_the_bits_of_the_specification_for_every_number_of_rows() {
    for dim in LENGTHS.chain([384, 391]) {
        for count in ROW_COUNTS {
            assert_rows_agree(&values(3, dim), &values(4, dim * count), count);
        }
    }
}

#[test]
fn every_level_agrees_on_zero_infinity_nan_and_values_that_vanish() {
    let special = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-30,
        f32::MAX,
    ];
    for len in LENGTHS.skip(1) {
        for value in special {
            for at in 0..len {
                let mut row = values(5, len);
                row[at] = value;
                assert_dot_agrees(&values(6, len), &row);
                assert_dot_agrees(&row, &row);
                assert_dot_agrees(&vec![value; len], &row);
            }
        }
    }
}

#[test]
fn padding_with_zeros_changes_no_bit() {
    for len in LENGTHS {
        let (a, b) = (values(7, len), values(8, len));
        let padded = |v: &[f32]| [v, &vec![0.0; len.next_multiple_of(LANES) - len]].concat();
        assert_eq!(
            scalar().dot(&a, &b).to_bits(),
            scalar().dot(&padded(&a), &padded(&b)).to_bits()
        );
    }
}

#[test]
fn rows_without_values_have_the_product_zero() {
    assert_rows_agree(&[], &[], 3);
}

#[test]
#[should_panic(expected = "equal length")]
fn vectors_of_different_lengths_are_refused() {
    scalar().dot(&[1.0], &[1.0, 2.0]);
}

#[test]
#[should_panic(expected = "one row per output")]
fn rows_that_do_not_fill_the_outputs_are_refused() {
    scalar().dot_rows(&[1.0, 2.0], &[1.0, 2.0, 3.0], &mut [0.0; 2]);
}

#[test]
fn blocks_are_read_and_written_as_their_floats() {
    let mut blocks = [Block::ZERO; 2];
    as_floats_mut(&mut blocks)[LANES] = 7.0;
    assert_eq!(blocks[1].0[0], 7.0);
    assert_eq!(as_floats(&blocks).len(), 2 * LANES);
    assert_eq!(as_floats(&blocks)[LANES], 7.0);
}

/// Whole numbers without a pattern, from `-bound` to `bound`.
fn whole(seed: u64, count: usize, bound: f32) -> Vec<i16> {
    let values = values(seed, count);
    values.iter().map(|value| (value * bound) as i16).collect()
}

#[test]
fn every_level_gives_the_dot_products_of_byte_rows() {
    for blocks in 1..5 {
        for count in 0..6 {
            let dim = blocks * BYTE_BLOCK;
            let query = whole(1, dim, 32_767.0);
            let rows: Vec<i8> = whole(2, dim * count, 127.0)
                .iter()
                .map(|value| *value as i8)
                .collect();
            let naive: Vec<i32> = rows
                .chunks(dim)
                .map(|row| {
                    let products = query.iter().zip(row);
                    products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
                })
                .collect();
            for kernels in Kernels::available() {
                let mut found = vec![7; count];
                kernels.dot_bytes(&query, &rows, &mut found);
                assert_eq!(found, naive, "{}", kernels.level());
            }
        }
    }
}

#[test]
fn dot_products_of_byte_rows_may_fill_32_bits() {
    let query = [32_767; 16 * BYTE_BLOCK];
    let row = [127; 16 * BYTE_BLOCK];
    for kernels in Kernels::available() {
        let mut found = [0];
        kernels.dot_bytes(&query, &row, &mut found);
        assert_eq!(found, [512 * 127 * 32_767]);
    }
}

#[test]
#[should_panic(expected = "whole blocks")]
fn byte_rows_of_broken_blocks_are_refused() {
    scalar().dot_bytes(&[1; 31], &[1; 31], &mut [0]);
}

/// Codes without a pattern, the extremes among them.
fn codes(seed: u64, count: usize) -> Vec<Code> {
    let values = values(seed, count * CODE);
    let code = |values: &[f32]| std::array::from_fn(|at| (values[at] * 160.0) as i8);
    values.chunks(CODE).map(code).collect()
}

/// The largest dot products, each by itself.
fn naive_best_dots(queries: &[Code], rows: &[Code]) -> Vec<i32> {
    let dot = |a: &Code, b: &Code| -> i32 {
        (0..CODE)
            .map(|at| i32::from(a[at]) * i32::from(b[at]))
            .sum()
    };
    let best = |query| rows.iter().map(|row| dot(query, row)).max();
    queries
        .iter()
        .map(|query| best(query).unwrap_or(i32::MIN))
        .collect()
}

#[test]
fn every_level_finds_the_largest_dot_products_of_codes() {
    let extremes = vec![[i8::MIN; CODE], [i8::MAX; CODE], [0; CODE]];
    let lists = (0..4).map(|count| codes(9 + count, count as usize));
    let lists: Vec<Vec<Code>> = lists.chain([extremes, codes(20, 33)]).collect();
    for (queries, rows) in lists.iter().flat_map(|a| lists.iter().map(move |b| (a, b))) {
        let wide: Vec<WideCode> = queries.iter().map(widened).collect();
        for kernels in Kernels::available() {
            let mut found = vec![7; queries.len()];
            kernels.best_dots(&wide, rows, &mut found);
            assert_eq!(found, naive_best_dots(queries, rows), "{}", kernels.level());
        }
    }
}

#[test]
#[should_panic(expected = "one output per query")]
fn queries_without_an_output_are_refused() {
    scalar().best_dots(&[[0; CODE]], &[], &mut []);
}

proptest! {
    #[test]
    fn the_specification_is_within_the_rounding_bound_of_exact_arithmetic(
        pairs in prop::collection::vec((-1e3f32..1e3, -1e3f32..1e3), 0..1200),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let exact: f64 = a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let error = (f64::from(scalar().dot(&a, &b)) - exact).abs();
        prop_assert!(error <= rounding_bound(&a, &b), "{error}");
    }

    #[test]
    fn every_level_gives_the_bits_of_the_specification_for_any_values(
        pairs in prop::collection::vec((any::<f32>(), any::<f32>()), 0..100),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        assert_dot_agrees(&a, &b);
    }
}
