use std::collections::BTreeMap;

use proptest::prelude::*;

use super::model::{Question, Row, Store, places};
use crate::recall::{Condition, Filter, Operator, Profile, Scalar, Scope, UnknownOperator};
use crate::wire::{self, ScalarKind};

const OPERATORS: [Operator; 9] = [
    Operator::Eq,
    Operator::Ne,
    Operator::Lt,
    Operator::Lte,
    Operator::Gt,
    Operator::Gte,
    Operator::In,
    Operator::Present,
    Operator::Absent,
];

fn kind() -> impl Strategy<Value = ScalarKind> {
    prop_oneof![
        Just(ScalarKind::Null(0)),
        any::<bool>().prop_map(ScalarKind::Boolean),
        (-2i64..3).prop_map(ScalarKind::Integer),
        (-4i8..6).prop_map(|half| ScalarKind::Number(f64::from(half) / 2.0)),
        "[ab]{0,2}".prop_map(ScalarKind::Text),
    ]
}

fn scalar(kind: ScalarKind) -> wire::Scalar {
    wire::Scalar { kind: Some(kind) }
}

/// The rules of `remora.v1.Condition`, spelled out case by case.
fn holds(operator: Operator, value: Option<&ScalarKind>, asked: &[ScalarKind]) -> bool {
    let equal = |other: &ScalarKind| match (value, other) {
        (Some(ScalarKind::Integer(a)), ScalarKind::Number(b)) => *a as f64 == *b,
        (Some(ScalarKind::Number(a)), ScalarKind::Integer(b)) => *a == *b as f64,
        (Some(value), other) => value == other,
        (None, _) => false,
    };
    let number = |kind: &ScalarKind| match kind {
        ScalarKind::Integer(value) => Some(*value as f64),
        ScalarKind::Number(value) => Some(*value),
        _ => None,
    };
    let less = |a: &ScalarKind, b: &ScalarKind| match (a, b) {
        (ScalarKind::Text(a), ScalarKind::Text(b)) => a < b,
        _ => number(a).zip(number(b)).is_some_and(|(a, b)| a < b),
    };
    let ordered = |kind: &ScalarKind| number(kind).is_some() || matches!(kind, ScalarKind::Text(_));
    match (operator, value) {
        (Operator::Present, value) => value.is_some(),
        (Operator::Absent, value) => value.is_none(),
        (Operator::Ne, _) => !equal(&asked[0]),
        (Operator::In, _) => asked.iter().any(equal),
        (Operator::Eq, _) => equal(&asked[0]),
        (_, None) => false,
        (Operator::Lt, Some(value)) => less(value, &asked[0]),
        (Operator::Gt, Some(value)) => less(&asked[0], value),
        (Operator::Lte, Some(value)) => {
            less(value, &asked[0]) || ordered(value) && equal(&asked[0])
        }
        (Operator::Gte, Some(value)) => {
            less(&asked[0], value) || ordered(value) && equal(&asked[0])
        }
    }
}

fn ask(store: &Store, filter: Filter) -> Vec<u64> {
    let mut question = Question::new(Profile::Hybrid, "", Some(&[1.0]));
    question.filter = filter;
    let found = question.ask(&store.fresh(), Scope::User { user: "ann" });
    places(&found)
        .into_iter()
        .map(|(_, sequence)| sequence)
        .collect()
}

proptest! {
    #[test]
    fn conditions_select_what_their_definition_selects(
        values in prop::collection::vec(prop::option::of(kind()), 1..12),
        operator in prop::sample::select(OPERATORS.as_slice()),
        asked in prop::collection::vec(kind(), 1..4),
    ) {
        let mut store = Store::default();
        for (sequence, value) in (1..).zip(&values) {
            let attributes = value.clone().map(|kind| ("colour".to_owned(), scalar(kind)));
            let noise = [("a".to_owned(), scalar(ScalarKind::Integer(1))), ("z".to_owned(), scalar(ScalarKind::Null(0)))];
            let row = Row { attributes: attributes.into_iter().chain(noise).collect(), ..Row::new(sequence, sequence, "x") };
            store.put("ann", 1, row);
        }
        let asked = if operator == Operator::In { &asked[..] } else { &asked[..1] };
        let condition = Condition {
            key: "colour".to_owned(),
            operator,
            values: asked.iter().cloned().map(|kind| Scalar::from(scalar(kind))).collect(),
        };

        let found = ask(&store, Filter { conditions: vec![condition], ..Filter::default() });

        let expected: Vec<u64> = (1..).zip(&values)
            .filter(|(_, value)| holds(operator, value.as_ref(), asked))
            .map(|(sequence, _)| sequence)
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn roles_and_times_select_together(
        rows in prop::collection::vec((prop::sample::select(vec!["user", "assistant", "tool"]), 0i64..9), 1..12),
        after in prop::option::of(0i64..9), before in prop::option::of(0i64..9),
        roles in prop::collection::vec(prop::sample::select(vec!["user", "tool", "nobody"]), 0..3),
    ) {
        let mut store = Store::default();
        for (sequence, (role, time)) in (1..).zip(&rows) {
            store.put("ann", 1, Row { role: (*role).to_owned(), time: *time, ..Row::new(sequence, sequence, "x") });
        }
        let filter = Filter {
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            after_time: after,
            before_time: before,
            conditions: Vec::new(),
        };

        let found = ask(&store, filter);

        let expected: Vec<u64> = (1..).zip(&rows)
            .filter(|(_, (role, time))| {
                (roles.is_empty() || roles.contains(role))
                    && after.is_none_or(|after| *time > after)
                    && before.is_none_or(|before| *time < before)
            })
            .map(|(sequence, _)| sequence)
            .collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn integers_beyond_the_precision_of_a_double_are_told_apart() {
    let big = 1i64 << 53;
    let mut store = Store::default();
    for (sequence, value) in [(1, big), (2, big + 1), (3, i64::MAX), (4, i64::MIN)] {
        let attributes = BTreeMap::from([("n".to_owned(), scalar(ScalarKind::Integer(value)))]);
        store.put(
            "ann",
            1,
            Row {
                attributes,
                ..Row::new(sequence, sequence, "x")
            },
        );
    }
    let filter = |operator, value| Filter {
        conditions: vec![Condition {
            key: "n".to_owned(),
            operator,
            values: vec![Scalar::Number(value)],
        }],
        ..Filter::default()
    };

    assert_eq!(ask(&store, filter(Operator::Eq, big as f64)), [1]);
    assert_eq!(ask(&store, filter(Operator::Gt, big as f64)), [2, 3]);
    assert_eq!(ask(&store, filter(Operator::Lt, 1e300)), [1, 2, 3, 4]);
    assert_eq!(ask(&store, filter(Operator::Gte, -1e300)), [1, 2, 3, 4]);
    assert_eq!(ask(&store, filter(Operator::Lt, -0.5)), [4]);
}

#[test]
fn operators_have_names_in_either_case() {
    let names = [
        "eq", "ne", "lt", "lte", "gt", "gte", "in", "present", "absent",
    ];

    assert_eq!(
        names.map(|name| name.parse::<Operator>().ok()),
        OPERATORS.map(Some)
    );
    assert_eq!("GTE".parse(), Ok(Operator::Gte));
    assert_eq!(
        "like".parse::<Operator>(),
        Err(UnknownOperator("like".to_owned()))
    );
}
