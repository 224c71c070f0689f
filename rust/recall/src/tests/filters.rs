use std::collections::BTreeMap;

use proptest::prelude::*;
use remora_wire::{self as wire, ScalarKind};

use super::model::{Question, Row, Store, places};
use crate::{Filter, Profile, Scope};
use remora_filter::{Condition, Expression, Operator, Scalar, UnknownOperator};

const KEYS: [&str; 2] = ["colour", "size"];
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

/// A document's attributes: some have a colour or a size, all have what nobody asks for.
fn attributes() -> impl Strategy<Value = BTreeMap<String, ScalarKind>> {
    let asked = prop::collection::btree_map(prop::sample::select(KEYS.as_slice()), kind(), 0..3);
    asked.prop_map(|asked| {
        let noise = [("a", ScalarKind::Integer(1)), ("z", ScalarKind::Null(0))];
        let all = asked.into_iter().chain(noise);
        all.map(|(key, kind)| (key.to_owned(), kind)).collect()
    })
}

/// An expression as it is asked, with the values that its definition compares.
#[derive(Clone, Debug)]
enum Asked {
    All(Vec<Asked>),
    Any(Vec<Asked>),
    Not(Box<Asked>),
    Condition(&'static str, Operator, Vec<ScalarKind>),
}

fn asked() -> impl Strategy<Value = Asked> {
    let condition = (
        prop::sample::select(KEYS.as_slice()),
        prop::sample::select(OPERATORS.as_slice()),
        prop::collection::vec(kind(), 1..4),
    );
    let leaf = condition.prop_map(|(key, operator, mut values)| {
        values.truncate(if operator == Operator::In { 3 } else { 1 });
        Asked::Condition(key, operator, values)
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Asked::All),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Asked::Any),
            inner.prop_map(|part| Asked::Not(Box::new(part))),
        ]
    })
}

impl Asked {
    fn expression(&self) -> Expression {
        let all = |parts: &[Self]| parts.iter().map(Self::expression).collect();
        match self {
            Self::All(parts) => Expression::All(all(parts)),
            Self::Any(parts) => Expression::Any(all(parts)),
            Self::Not(part) => Expression::Not(Box::new(part.expression())),
            Self::Condition(key, operator, values) => Expression::Condition(Condition {
                key: (*key).to_owned(),
                operator: *operator,
                values: values
                    .iter()
                    .cloned()
                    .map(|kind| Scalar::from(scalar(kind)))
                    .collect(),
            }),
        }
    }

    fn holds(&self, attributes: &BTreeMap<String, ScalarKind>) -> bool {
        match self {
            Self::All(parts) => !parts.iter().any(|part| !part.holds(attributes)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(attributes)),
            Self::Not(part) => !part.holds(attributes),
            Self::Condition(key, operator, values) => {
                holds(*operator, attributes.get(*key), values)
            }
        }
    }
}

fn within(after: Option<i64>, before: Option<i64>, time: i64) -> bool {
    after.is_none_or(|after| time > after) && before.is_none_or(|before| time < before)
}

#[test]
fn documents_of_roles_that_are_left_out_are_no_candidates() {
    let mut store = Store::default();
    for (sequence, role) in (1..).zip(["system", "user", "developer", "assistant"]) {
        let mut row = Row::new(sequence, sequence, "tea");
        role.clone_into(&mut row.role);
        store.put("ann", 1, row);
    }
    let mut question = Question::new(Profile::Hybrid, "tea", None);
    question.without_roles = ["system", "developer", "nobody"].map(str::to_owned).into();

    let mut found = places(&question.ask(&store.fresh(), Scope::User { user: "ann" }));

    found.sort_unstable();
    assert_eq!(found, [(1, 2), (1, 4)]);
}

proptest! {
    #[test]
    fn expressions_select_what_their_definition_selects(
        documents in prop::collection::vec(attributes(), 1..12),
        asked in asked(),
    ) {
        let mut store = Store::default();
        for (sequence, attributes) in (1..).zip(&documents) {
            let attributes = attributes.iter().map(|(key, kind)| (key.clone(), scalar(kind.clone()))).collect();
            store.put("ann", 1, Row { attributes, ..Row::new(sequence, sequence, "x") });
        }

        let found = ask(&store, Filter { expression: Some(asked.expression()), ..Filter::default() });

        let expected: Vec<u64> = (1..).zip(&documents)
            .filter(|(_, attributes)| asked.holds(attributes))
            .map(|(sequence, _)| sequence)
            .collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn roles_and_times_select_together(
        rows in prop::collection::vec((prop::sample::select(vec!["user", "assistant", "tool"]), 0i64..9, 0i64..9), 1..12),
        sent in (prop::option::of(0i64..9), prop::option::of(0i64..9)),
        received in (prop::option::of(0i64..9), prop::option::of(0i64..9)),
        roles in prop::collection::vec(prop::sample::select(vec!["user", "tool", "nobody"]), 0..3),
    ) {
        let mut store = Store::default();
        for (sequence, (role, time, stored)) in (1..).zip(&rows) {
            let row = Row { role: (*role).to_owned(), time: *time, received: Some(*stored), ..Row::new(sequence, sequence, "x") };
            store.put("ann", 1, row);
        }
        let filter = Filter {
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            sent: sent.into(),
            received: received.into(),
            expression: None,
        };

        let found = ask(&store, filter);

        let expected: Vec<u64> = (1..).zip(&rows)
            .filter(|(_, (role, time, stored))| {
                (roles.is_empty() || roles.contains(role))
                    && within(sent.0, sent.1, *time)
                    && within(received.0, received.1, *stored)
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
        expression: Some(Expression::Condition(Condition {
            key: "n".to_owned(),
            operator,
            values: vec![Scalar::Number(value)],
        })),
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
