//! Pieces as bytes, the projection, and coverage against a naive computation.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use proptest::prelude::*;
use remora_kernels::{CODE, Code, Kernels};

use super::*;

/// A hidden state without a pattern.
fn state(seed: u32) -> Vec<f32> {
    let value = |at: u32| ((at + 1) * (seed + 7)) as f32 * 0.618_034;
    (0..HIDDEN as u32)
        .map(|at| value(at).fract() - 0.5)
        .collect()
}

fn codes(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<(u16, Code)>> {
    let code =
        prop::collection::vec(any::<i8>(), CODE).prop_map(|values| values.try_into().unwrap());
    prop::collection::vec((any::<u16>(), code), count)
}

fn naive_coverage(question: &[(u16, Code)], text: &[(u16, Code)], weights: &[f64]) -> f64 {
    let dot = |a: &Code, b: &Code| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let best = |piece: &Code| {
        text.iter()
            .map(|(_, other)| dot(piece, other))
            .fold(f64::MIN, f64::max)
    };
    let sum: f64 = question
        .iter()
        .zip(weights)
        .map(|((_, piece), weight)| weight * best(piece))
        .sum();
    sum / weights.iter().sum::<f64>() / (127.0 * 127.0)
}

#[test]
fn the_cosine_of_two_codes_is_near_that_of_the_projected_states() {
    let kernels = Kernels::best();
    for seed in 0..20 {
        let (a, b) = (code(&state(seed), kernels), code(&state(seed + 1), kernels));
        let dot = |a: &Code, b: &Code| -> f64 {
            a.iter()
                .zip(b)
                .map(|(a, b)| f64::from(*a) * f64::from(*b))
                .sum::<f64>()
                / 16_129.0
        };
        assert!((dot(&a, &a) - 1.0).abs() < 0.01, "{}", dot(&a, &a));
        assert!(dot(&a, &b) < 1.0);
    }
}

#[test]
fn every_level_makes_the_same_code() {
    for seed in 0..50 {
        let state = state(seed);
        let expected = code(&state, Kernels::available().next().unwrap());
        for kernels in Kernels::available() {
            assert_eq!(code(&state, kernels), expected, "{}", kernels.level());
        }
    }
}

#[test]
fn a_state_of_zeros_has_the_code_of_zeros() {
    assert_eq!(code(&[0.0; HIDDEN], Kernels::best()), [0; CODE]);
}

#[test]
fn a_text_covers_itself() {
    let piece = |seed| (seed as u16, code(&state(seed), Kernels::best()));
    let pieces = Pieces::new([piece(1), piece(2), piece(3)]);
    let query = Query::of(&pieces).unwrap();
    let covered = query.coverage(&pieces, &[1.0, 2.0, 3.0], Kernels::best(), &mut Vec::new());
    assert!((covered.unwrap() - 1.0).abs() < 0.01);
}

#[test]
fn without_pieces_there_is_no_question_and_no_coverage() {
    let none = Pieces::default();
    assert!(Query::of(&none).is_none());
    let query = Query::of(&Pieces::new([(1, [1; CODE])])).unwrap();
    assert_eq!(
        query.coverage(&none, &[1.0], Kernels::best(), &mut Vec::new()),
        None
    );
}

#[test]
fn bytes_that_do_not_divide_into_pieces_are_refused() {
    assert_eq!(Pieces::from_bytes(&[0; CODE + 1]), None);
    assert_eq!(Pieces::count(2 * (CODE + 2)), Some(2));
    assert_eq!(Pieces::from_bytes(&[]), Some(Pieces::default()));
}

proptest! {
    #[test]
    fn pieces_come_back_from_bytes(pieces in codes(0..5)) {
        let pieces = Pieces::new(pieces);
        prop_assert_eq!(Pieces::from_bytes(&pieces.to_bytes()), Some(pieces));
    }

    #[test]
    fn coverage_is_the_weighted_mean_of_the_best_products(
        question in codes(1..6), text in codes(1..8), weights in prop::collection::vec(0.1f64..9.0, 6),
    ) {
        let weights = &weights[..question.len()];
        let query = Query::of(&Pieces::new(question.clone())).unwrap();
        let expected = naive_coverage(&question, &text, weights);
        for kernels in Kernels::available() {
            let found = query.coverage(&Pieces::new(text.clone()), weights, kernels, &mut Vec::new());
            prop_assert!((found.unwrap() - expected).abs() < 1e-9);
        }
    }
}
