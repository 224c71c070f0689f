use proptest::prelude::*;

use super::model::{MODEL, Question, Row, Store, TENANT, key, pieces, places, recall, vector};
use super::naive::{Naive, documents, ideal, naive, relative, trust, words_asked};
use crate::scoring::late::COMPARED;
use crate::{Filter, Found, FoundMessage, Profile, Scope, Weights};

const VOCABULARY: [&str; 7] = [
    "river", "boat", "market", "lantern", "Tuesday", "garden", "the",
];

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(VOCABULARY.as_slice()), 0..6)
        .prop_map(|words| words.join(" "))
}

pub(super) fn direction() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-4i8..=4, 3)
        .prop_filter("a direction", |values| {
            values.iter().any(|value| *value != 0)
        })
        .prop_map(|values| values.into_iter().map(f32::from).collect())
}

/// Rows of user "ann" in a few parts; some have a vector.
fn store() -> impl Strategy<Value = Store> {
    let row = (1u64..4, text(), prop::option::of(direction()));
    prop::collection::vec(row, 1..30).prop_map(|rows| {
        let mut store = Store::default();
        for (number, (uid, text, values)) in (1..).zip(rows) {
            let mut row = Row::new(number, number, &text);
            if let Some(values) = values {
                row = row.embedded(MODEL, &values);
            }
            store.put("ann", uid, row);
        }
        store
    })
}

pub(super) const ANN: Scope<'static> = Scope::User { user: "ann" };

pub(super) fn rows_of(store: &Store) -> Vec<(u64, Row)> {
    let parts = store.parts.iter();
    parts
        .flat_map(|((_, uid), rows)| rows.values().map(|row| (*uid, row.clone())))
        .collect()
}

/// The score of a profile by its definition; `None` for what is no candidate.
fn expected(
    profile: Profile,
    weights: Weights,
    (best, ideal, trust): (f64, f64, f64),
    row: &Naive,
    with_vector: bool,
) -> Option<f64> {
    let relative = relative(row.bm25, best, ideal) * if with_vector { trust } else { 1.0 };
    match profile {
        Profile::Lexical => (row.bm25 > 0.0).then_some(row.bm25),
        Profile::Vector => row.cosine.map(|cosine| (1.0 + cosine) / 2.0),
        Profile::Hybrid if !with_vector => (row.bm25 > 0.0).then_some(relative),
        Profile::HybridLate if !with_vector => (row.bm25 > 0.0).then_some(relative),
        Profile::Hybrid if row.can_be_found() => {
            Some(weights.cosine * row.cosine.unwrap_or(0.0) + weights.bm25 * relative)
        }
        Profile::HybridLate if row.can_be_found() => Some(
            weights.cosine * row.cosine.unwrap_or(0.0)
                + weights.late * row.late.unwrap_or(0.0)
                + weights.bm25 * relative,
        ),
        Profile::Hybrid | Profile::HybridLate => None,
    }
}

pub(super) fn assert_agrees(found: &Found, mut expected: Vec<(f64, (u64, u64))>) {
    expected.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    assert_eq!(found.hits.len(), expected.len());
    for (hit, (score, _)) in found.hits.iter().zip(&expected) {
        assert!(
            (hit.score - score).abs() < 1e-5,
            "{} is not {score}",
            hit.score
        );
        let own = expected
            .iter()
            .find(|(_, place)| *place == (hit.uid, hit.sequence));
        let own = own.expect("a hit is a candidate").0;
        assert!((hit.score - own).abs() < 1e-5, "{} is not {own}", hit.score);
    }
}

fn profile() -> impl Strategy<Value = Profile> {
    prop::sample::select(vec![
        Profile::Hybrid,
        Profile::HybridLate,
        Profile::Vector,
        Profile::Lexical,
    ])
}

fn weights() -> impl Strategy<Value = Weights> {
    (0u8..4, 0u8..4, 0u8..4).prop_map(|(cosine, late, bm25)| Weights {
        cosine: f64::from(cosine) / 2.0,
        late: f64::from(late) / 2.0,
        bm25: f64::from(bm25) / 2.0,
        ..Weights::default()
    })
}

