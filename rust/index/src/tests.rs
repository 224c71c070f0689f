//! Segments against a naive model: a map from slots to vectors.

use std::collections::HashMap;

use proptest::prelude::*;
use remora_kernels::{Kernels, Level};

use super::rows::Rows;
use super::*;

/// How far a cosine may be from exact arithmetic: the rounding of two unit vectors and of their product, for the
/// dimensions tested here.
const COSINE_TOLERANCE: f64 = 1e-6;

/// Rows of this dimension fill a chunk after 64 of them.
const WIDE: usize = 8192;

/// Slots that tests look at.
const SLOTS: u32 = 100;

#[derive(Debug, Clone)]
enum Step {
    Upsert(u32, Vec<f32>),
    Remove(u32),
    Score(Vec<f32>),
}

/// What a segment is: unit vectors by slot.
#[derive(Default)]
struct Model(HashMap<u32, Vec<f32>>);

impl Model {
    fn upsert(&mut self, slot: u32, vector: &[f32]) -> bool {
        let unit = unit(vector);
        let accepted = unit.is_some();
        self.0.extend(unit.map(|unit| (slot, unit)));
        accepted
    }

    fn scores(&self, query: &[f32]) -> Vec<Option<u32>> {
        let scalar = Kernels::for_level(Level::Scalar).expect("the specification runs everywhere");
        let score = |slot| {
            self.0
                .get(&slot)
                .map(|row| scalar.dot(query, row).to_bits())
        };
        (0..SLOTS).map(score).collect()
    }
}

fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let norm = vector
        .iter()
        .map(|v| f64::from(*v).powi(2))
        .sum::<f64>()
        .sqrt();
    (norm > 0.0).then(|| {
        vector
            .iter()
            .map(|v| (f64::from(*v) / norm) as f32)
            .collect()
    })
}

fn query(vector: &[f32]) -> Query {
    Query::new(vector).expect("a vector that is accepted")
}

fn segment(rows: &[(u32, &[f32])]) -> Segment {
    let mut segment = Segment::new(rows[0].1.len(), Kernels::best());
    for (slot, vector) in rows {
        segment
            .upsert(*slot, vector)
            .expect("a vector that is accepted");
    }
    segment
}

/// The bits of the score of each slot that has one.
fn scores(segment: &Segment, query: &Query) -> Vec<Option<u32>> {
    let mut scores = [f32::NAN; SLOTS as usize];
    segment.scores(query, &mut scores);
    let scores = scores.map(|score| (!score.is_nan()).then(|| score.to_bits()));
    scores.into()
}

/// A vector with one value at `at` and a small one beside it, so that no two are parallel.
fn wide(at: u32) -> Vec<f32> {
    let mut vector = vec![0.0; WIDE];
    vector[at as usize] = 1.0;
    vector[WIDE - 1] = 0.001 * at as f32;
    vector
}

fn step(dim: usize) -> impl Strategy<Value = Step> {
    // Few directions and few slots: equal scores, replaced rows and removed ones are the rule.
    let vector = prop::collection::vec((-1i8..=1).prop_map(f32::from), dim);
    prop_oneof![
        6 => (0u32..80, vector.clone()).prop_map(|(slot, vector)| Step::Upsert(slot, vector)),
        2 => (0u32..90).prop_map(Step::Remove),
        2 => vector.prop_map(Step::Score),
    ]
}

fn assert_same_step(segment: &mut Segment, model: &mut Model, step: &Step) {
    match step {
        Step::Upsert(slot, vector) => {
            assert_eq!(
                segment.upsert(*slot, vector).is_ok(),
                model.upsert(*slot, vector)
            );
        }
        Step::Remove(slot) => assert_eq!(segment.remove(*slot), model.0.remove(slot).is_some()),
        Step::Score(vector) => {
            if let Some(unit) = unit(vector) {
                assert_eq!(scores(segment, &query(vector)), model.scores(&unit));
            }
        }
    }
    assert_eq!(segment.len(), model.0.len());
}

proptest! {
    #[test]
    fn a_segment_does_what_a_map_does(
        steps in (1usize..20).prop_flat_map(|dim| prop::collection::vec(step(dim), 1..150)),
    ) {
        let dim = steps.iter().find_map(|step| match step {
            Step::Upsert(_, vector) | Step::Score(vector) => Some(vector.len()),
            Step::Remove(_) => None,
        });
        for kernels in Kernels::available() {
            let mut segment = Segment::new(dim.unwrap_or(1), kernels);
            let mut model = Model::default();
            for step in &steps {
                assert_same_step(&mut segment, &mut model, step);
            }
            for slot in 0..SLOTS {
                prop_assert_eq!(segment.get(slot), model.0.get(&slot).map(Vec::as_slice));
                prop_assert_eq!(segment.contains(slot), model.0.contains_key(&slot));
            }
        }
    }

    #[test]
    fn a_score_is_the_cosine(
        pairs in prop::collection::vec((-1e30f32..1e30, -1e-30f32..1e-30), 1..400),
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        prop_assume!(dot(&a, &a) > 0.0 && dot(&b, &b) > 0.0);
        let exact = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        let mut found = [0.0];
        segment(&[(0, &a)]).scores(&query(&b), &mut found);
        prop_assert!((f64::from(found[0]) - exact).abs() <= COSINE_TOLERANCE, "{found:?} {exact}");
    }
}

