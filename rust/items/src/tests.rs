//! The items of a tenant against a naive model: a map from places to items, all of which are looked at.

use std::collections::BTreeMap;

use proptest::prelude::*;
use prost::Message as _;
use remora_filter::{Condition, Expression, Operator, Scalar};

use super::*;

const KIND: u32 = 15;
const OF: (u32, &str) = (KIND, "t");
const PATH: &str = r#"["n"]"#;
const NOW: i64 = 1_000;

#[derive(Debug, Clone, PartialEq)]
struct Model {
    body: Bytes,
    number: i64,
    vectors: Vec<Vec<f32>>,
    user: String,
    updated: i64,
    revision: u64,
    expire_time: Option<i64>,
}

/// The namespaces `a`, `a/b`, `a/bc` and `b`, encoded.
fn namespace(number: usize) -> Bytes {
    let labels: &[&str] = [&["a"][..], &["a", "b"], &["a", "bc"], &["b"]][number];
    let mut encoded = namespaces::encoded_leading(labels.iter().copied());
    encoded.extend([0, 0]);
    encoded.into()
}

fn prefix(labels: &[&str]) -> Bytes {
    namespaces::encoded_leading(labels.iter().copied()).into()
}

fn key(number: u8) -> Bytes {
    Bytes::copy_from_slice(&[b'k', number])
}

fn packed(values: &[f32]) -> Bytes {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    bytes.into()
}

fn body(number: i64, vectors: &[Vec<f32>], user: &str, updated: i64) -> Bytes {
    let item = wire::StoreItemIndex {
        value: format!(r#"{{"n": {number}, "m": [{number}]}}"#).into(),
        user_id: user.to_owned(),
        create_time: None,
        update_time: Some(wire::Timestamp::from_micros(updated)),
        vectors: vectors
            .iter()
            .map(|values| wire::ItemVector {
                values: packed(values),
                model: String::new(),
            })
            .collect(),
    };
    item.encode_to_vec().into()
}

fn is(path: &str, number: i64) -> Expression {
    Expression::Condition(Condition {
        key: path.to_owned(),
        operator: Operator::Eq,
        values: vec![Scalar::Integer(number)],
    })
}

#[derive(Debug, Clone)]
enum Step {
    Put {
        namespace: usize,
        key: u8,
        number: i64,
        vectors: Vec<Vec<f32>>,
        user: &'static str,
        expires: bool,
    },
    Remove(usize, u8),
    RemoveNamespace(usize),
    RemovePrefix(bool),
    RemoveUser(&'static str),
    Expire(usize, u8, bool),
    Search {
        prefix: usize,
        filter: Option<i64>,
        query: Option<(Vec<f32>, Similarity)>,
        skip: usize,
        limit: usize,
    },
}

fn values() -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec((-2i8..=2).prop_map(f32::from), 3)
}

fn similarity() -> impl Strategy<Value = Similarity> {
    prop_oneof![
        Just(Similarity::Cosine),
        Just(Similarity::InnerProduct),
        Just(Similarity::L2)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let user = || prop_oneof![Just(""), Just("sarah"), Just("tom")];
    let vectors = prop::collection::vec(values(), 0..4);
    let put = (
        0usize..4,
        0u8..6,
        0i64..3,
        vectors,
        user(),
        prop::bool::weighted(0.1),
    );
    let query = prop::option::of((values(), similarity()));
    let search = (
        0usize..3,
        prop::option::of(0i64..3),
        query,
        0usize..4,
        1usize..6,
    );
    prop_oneof![
        10 => put.prop_map(|(namespace, key, number, vectors, user, expires)| Step::Put { namespace, key, number, vectors, user, expires }),
        3 => (0usize..4, 0u8..6).prop_map(|(namespace, key)| Step::Remove(namespace, key)),
        1 => (0usize..4).prop_map(Step::RemoveNamespace),
        1 => any::<bool>().prop_map(Step::RemovePrefix),
        1 => prop_oneof![Just("sarah"), Just("tom")].prop_map(Step::RemoveUser),
        1 => (0usize..4, 0u8..6, any::<bool>()).prop_map(|(namespace, key, gone)| Step::Expire(namespace, key, gone)),
        6 => search.prop_map(|(prefix, filter, query, skip, limit)| Step::Search { prefix, filter, query, skip, limit }),
    ]
}

fn score(query: &[f32], similarity: Similarity, stored: &[f32]) -> f64 {
    let query = Query {
        model: String::new(),
        vector: remora_vectors::Query::new(query.to_vec()),
        similarity,
    };
    let bytes = packed(stored);
    match similarity {
        Similarity::Cosine => query.vector.cosine(&bytes, remora_vectors::norm(&bytes)),
        Similarity::InnerProduct => query.vector.inner_product(&bytes),
        Similarity::L2 => -query.vector.distance(&bytes),
    }
}

/// What a search is to find: the places with their scores.
fn naive(
    model: &BTreeMap<(Bytes, Bytes), Model>,
    prefix: &[u8],
    filter: Option<i64>,
    query: Option<&(Vec<f32>, Similarity)>,
) -> Vec<((Bytes, Bytes), Option<f64>)> {
    let there = model.iter().filter(|((namespace, _), item)| {
        namespace.starts_with(prefix)
            && item.expire_time.is_none_or(|time| time > NOW)
            && filter.is_none_or(|number| item.number == number)
    });
    let Some((values, similarity)) = query else {
        let mut found: Vec<_> = there.collect();
        found.sort_by_key(|(place, item)| (-item.updated, (*place).clone()));
        return found
            .into_iter()
            .map(|(place, _)| (place.clone(), None))
            .collect();
    };
    let mut found: Vec<_> = there
        .filter_map(|(place, item)| {
            let scores = item
                .vectors
                .iter()
                .map(|stored| score(values, *similarity, stored));
            scores.max_by(f64::total_cmp).map(|best| (place, best))
        })
        .collect();
    found.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(other.0)));
    found
        .into_iter()
        .map(|(place, best)| (place.clone(), Some(best)))
        .collect()
}