proptest! {
    #[test]
    fn scores_are_those_of_a_naive_computation(
        store in store(), profile in profile(), weights in weights(), query in text(), values in prop::option::of(direction()),
    ) {
        let mut question = Question::new(profile, &query, values.as_deref());
        question.weights = weights;
        let scored = naive(&rows_of(&store), &query, values.as_deref());
        let best = scored.iter().map(|row| row.bm25).fold(0.0, f64::max);
        let ideal = ideal(&documents(&rows_of(&store)), &words_asked(&query, &query));
        let trust = trust(&scored, ideal);

        let found = question.ask(&store.fresh(), ANN);

        let expected = scored.iter().filter_map(|row| {
            let score = expected(profile, weights, (best, ideal, trust), row, values.is_some())?;
            Some((score, (row.uid, row.row.sequence)))
        });
        assert_agrees(&found, expected.collect());
    }

    #[test]
    fn components_add_up_to_the_score_exactly(
        store in store(), profile in profile(), weights in weights(), query in text(), values in prop::option::of(direction()),
    ) {
        let mut question = Question::new(profile, &query, values.as_deref());
        question.weights = weights;

        let found = question.ask(&store.fresh(), ANN);

        for hit in &found.hits {
            let sum = hit.components.iter().fold(0.0, |sum, part| sum + part.value * part.weight);
            prop_assert_eq!(sum, hit.score);
        }
    }

    #[test]
    fn fewer_hits_are_the_first_of_more(store in store(), profile in profile(), query in text(), values in direction(), k in 0usize..8) {
        let recall = store.fresh();
        let mut question = Question::new(profile, &query, Some(&values));
        let mut all = question.ask(&recall, ANN).hits;

        question.k = k;
        let first = question.ask(&recall, ANN).hits;

        all.truncate(k);
        prop_assert_eq!(first, all);
    }

    #[test]
    fn a_threshold_cuts_the_ranking(store in store(), profile in profile(), query in text(), values in direction(), threshold in -1.0f64..1.5) {
        let recall = store.fresh();
        let mut question = Question::new(profile, &query, Some(&values));
        let mut all = question.ask(&recall, ANN).hits;

        question.threshold = Some(threshold);
        let cut = question.ask(&recall, ANN).hits;

        all.retain(|hit| hit.score >= threshold);
        prop_assert_eq!(cut, all);
    }

    #[test]
    fn filters_and_what_was_seen_take_hits_out_and_change_no_score(
        store in store(), profile in profile(), query in text(), values in direction(), after in 0i64..20, excluded in 1u64..20,
    ) {
        let mut store = store;
        for rows in store.parts.values_mut() {
            for row in rows.values_mut() {
                row.time = row.sequence as i64;
            }
        }
        let recall = store.fresh();
        let mut question = Question::new(profile, &query, Some(&values));
        let mut all = question.ask(&recall, ANN).hits;

        question.filter = Filter { sent: (Some(after), None).into(), ..Filter::default() };
        question.seen = vec![(1, excluded), (2, excluded), (9, 9)];
        let some = question.ask(&recall, ANN).hits;

        all.retain(|hit| hit.sequence as i64 > after && !question.seen.contains(&(hit.uid, hit.sequence)));
        prop_assert_eq!(some, all);
    }
}

#[test]
fn equal_scores_are_ordered_by_conversation_then_sequence() {
    let recall = recall();
    recall.begin_user(TENANT, "ann");
    recall.finish_user(TENANT, "ann");
    for (revision, (uid, sequence)) in (1..).zip([(7, 2), (3, 9), (7, 1), (3, 4), (5, 1)]) {
        let row = Row::new(sequence, revision, "a red boat");
        let made = vector(MODEL, &[1.0, 0.0]);
        recall.put(key("ann", uid), "c", row.encoded(), Some(made), revision);
    }

    for profile in [Profile::Hybrid, Profile::Vector, Profile::Lexical] {
        let question = Question::new(profile, "boat", Some(&[1.0, 1.0]));

        let found = question.ask(&recall, ANN);

        assert_eq!(places(&found), [(3, 4), (3, 9), (5, 1), (7, 1), (7, 2)]);
    }
}