#[test]
fn vectors_without_a_direction_are_refused_and_change_nothing() {
    let mut segment = segment(&[(7, &[3.0, 4.0])]);
    let refused: [(&[f32], VectorError); 6] = [
        (&[0.0, -0.0], VectorError::Zero),
        (&[f32::NAN, 1.0], VectorError::NotFinite),
        (&[1.0, f32::INFINITY], VectorError::NotFinite),
        (&[f32::NEG_INFINITY, f32::INFINITY], VectorError::NotFinite),
        (
            &[1.0],
            VectorError::Dimension {
                expected: 2,
                actual: 1,
            },
        ),
        (
            &[],
            VectorError::Dimension {
                expected: 2,
                actual: 0,
            },
        ),
    ];
    for (vector, error) in refused {
        assert_eq!(segment.upsert(7, vector), Err(error));
        assert_eq!(segment.upsert(8, vector), Err(error));
        if vector.len() == 2 {
            assert_eq!(Query::new(vector).map(|_| ()), Err(error));
        }
    }
    assert_eq!(segment.get(7), Some([0.6, 0.8].as_slice()));
    assert_eq!(segment.len(), 1);
}

#[test]
fn vectors_at_the_ends_of_the_range_are_normalised() {
    let mut segment = Segment::new(4, Kernels::best());
    for value in [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)] {
        segment.upsert(0, &[value; 4]).expect("finite and not zero");
        assert_eq!(segment.get(0), Some([0.5; 4].as_slice()));
    }
}

#[test]
fn a_segment_without_values_takes_no_vector() {
    let mut segment = Segment::new(0, Kernels::best());
    assert_eq!(segment.upsert(0, &[]), Err(VectorError::Zero));
    assert!(segment.is_empty());
}

#[test]
fn scores_are_scattered_by_slot_and_leave_other_places_alone() {
    let segment = segment(&[(4, &[1.0, 0.0]), (0, &[-2.0, 0.0]), (9, &[1.0, 0.0])]);
    let mut out = [7.0; 6];
    segment.scores(&query(&[3.0, 0.0]), &mut out);
    assert_eq!(out, [-1.0, 7.0, 7.0, 7.0, 1.0, 7.0]);
}

#[test]
fn every_level_gives_the_same_bits_across_chunks() {
    let unit = query(&wide(3).iter().map(|value| value + 0.01).collect::<Vec<_>>());
    let scored = |kernels| {
        let mut segment = Segment::new(WIDE, kernels);
        for slot in 0..SLOTS {
            segment.upsert(slot, &wide(slot)).expect("not zero");
        }
        scores(&segment, &unit)
    };
    let expected = scored(Kernels::best());
    assert!(expected.iter().all(Option::is_some));
    for kernels in Kernels::available() {
        assert_eq!(scored(kernels), expected);
    }
}

#[test]
fn rows_move_between_chunks_and_give_their_memory_back() {
    let mut rows = Rows::new(WIDE);
    let empty = rows.bytes();
    let mut model = Vec::new();
    for value in 0..200 {
        rows.push()[0] = value as f32;
        model.push(value as f32);
    }
    for row in [0, 63, 64, 150, 100, 20, 1, 190, 191, 0] {
        rows.swap_remove(row);
        model.swap_remove(row);
        let firsts: Vec<f32> = (0..rows.len()).map(|row| rows.get(row)[0]).collect();
        assert_eq!(firsts, model);
    }
    assert_eq!(rows.groups(10).map(<[f32]>::len).sum::<usize>(), 190 * WIDE);
    while rows.len() > 0 {
        rows.swap_remove(rows.len() / 2);
    }
    assert!(
        rows.bytes() - empty < WIDE,
        "only the table of chunks is left"
    );
}

#[test]
fn a_row_that_is_pushed_again_starts_with_zeros() {
    let mut rows = Rows::new(3);
    rows.push();
    rows.push().fill(7.0);
    rows.swap_remove(1);
    assert!(rows.push().iter().all(|value| *value == 0.0));
}

#[test]
fn every_row_starts_on_a_cache_line() {
    let mut segment = Segment::new(5, Kernels::best());
    for slot in 0..100 {
        segment.upsert(slot, &[1.0; 5]).expect("not zero");
    }
    for slot in 0..100 {
        let row = segment.get(slot).expect("stored");
        assert_eq!(row.as_ptr().align_offset(64), 0);
    }
}

#[test]
fn memory_is_counted_and_freed() {
    let mut segment = Segment::new(WIDE, Kernels::best());
    let empty = segment.bytes();
    for slot in 0..100 {
        segment.upsert(slot, &wide(slot)).expect("not zero");
    }
    let rows = 100 * WIDE * size_of::<f32>();
    assert!((rows..2 * rows).contains(&(segment.bytes() - empty)));
    for slot in 0..100 {
        segment.remove(slot);
    }
    assert!(segment.bytes() - empty < 10_000);
}
