//! Columns against a map of rows.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const ROWS: usize = 60;

#[derive(Debug, Clone)]
enum Step {
    Put(usize, &'static str, Scalar),
    Remove(usize, &'static str),
    Shift(usize, usize, &'static str),
    Ask(Expression),
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("c")]
}

/// Most rows are low, so that columns are dense, and become sparse by high ones.
fn row() -> impl Strategy<Value = usize> {
    prop_oneof![5 => 0usize..6, 1 => 0..ROWS]
}

fn value() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        Just(Scalar::Composite),
        any::<bool>().prop_map(Scalar::Boolean),
        (-2i64..3).prop_map(Scalar::Integer),
        (-4i8..6).prop_map(|half| Scalar::Number(f64::from(half) / 2.0)),
        "[ab]{0,2}".prop_map(|text| Scalar::Text(text.into())),
    ]
}

fn condition() -> impl Strategy<Value = Expression> {
    let operator = prop_oneof![
        Just(Operator::Eq),
        Just(Operator::Ne),
        Just(Operator::Lt),
        Just(Operator::Lte),
        Just(Operator::Gt),
        Just(Operator::Gte),
        Just(Operator::In),
        Just(Operator::Present),
        Just(Operator::Absent),
    ];
    (key(), operator, prop::collection::vec(value(), 1..3)).prop_map(|(key, operator, values)| {
        Expression::Condition(Condition {
            key: key.to_owned(),
            operator,
            values,
        })
    })
}

fn expression() -> impl Strategy<Value = Expression> {
    condition().prop_recursive(3, 12, 3, |inner| {
        let several = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            several().prop_map(Expression::All),
            several().prop_map(Expression::Any),
            inner
                .clone()
                .prop_map(|negated| Expression::Not(Box::new(negated))),
        ]
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (row(), key(), value()).prop_map(|(row, key, value)| Step::Put(row, key, value)),
        2 => (row(), key()).prop_map(|(row, key)| Step::Remove(row, key)),
        1 => (row(), row(), key()).prop_map(|(from, to, key)| Step::Shift(from, to, key)),
        4 => expression().prop_map(Step::Ask),
    ]
}

proptest! {
    #[test]
    fn columns_say_what_the_attributes_of_each_row_say(steps in prop::collection::vec(step(), 1..150)) {
        let mut columns = Columns::default();
        let mut rows: BTreeMap<(usize, &str), Scalar> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(row, key, value) => {
                    columns.remove(row, key);
                    columns.put(row, key, value.clone());
                    rows.insert((row, key), value);
                }
                Step::Remove(row, key) => {
                    columns.remove(row, key);
                    rows.remove(&(row, key));
                }
                Step::Shift(from, to, key) => {
                    columns.remove(to, key);
                    rows.remove(&(to, key));
                    columns.shift(from, to, key);
                    if let Some(value) = rows.remove(&(from, key)) {
                        rows.insert((to, key), value);
                    }
                }
                Step::Ask(expression) => {
                    let of = |row| expression.holds(&|key: &str| {
                        let mut known = ["a", "b", "c"].into_iter();
                        known.find(|known| *known == key).and_then(|key| rows.get(&(row, key)))
                    });
                    let wanted: Vec<bool> = (0..ROWS).map(of).collect();
                    prop_assert_eq!(columns.passing(&expression, ROWS), wanted);
                }
            }
        }
    }
}

#[test]
fn a_key_of_few_rows_takes_little_memory() {
    let mut columns = Columns::default();
    for row in 0..2_000 {
        columns.put(row, &row.to_string(), Scalar::Integer(1));
    }
    assert!(columns.bytes() < 2_000 * 400, "{}", columns.bytes());
}