#[test]
fn a_hit_comes_with_the_messages_around_it() {
    let recall = recall();
    recall.begin_user(TENANT, "ann");
    recall.finish_user(TENANT, "ann");
    let encoded: Vec<_> = (1..=6)
        .map(|sequence| {
            let text = if sequence == 3 { "a red boat" } else { "tea" };
            let row = Row::new(sequence * 2, sequence, text);
            recall.put(key("ann", 7), "c", row.encoded(), None, sequence);
            row.encoded()
        })
        .collect();
    let mut question = Question::new(Profile::Lexical, "boat", None);

    for (around, before, after) in [(0, 2..2, 3..3), (2, 0..2, 3..5), (9, 0..2, 3..6)] {
        question.around = around;
        let found = question.ask(&recall, ANN);
        let [hit] = &found.hits[..] else {
            panic!("{found:?}")
        };
        assert_eq!(hit.before, encoded[before]);
        assert_eq!(hit.after, encoded[after]);
    }
}

#[test]
fn a_message_without_a_vector_is_found_by_its_words_and_has_no_cosine() {
    let mut store = Store::default();
    store.put(
        "ann",
        1,
        Row::new(1, 1, "the lantern").embedded(MODEL, &[0.0, 1.0]),
    );
    store.put("ann", 1, Row::new(2, 2, "the boat"));
    let question = Question::new(Profile::Hybrid, "boat", Some(&[1.0, 0.0]));

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found), [(1, 2), (1, 1)]);
    let names: Vec<_> = found.hits[0]
        .components
        .iter()
        .map(|part| part.name)
        .collect();
    assert_eq!(names, ["bm25"]);
    assert_eq!(found.hits[0].score, 0.3);
    assert_eq!(found.pending, 1);
}

#[test]
fn a_message_that_the_model_makes_no_vector_of_is_found_by_its_words_and_waits_for_none() {
    let mut store = Store::default();
    store.put("ann", 1, Row::new(1, 1, "the boat").embedded(MODEL, &[]));
    store.put("ann", 1, Row::new(2, 2, "the kite"));
    let question = Question::new(Profile::Hybrid, "boat", Some(&[1.0, 0.0]));

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found)[0], (1, 1));
    assert_eq!(found.pending, 1);

    store.put(
        "ann",
        1,
        Row::new(1, 3, "a boat").embedded(MODEL, &[1.0, 0.0]),
    );
    assert_eq!(question.ask(&store.fresh(), ANN).pending, 1);
    store.put("ann", 1, Row::new(1, 4, "a boat again"));
    assert_eq!(question.ask(&store.fresh(), ANN).pending, 2);
}

#[test]
fn vectors_of_another_model_or_dimension_do_not_count() {
    let mut store = Store::default();
    store.put("ann", 1, Row::new(1, 1, "a").embedded("other", &[1.0, 0.0]));
    store.put(
        "ann",
        1,
        Row::new(2, 2, "b").embedded(MODEL, &[1.0, 0.0, 0.0]),
    );
    store.put("ann", 1, Row::new(3, 3, "c").embedded(MODEL, &[1.0, 0.0]));
    let question = Question::new(Profile::Vector, "", Some(&[1.0, 0.0]));

    let found = question.ask(&store.fresh(), ANN);

    assert_eq!(places(&found), [(1, 3)]);
    assert_eq!(found.hits[0].score, 1.0);
}

#[test]
fn the_dimensions_of_a_model_are_those_of_the_vectors_that_are_there() {
    let mut store = Store::default();
    store.put("ann", 1, Row::new(1, 1, "a").embedded("other", &[1.0]));
    store.put(
        "ann",
        1,
        Row::new(2, 2, "b").embedded(MODEL, &[1.0, 0.0, 0.0]),
    );
    store.put("ann", 1, Row::new(3, 3, "c").embedded(MODEL, &[1.0, 0.0]));
    let recall = store.fresh();

    assert_eq!(recall.dimensions(TENANT, ANN, MODEL, 3), [2, 3]);
    assert_eq!(recall.dimensions(TENANT, ANN, "none", 3), [0; 0]);
}

