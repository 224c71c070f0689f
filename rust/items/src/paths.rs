//! What filters see of the items' values: a column for each path that a filter has named.

use bytes::Bytes;
use hashbrown::HashMap;
use remora_filter::{Columns, Expression, Scalar};
use remora_supervision::failpoints::{self, Point};
use serde_json::Value;

/// More paths than these are forgotten, those that were named longest ago first.
const MOST: usize = 256;

/// The columns of the paths that filters have named lately.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    columns: Columns,
    paths: HashMap<String, Path>,
    clock: u64,
}

/// A path into a value, and when it was last named.
#[derive(Debug)]
struct Path {
    steps: Vec<String>,
    used: u64,
}

impl Paths {
    /// Whether there is a column for each path that an expression names.
    pub(crate) fn know(&self, expression: &Expression) -> bool {
        let mut known = true;
        expression.each_key(&mut |key| known &= self.paths.contains_key(key));
        known
    }

    /// Makes columns for the paths that an expression names, from all values.
    pub(crate) fn learn<'a>(
        &mut self,
        expression: &Expression,
        values: impl Iterator<Item = &'a Bytes> + Clone,
    ) {
        self.clock += 1;
        let mut fresh = HashMap::new();
        expression.each_key(&mut |key| {
            if let Some(path) = self.paths.get_mut(key) {
                path.used = self.clock;
            } else if let Ok(steps) = serde_json::from_str::<Vec<String>>(key) {
                let used = self.clock;
                fresh.insert(key.to_owned(), Path { steps, used });
            }
        });
        self.forget_oldest(fresh.len(), values.clone().count());
        for (row, value) in values.enumerate() {
            put(&mut self.columns, &fresh, row, value);
            failpoints::hit(Point::PathsLearning);
        }
        self.paths.extend(fresh);
    }

    fn forget_oldest(&mut self, coming: usize, rows: usize) {
        let mut ages: Vec<_> = self.paths.values().map(|path| path.used).collect();
        ages.sort_unstable_by(|one, other| other.cmp(one));
        let Some(last) = ages.get(MOST.saturating_sub(coming)).copied() else {
            return;
        };
        let clock = self.clock;
        let gone = |path: &Path| path.used <= last && path.used < clock;
        for (key, _) in self.paths.extract_if(|_, path| gone(path)) {
            (0..rows).for_each(|row| self.columns.remove(row, &key));
        }
    }

    /// A row, which had no value, gets one.
    pub(crate) fn put(&mut self, row: usize, value: &Bytes) {
        put(&mut self.columns, &self.paths, row, value);
    }

    /// A row loses its value.
    pub(crate) fn remove(&mut self, row: usize) {
        for key in self.paths.keys() {
            self.columns.remove(row, key);
        }
    }

    /// The value of a row goes to another, which has none.
    pub(crate) fn shift(&mut self, from: usize, to: usize) {
        for key in self.paths.keys() {
            self.columns.shift(from, to, key);
        }
    }

    /// Which of so many rows pass an expression, whose paths have columns.
    pub(crate) fn passing(&self, expression: &Expression, rows: usize) -> Vec<bool> {
        self.columns.passing(expression, rows)
    }

    /// An estimate of the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.bytes()
    }
}

fn put(columns: &mut Columns, paths: &HashMap<String, Path>, row: usize, value: &Bytes) {
    if paths.is_empty() {
        return;
    }
    // A value that is no JSON has no members: the server takes none.
    let value = serde_json::from_slice(value).unwrap_or(Value::Null);
    for (key, path) in paths {
        if let Some(found) = path.of(&value) {
            columns.put(row, key, scalar(found));
        }
    }
}

impl Path {
    /// What it leads to.
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let step = |value: &'a Value, step: &String| match value {
            Value::Object(members) => members.get(step),
            Value::Array(elements) => elements.get(index(step)?),
            _ => None,
        };
        self.steps.iter().try_fold(value, step)
    }
}

/// The index that a step names: decimal digits without leading zeros, and nothing else.
fn index(step: &str) -> Option<usize> {
    let is_number = step.bytes().all(|byte| byte.is_ascii_digit());
    let is_only_name = step == "0" || !step.starts_with('0');
    (is_number && is_only_name)
        .then(|| step.parse().ok())
        .flatten()
}

/// A value as filters compare it. Integers beyond 64 bits are doubles, as for most readers of JSON.
fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Null => Scalar::Null,
        Value::Bool(value) => Scalar::Boolean(*value),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => Scalar::Integer(integer),
            None => Scalar::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Scalar::Text(text.as_str().into()),
        Value::Array(_) | Value::Object(_) => Scalar::Composite,
    }
}
