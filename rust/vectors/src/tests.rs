//! Parts against a naive model: a map from keys to vectors, all of which are compared.

use std::collections::BTreeMap;

use proptest::prelude::*;
use prost::Message as _;
use remora_filter::{Condition, Operator, Scalar};
use remora_wire::{self as wire, ScalarKind};

use super::*;

const DIM: usize = 5;
const GROUP: &str = "group";
const NAME: Name<'static> = Name {
    kind: 9,
    tenant: "t",
    partition: b"p",
};

fn body(values: &[f32], group: Option<i64>) -> Bytes {
    let scalar = |value| wire::Scalar {
        kind: Some(ScalarKind::Integer(value)),
    };
    let attributes = group.map(|group| (GROUP.to_owned(), scalar(group)));
    let vector = wire::Vector {
        values: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        attributes: attributes.into_iter().collect(),
    };
    vector.encode_to_vec().into()
}

fn key(number: u8) -> Bytes {
    Bytes::copy_from_slice(&[b'k', number])
}

fn of_group(group: i64) -> Expression {
    Expression::Condition(Condition {
        key: GROUP.to_owned(),
        operator: Operator::Eq,
        values: vec![Scalar::Integer(group)],
    })
}

fn loaded(vectors: &Vectors, name: &Name<'_>, rows: &[(Bytes, Bytes)]) {
    let load = vectors.begin(name, "", false);
    load.fill(rows.iter().cloned());
    load.finish();
}

fn vectors() -> Vectors {
    Vectors::new(Kernels::best(), 1 << 20)
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, Vec<f32>, Option<i64>),
    Remove(u8),
    RemoveAll,
    Search {
        query: Vec<f32>,
        k: usize,
        threshold: Option<f64>,
        group: Option<i64>,
    },
}