proptest! {
    #[test]
    fn searches_find_what_a_look_at_all_items_finds(steps in prop::collection::vec(step(), 1..80)) {
        let items = Items::new(Kernels::best(), 1 << 20);
        items.begin(KIND, "t").finish();
        let mut model: BTreeMap<(Bytes, Bytes), Model> = BTreeMap::new();
        for (revision, step) in (1u64..).zip(steps) {
            let updated = revision as i64 / 2;
            match step {
                Step::Put { namespace: number, key: name, number: value, vectors, user, expires } => {
                    let place = (namespace(number), key(name));
                    let body = body(value, &vectors, user, updated);
                    let expire_time = expires.then_some(NOW);
                    let put = Put { namespace: place.0.clone(), key: place.1.clone(), body: body.clone(), revision, expire_time };
                    items.deliver(KIND, "t", Op::Put(put), revision);
                    model.insert(place, Model { body, number: value, vectors, user: user.to_owned(), updated, revision, expire_time });
                }
                Step::Remove(number, name) => {
                    let (namespace, key) = (namespace(number), key(name));
                    items.deliver(KIND, "t", Op::Remove { namespace: namespace.clone(), key: key.clone() }, revision);
                    model.remove(&(namespace, key));
                }
                Step::RemoveNamespace(number) => {
                    let gone = namespace(number);
                    items.deliver(KIND, "t", Op::RemoveNamespace { namespace: gone.clone() }, revision);
                    model.retain(|(namespace, _), _| *namespace != gone);
                }
                Step::RemovePrefix(deep) => {
                    let gone = if deep { prefix(&["a", "b"]) } else { prefix(&["a"]) };
                    items.deliver(KIND, "t", Op::RemovePrefix { prefix: gone.clone() }, revision);
                    model.retain(|(namespace, _), _| !namespace.starts_with(&gone));
                }
                Step::RemoveUser(gone) => {
                    items.deliver(KIND, "t", Op::RemoveUser { user: gone.to_owned() }, revision);
                    model.retain(|_, item| item.user != gone);
                }
                Step::Expire(number, name, gone) => {
                    let place = (namespace(number), key(name));
                    let expire_time = Some(if gone { NOW } else { NOW + 1 });
                    if let Some(item) = model.get_mut(&place) {
                        let op = Op::Expire { namespace: place.0, key: place.1, revision: item.revision, expire_time };
                        items.deliver_expiry(KIND, "t", op);
                        item.expire_time = expire_time;
                    }
                }
                Step::Search { prefix: number, filter, query, skip, limit } => {
                    let prefix = [prefix(&[]), prefix(&["a"]), prefix(&["a", "b"])][number].clone();
                    let asked = query.clone().map(|(values, similarity)| Query {
                        model: String::new(), vector: remora_vectors::Query::new(values), similarity,
                    });
                    let expression = filter.map(|number| is(PATH, number));
                    let search = Search { prefix: &prefix, filter: expression.as_ref(), query: asked.as_ref(), skip, limit, now: NOW };
                    let found = items.search(OF, &search, || revision).map_err(|_| TestCaseError::fail("cold"))?.found;
                    let expected: Vec<_> = naive(&model, &prefix, filter, query.as_ref()).into_iter().skip(skip).take(limit).collect();
                    let shown: Vec<_> = found.iter().map(|hit| ((hit.namespace.clone(), hit.key.clone()), hit.score)).collect();
                    prop_assert_eq!(shown, expected);
                    for hit in &found {
                        prop_assert_eq!(&hit.body, &model[&(hit.namespace.clone(), hit.key.clone())].body);
                    }
                }
            }
        }
    }
}

#[test]
fn labels_come_back_from_their_encoding() {
    for labels in [
        &["a"][..],
        &["a", "b"],
        &["\0", "a\0b", "é"],
        &["\u{1}\u{ff}"],
    ] {
        let mut encoded = namespaces::encoded_leading(labels.iter().copied());
        encoded.extend([0, 0]);

        assert_eq!(namespaces::labels(&encoded), labels);
    }
}

#[test]
fn what_is_not_loaded_is_cold() {
    let items = Items::new(Kernels::best(), 1 << 20);
    let listing = Listing {
        matches: &[],
        max_depth: None,
        skip: 0,
        limit: 1,
        now: NOW,
    };

    assert_eq!(items.namespaces(OF, &listing, || 1), Err(Cold));
}

#[test]
fn many_paths_are_forgotten_and_learned_again() {
    let items = Items::new(Kernels::best(), 1 << 20);
    let load = items.begin(KIND, "t");
    load.fill((0..3u8).map(|number| Put {
        namespace: namespace(0),
        key: key(number),
        body: body(i64::from(number), &[], "", 1),
        revision: 1,
        expire_time: None,
    }));
    load.finish();
    let found = |path: &str, number| {
        let expression = is(path, number);
        let search = Search {
            prefix: b"",
            filter: Some(&expression),
            query: None,
            skip: 0,
            limit: 10,
            now: NOW,
        };
        let shown = items.search(OF, &search, || 1);
        shown.map(|shown| shown.found.len())
    };

    for turn in 0..600 {
        assert_eq!(found(&format!(r#"["x{turn}"]"#), 1), Ok(0));
        assert_eq!(found(PATH, 2), Ok(1));
        assert_eq!(found(r#"["m", "0"]"#, 2), Ok(1));
        assert_eq!(found(r#"["m", "00"]"#, 2), Ok(0));
    }
}