#[test]
fn a_query_without_direction_is_refused() {
    let search = crate::Search {
        tenant: TENANT,
        scope: ANN,
        text: "",
        doubtful: &[],
        source: None,
        vector: Some(&[0.0, 0.0]),
        pieces: &remora_late::Pieces::default(),
        model: MODEL,
        profile: Profile::Vector,
        k: 1,
        threshold: None,
        weights: Weights::default(),
        filter: Filter::default(),
        exclude: &[],
        around: 0,
        without_roles: &[],
        seen: &[],
        half_life: None,
        published: 0,
    };

    assert!(recall().search(&search).is_err());
}

#[test]
fn statistics_are_those_of_the_scope() {
    let mut store = Store::default();
    store.put("ann", 1, Row::new(1, 1, "boat"));
    store.put("ann", 2, Row::new(1, 2, "boat boat lantern"));
    store.put("bob", 3, Row::new(1, 3, "boat"));
    let recall = store.fresh();
    let question = Question::new(Profile::Lexical, "boat", None);

    for (scope, users, uids) in [
        (
            Scope::Part {
                user: "ann",
                uid: 2,
            },
            vec!["ann"],
            vec![2],
        ),
        (ANN, vec!["ann"], vec![1, 2]),
        (Scope::Tenant, vec!["ann", "bob"], vec![1, 2, 3]),
    ] {
        let found = question.ask(&recall, scope);

        let parts = store.parts.iter();
        let inside =
            parts.filter(|((user, uid), _)| users.contains(&user.as_str()) && uids.contains(uid));
        let rows: Vec<_> = inside
            .flat_map(|((_, uid), rows)| rows.values().map(|row| (*uid, row.clone())))
            .collect();
        let expected = naive(&rows, "boat", None);
        let expected = expected
            .iter()
            .map(|row| (row.bm25, (row.uid, row.row.sequence)));
        assert_agrees(&found, expected.collect());
        assert!(found.complete);
    }
}

#[test]
fn of_a_large_scope_the_best_are_compared_and_the_others_keep_their_cosine() {
    let mut store = Store::default();
    let rows = COMPARED as u64 + 9;
    for sequence in 1..=rows {
        let far = if sequence <= 9 { 4.0 } else { 0.0 };
        let row = Row::new(sequence, sequence, "boat");
        let row = row.embedded(MODEL, &[1.0, far + (sequence % 2) as f32 / 2.0]);
        store.put("ann", 1, row);
    }
    let mut question = Question::new(Profile::HybridLate, "lantern", Some(&[1.0, 0.5]));
    question.weights.late = 0.5;
    question.k = rows as usize;

    let found = question.ask(&store.fresh(), ANN);

    let value = |hit: &FoundMessage, name| {
        let part = hit.components.iter().find(|part| part.name == name);
        part.expect("each has a cosine and a coverage").value
    };
    for hit in &found.hits {
        let is_compared = value(hit, "late") != value(hit, "cosine");
        assert_eq!(is_compared, hit.sequence > 9, "{hit:?}");
    }
}

#[test]
fn word_pieces_find_what_the_mean_hides() {
    let mut store = Store::default();
    store.put(
        "ann",
        1,
        Row::new(1, 1, "boat").embedded(MODEL, &[1.0, 0.0, 2.0]),
    );
    store.put(
        "ann",
        1,
        Row::new(2, 2, "lantern").embedded(MODEL, &[1.0, 3.0, 0.0]),
    );
    let question = Question {
        pieces: pieces(&[1.0, 0.0, 2.0]),
        weights: Weights {
            late: 0.5,
            ..Weights::default()
        },
        ..Question::new(Profile::HybridLate, "", Some(&[1.0, 0.0, 0.0]))
    };

    let late = question.ask(&store.fresh(), ANN);
    let plain = Question {
        profile: Profile::Hybrid,
        ..question
    };

    assert_eq!(places(&late), [(1, 1), (1, 2)]);
    assert!(late.hits[0].score - late.hits[1].score > 0.2);
    let names = |found: &Found| -> Vec<_> {
        let parts = found.hits[0].components.iter();
        parts.map(|part| part.name).collect()
    };
    assert_eq!(names(&late), ["cosine", "bm25", "late"]);
    assert_eq!(names(&plain.ask(&store.fresh(), ANN)), ["cosine", "bm25"]);
}