fn values() -> impl Strategy<Value = Vec<f32>> {
    // Few directions: equal scores are the rule. Some are of any length, so that codes and values differ.
    prop_oneof![
        prop::collection::vec((-1i8..=1).prop_map(f32::from), DIM),
        prop::collection::vec(-1e3f32..1e3, DIM),
        prop::collection::vec(prop_oneof![Just(1e38f32), Just(1e-40), Just(-3.0)], DIM),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let group = || prop::option::of(0i64..3);
    let search = (values(), 1usize..20, prop::option::of(0.0f64..1.0), group());
    prop_oneof![
        8 => (0u8..40, values(), group()).prop_map(|(key, values, group)| Step::Put(key, values, group)),
        2 => (0u8..40).prop_map(Step::Remove),
        1 => Just(Step::RemoveAll),
        4 => search.prop_map(|(query, k, threshold, group)| Step::Search { query, k, threshold, group }),
    ]
}

/// The vectors by key, with the values of their group.
type Model = BTreeMap<Bytes, (Vec<f32>, Option<i64>)>;

fn naive(model: &Model, query: &[f32], group: Option<i64>) -> Vec<(f64, Bytes)> {
    let query = Query::new(query.to_vec());
    let mut scored: Vec<_> = model
        .iter()
        .filter(|(_, (_, own))| group.is_none() || *own == group)
        .map(|(key, (values, _))| {
            let stored: Vec<u8> = values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect();
            let cosine = query.cosine(&stored, values::norm(&stored));
            (f64::midpoint(1.0, cosine), key.clone())
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored
}

fn expected(model: &Model, found: Vec<(f64, Bytes)>) -> Vec<Hit> {
    let hit = |(score, key): (f64, Bytes)| {
        let (values, group) = &model[&key];
        Hit {
            score,
            body: body(values, *group),
        }
    };
    found.into_iter().map(hit).collect()
}

fn assert_same_step(vectors: &Vectors, model: &mut Model, step: Step, revision: u64) {
    match step {
        Step::Put(number, values, group) => {
            let body = body(&values, group);
            vectors.deliver(
                &NAME,
                Op::Put {
                    key: key(number),
                    body,
                },
                revision,
            );
            model.insert(key(number), (values, group));
        }
        Step::Remove(number) => {
            vectors.deliver(&NAME, Op::Remove { key: key(number) }, revision);
            model.remove(&key(number));
        }
        Step::RemoveAll => {
            vectors.deliver(&NAME, Op::RemoveAll, revision);
            model.clear();
        }
        Step::Search {
            query,
            k,
            threshold,
            group,
        } => {
            let filter = group.map(of_group);
            let search = Search {
                query: &Query::new(query.clone()),
                k,
                threshold,
                filter: filter.as_ref(),
            };
            let mut wanted = naive(model, &query, group);
            let count = wanted.len();
            wanted.retain(|(score, _)| threshold.is_none_or(|least| *score >= least));
            wanted.truncate(k);
            let shown = vectors.search(&NAME, &search, || revision).expect("loaded");
            assert_eq!(shown.revision, revision);
            assert_eq!(shown.found, expected(model, wanted));
            let counted = vectors.count(&NAME, filter.as_ref(), || revision);
            assert_eq!(counted.expect("loaded").found, count);
        }
    }
}

proptest! {
    #[test]
    fn a_part_finds_what_comparing_all_finds(steps in prop::collection::vec(step(), 1..120)) {
        for kernels in Kernels::available() {
            let vectors = Vectors::new(kernels, 1 << 20);
            loaded(&vectors, &NAME, &[]);
            let mut model = Model::default();
            for (revision, step) in (1..).zip(steps.clone()) {
                assert_same_step(&vectors, &mut model, step, revision);
            }
        }
    }

    #[test]
    fn a_cosine_is_that_of_exact_arithmetic(pairs in prop::collection::vec((-1e30f32..1e30, -1e-30f32..1e-30), 1..400)) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
        prop_assume!(dot(&a, &a) > 0.0 && dot(&b, &b) > 0.0);
        let exact = dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt();
        let stored: Vec<u8> = b.iter().flat_map(|value| value.to_le_bytes()).collect();
        let found = Query::new(a).cosine(&stored, values::norm(&stored));
        prop_assert!((found - exact).abs() <= 1e-12, "{found} {exact}");
    }

    #[test]
    fn codes_bound_the_cosine(
        pairs in prop::collection::vec((-1.0f32..1.0, -1.0f32..1.0), 1..300), scale in -35i32..35,
    ) {
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.into_iter().unzip();
        let b: Vec<f32> = b.iter().map(|value| value * 10f32.powi(scale)).collect();
        let stored: Vec<u8> = b.iter().flat_map(|value| value.to_le_bytes()).collect();
        let (query, norm) = (Query::new(a), values::norm(&stored));
        let mut codes = codes::Codes::new(b.len());
        codes.push(values::floats(&stored), norm);
        let exact = query.cosine(&stored, norm);
        let code = codes::QueryCode::new(&query);
        codes.bounds(Kernels::best(), &code, 0, &mut [0], |_, found| {
            assert!(f64::from(found.lower) <= exact && exact <= f64::from(found.upper), "{found:?} {exact}");
        });
    }
}

/// A vector without a pattern, in -1..1, from a multiplicative hash of its seed and the place.
fn scattered(dim: usize, seed: u32) -> Vec<f32> {
    let value = |place: usize| {
        let mixed = (u64::from(seed) << 32 | place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1 << 23) as f32
            - 1.0
    };
    (0..dim).map(value).collect()
}

#[test]
fn groups_of_rows_are_searched_whole_and_in_runs() {
    let vectors = vectors();
    let numbered = |number: u32| Bytes::from(number.to_be_bytes().to_vec());
    let rows: Vec<_> = (0..3_000)
        .map(|number| {
            let body = body(&scattered(48, number), Some(i64::from(number % 7)));
            (numbered(number), body)
        })
        .collect();
    loaded(&vectors, &NAME, &rows);
    let model: Model = (0..3_000)
        .map(|number| {
            (
                numbered(number),
                (scattered(48, number), Some(i64::from(number % 7))),
            )
        })
        .collect();
    for group in [None, Some(0), Some(6)] {
        let values = scattered(48, 77_777);
        let filter = group.map(of_group);
        let search = Search {
            query: &Query::new(values.clone()),
            k: 25,
            threshold: None,
            filter: filter.as_ref(),
        };
        let mut wanted = naive(&model, &values, group);
        wanted.truncate(25);
        let found = vectors.search(&NAME, &search, || 0).expect("loaded").found;
        assert_eq!(found, expected(&model, wanted));
    }
}

fn counted(vectors: &Vectors, name: &Name<'_>, published: u64) -> Result<usize, Cold> {
    let shown = vectors.count(name, None, || published);
    shown.map(|shown| shown.found)
}

fn put(number: u8) -> Op {
    Op::Put {
        key: key(number),
        body: body(&[1.0], None),
    }
}

#[test]
fn what_is_not_published_is_not_seen() {
    let vectors = vectors();
    loaded(&vectors, &NAME, &[]);
    vectors.deliver(&NAME, put(1), 5);
    vectors.deliver(&NAME, put(2), 6);
    assert_eq!(counted(&vectors, &NAME, 4), Ok(0));
    assert_eq!(counted(&vectors, &NAME, 5), Ok(1));
    assert_eq!(counted(&vectors, &NAME, 6), Ok(2));
}

#[test]
fn changes_during_a_load_follow_what_it_read() {
    let vectors = vectors();
    assert_eq!(counted(&vectors, &NAME, 9), Err(Cold));
    vectors.deliver(&NAME, put(0), 1);
    let load = vectors.begin(&NAME, "", false);
    vectors.deliver(&NAME, put(1), 2);
    vectors.deliver(&NAME, Op::Remove { key: key(2) }, 3);
    vectors.settle(3);
    load.fill(
        [0, 2]
            .map(|number| (key(number), body(&[1.0], None)))
            .into_iter(),
    );
    assert_eq!(counted(&vectors, &NAME, 3), Err(Cold));
    load.finish();
    let mut keys = vectors.keys(&NAME, None, || 3).expect("loaded").found;
    keys.sort();
    assert_eq!(keys, [key(0), key(1)]);
}

#[test]
fn a_load_that_is_abandoned_leaves_nothing() {
    let vectors = vectors();
    drop(vectors.begin(&NAME, "", false));
    vectors.evict();
    assert_eq!(vectors.statistics(), Statistics { parts: 0, bytes: 0 });
}

#[test]
fn removals_reach_the_parts_that_they_name() {
    let vectors = vectors();
    let name = |tenant, partition| Name {
        kind: 9,
        tenant,
        partition,
    };
    let names = [
        name("t", b"a/1".as_slice()),
        name("t", b"a/2"),
        name("t", b"b/1"),
        name("u", b"a/1"),
    ];
    for (name, user) in names.iter().zip(["", "ann", "ann", "ann"]) {
        let load = vectors.begin(name, user, false);
        load.fill([(key(1), body(&[1.0], None))].into_iter());
        load.finish();
    }
    let counts = |published| names.map(|name| counted(&vectors, &name, published).expect("loaded"));
    vectors.deliver_user(8, "t", "ann", 1);
    assert_eq!(counts(1), [1, 1, 1, 1]);
    vectors.deliver_user(9, "t", "ann", 2);
    assert_eq!(counts(2), [1, 0, 0, 1]);
    vectors.deliver_prefix(&name("t", b"a/"), 3);
    assert_eq!(counts(3), [0, 0, 0, 1]);
}

#[test]
fn memory_is_bounded_by_what_was_used_last() {
    let vectors = Vectors::new(Kernels::best(), 300 << 10);
    let names = [b"a", b"b", b"c"].map(|partition| Name {
        partition: partition.as_slice(),
        ..NAME
    });
    let rows: Vec<_> = (0..100)
        .map(|number| (key(number), body(&scattered(256, number.into()), None)))
        .collect();
    for name in &names {
        loaded(&vectors, name, &rows);
        vectors.evict();
    }
    assert_eq!(counted(&vectors, &names[0], 0), Err(Cold));
    assert_eq!(counted(&vectors, &names[2], 0), Ok(100));
    assert!(vectors.statistics().bytes <= 300 << 10);
    loaded(&vectors, &names[0], &rows);
    vectors.settle(0);
    assert_eq!(counted(&vectors, &names[0], 0), Ok(100));
}

#[test]
fn vectors_of_another_dimension_are_never_near() {
    let vectors = vectors();
    let rows = [
        (key(1), body(&[1.0, 0.0], None)),
        (key(2), body(&[1.0], None)),
        (key(3), Bytes::new()),
    ];
    loaded(&vectors, &NAME, &rows);
    let found = |values: &[f32]| {
        let search = Search {
            query: &Query::new(values.to_vec()),
            k: 10,
            threshold: None,
            filter: None,
        };
        vectors
            .search(&NAME, &search, || 0)
            .expect("loaded")
            .found
            .len()
    };
    assert_eq!(found(&[1.0, 1.0]), 1);
    assert_eq!(found(&[1.0]), 0);
}

#[test]
fn what_all_parts_hold_is_known_without_asking_them() {
    let vectors = vectors();
    let total = || vectors.parts.counted();
    loaded(&vectors, &NAME, &[(key(1), body(&[1.0], None))]);
    assert_eq!(total(), vectors.statistics().bytes);
    for revision in 1..50 {
        vectors.deliver(&NAME, put(revision as u8), revision);
        vectors.settle(revision - revision % 2);
    }
    assert_eq!(total(), vectors.statistics().bytes);
    drop(vectors.begin(&NAME, "", false));
    vectors.evict();
    assert_eq!(total(), 0);
}

mod by_text {
    use super::*;

    /// A stored body with a text.
    fn spoken(text: &str, values: &[f32], group: Option<i64>) -> Bytes {
        let text = wire::VectorText {
            text: text.to_owned(),
        };
        let mut encoded = body(values, group).to_vec();
        text.encode(&mut encoded).expect("there is room");
        encoded.into()
    }

    fn loaded_by_words(vectors: &Vectors, rows: &[(Bytes, Bytes)]) {
        let load = vectors.begin(&NAME, "", true);
        load.fill(rows.iter().cloned());
        load.finish();
    }

    fn found(vectors: &Vectors, text: &str, query: Option<&[f32]>) -> Vec<(f64, Bytes)> {
        let query = query.map(|values| Query::new(values.to_vec()));
        let comparable = of_group(1);
        let search = TextSearch {
            text,
            query: query.as_ref(),
            k: 10,
            threshold: None,
            filter: None,
            comparable: Some(&comparable),
        };
        let shown = vectors
            .search_text(&NAME, &search, || u64::MAX)
            .expect("it is loaded");
        shown
            .found
            .into_iter()
            .map(|hit| (hit.score, hit.body))
            .collect()
    }

    #[test]
    fn words_tell_rows_with_equal_vectors_apart() {
        let vectors = vectors();
        let order =
            |number: u32| spoken(&format!("order {number} was shipped"), &[1.0, 0.0], Some(1));
        let rows: Vec<_> = (0..50u8)
            .map(|each| (key(each), order(4700 + u32::from(each))))
            .collect();
        loaded_by_words(&vectors, &rows);

        let hits = found(&vectors, "what about order 4733", Some(&[1.0, 0.0]));

        assert_eq!(hits[0].1, order(4733));
        assert!(hits[0].0 > hits[1].0 && hits[0].0 <= 1.0);
    }

    #[test]
    fn vectors_that_cannot_be_compared_count_as_none() {
        let vectors = vectors();
        let of_another_model = spoken("amber", &[1.0, 0.0], Some(2));
        let of_another_dimension = spoken("amber", &[1.0, 0.0, 0.0], Some(1));
        let near = spoken("cobalt", &[1.0, 0.0], Some(1));
        let rows = [of_another_dimension, of_another_model, near.clone()];
        loaded_by_words(&vectors, &(0..).map(key).zip(rows).collect::<Vec<_>>());

        let hits = found(&vectors, "zinc", Some(&[1.0, 0.0]));

        assert_eq!((hits[0].0, &hits[0].1), (1.0 / 1.5, &near));
        assert_eq!([hits[1].0, hits[2].0], [0.0, 0.0]);
    }

    #[test]
    fn rows_move_with_their_words_when_others_go() {
        let vectors = vectors();
        let names = ["amber", "cobalt", "zinc", "quartz"];
        let rows = names.map(|name| spoken(name, &[], None));
        loaded_by_words(
            &vectors,
            &(0..).map(key).zip(rows.clone()).collect::<Vec<_>>(),
        );

        for (gone, left) in [
            (0, vec![3, 1, 2]),
            (2, vec![1, 3]),
            (3, vec![1]),
            (1, vec![]),
        ] {
            vectors.deliver(&NAME, Op::Remove { key: key(gone) }, 1);
            for (each, name) in names.iter().enumerate() {
                let hits: Vec<_> = found(&vectors, name, None)
                    .into_iter()
                    .map(|hit| hit.1)
                    .collect();
                let wanted = left.contains(&each).then(|| rows[each].clone());
                assert_eq!(hits, wanted.into_iter().collect::<Vec<_>>());
            }
        }
    }
}
