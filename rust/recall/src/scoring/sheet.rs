//! The scores of all documents of a scope, component by component.

use super::buffers::Buffers;
use super::parallel::{is_worthwhile, join};
use crate::memory::View;

/// One summand of a score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Component {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
    /// Its weight.
    pub weight: f64,
}

/// The mark of a value that a document does not have.
pub(crate) const ABSENT: f32 = f32::NAN;

/// The values of one component, a row for each slot of the scope; [`ABSENT`] where a document has none.
pub(crate) struct Column {
    name: &'static str,
    weight: f64,
    values: Vec<f32>,
}

impl Column {
    pub(crate) fn new(name: &'static str, weight: f64, values: Vec<f32>) -> Self {
        Self {
            name,
            weight,
            values,
        }
    }
}

/// Writes the values of a component to the documents of a view, one for each slot, given their totals so far.
pub(crate) type Write<'a> = Box<dyn Fn(&View<'_>, &[f64], &mut [f32]) + Send + Sync + 'a>;

/// A column that is still to be written.
pub(crate) struct Draft<'a> {
    pub(crate) column: Column,
    pub(crate) write: Write<'a>,
}

impl Draft<'_> {
    /// A column of shares: scores of words that are to be divided by the best of them, or by half of what all words of the
    /// question would give where that is more, and taken to the power of 1.5. What has half of the words that the best has
    /// in common with the question says less than half as much; where the best has few of its words, none says much. All
    /// of it times `trust`, from 0 to 1.
    pub(crate) fn shares(
        name: &'static str,
        weight: f64,
        values: Vec<f32>,
        ideal: f64,
        trust: f64,
    ) -> Self {
        let best = values.iter().copied().fold(0.0, f32::max);
        let enough = (ideal * ENOUGH) as f32;
        let divisor = best.max(enough).max(f32::MIN_POSITIVE);
        Self {
            column: Column::new(name, weight, values),
            write: Box::new(move |_, _, values| {
                for value in values {
                    let share = *value / divisor;
                    *value = share * share.sqrt() * trust as f32;
                }
            }),
        }
    }

    /// A column of coverages: of all words' weight, how much a message has, to the power of 8, times `sureness`.
    pub(crate) fn coverage(
        name: &'static str,
        weight: f64,
        values: Vec<f32>,
        ideal: f64,
        sureness: f64,
    ) -> Self {
        let divisor = (ideal as f32).max(f32::MIN_POSITIVE);
        Self {
            column: Column::new(name, weight, values),
            write: Box::new(move |_, _, values| {
                for value in values {
                    *value = nearly_all((*value / divisor).min(1.0)) * sureness as f32;
                }
            }),
        }
    }
}

/// The power of 8: a message that lacks a tenth of the words' weight has less than half, one that lacks half has nothing.
fn nearly_all(coverage: f32) -> f32 {
    let square = coverage * coverage;
    (square * square) * (square * square)
}

/// Words count in full from this share of the score of a message with all words of a question.
const ENOUGH: f64 = 0.5;

/// Components, in the order in which they are added up.
pub(crate) struct Sheet {
    columns: Vec<Column>,
    /// For each row the sum of value times weight over the columns, added from left to right.
    totals: Vec<f64>,
}

impl Sheet {
    pub(crate) fn new(rows: usize, buffers: &Buffers) -> Self {
        Self {
            columns: Vec::new(),
            totals: buffers.sums.take(rows, 0.0),
        }
    }

    pub(crate) fn add(&mut self, column: Column) {
        add(&mut self.totals, &column.values, column.weight);
        self.columns.push(column);
    }

    /// Writes and adds columns, stage by stage: those of one stage see the totals of the stages before.
    pub(crate) fn add_stages(&mut self, views: &[View<'_>], mut stages: Vec<Vec<Draft<'_>>>) {
        let written = stages
            .iter_mut()
            .map(|stage| stage.iter_mut().map(Written::of).collect());
        let rows = Rows {
            totals: &mut self.totals,
            stages: written.collect(),
        };
        rows.write(views);
        let drafts = stages.into_iter().flatten();
        self.columns.extend(drafts.map(|draft| draft.column));
    }

    /// The values of a component that was added.
    pub(crate) fn values(&self, name: &str) -> Option<&[f32]> {
        let mut columns = self.columns.iter();
        let column = columns.find(|column| column.name == name)?;
        Some(&column.values)
    }

    pub(crate) fn totals(&self) -> &[f64] {
        &self.totals
    }

    /// Whether the document in `row` has a value of the first component.
    pub(crate) fn has_first(&self, row: usize) -> bool {
        let first = self.columns.first();
        first.is_some_and(|column| !column.values[row].is_nan())
    }

    /// The components that the document in `row` has; their sum of value times weight, from left to right, is the score.
    pub(crate) fn explain(&self, row: usize) -> Vec<Component> {
        self.columns
            .iter()
            .filter(|column| !column.values[row].is_nan())
            .map(|column| Component {
                name: column.name,
                value: f64::from(column.values[row]),
                weight: column.weight,
            })
            .collect()
    }

    /// Gives the memory of a search back.
    pub(crate) fn give_back(self, buffers: &Buffers) {
        buffers.sums.give_back(self.totals);
        for column in self.columns {
            buffers.columns.give_back(column.values);
        }
    }
}

/// What is written of a column.
struct Written<'a> {
    write: &'a Write<'a>,
    weight: f64,
    values: &'a mut [f32],
}

impl<'a> Written<'a> {
    fn of<'b: 'a>(draft: &'a mut Draft<'b>) -> Self {
        Self {
            write: &draft.write,
            weight: draft.column.weight,
            values: &mut draft.column.values,
        }
    }

    fn split(self, row: usize) -> (Self, Self) {
        let Self {
            write,
            weight,
            values,
        } = self;
        let (first, second) = values.split_at_mut(row);
        let half = |values| Self {
            write,
            weight,
            values,
        };
        (half(first), half(second))
    }
}

/// The rows of some views that follow each other.
struct Rows<'a> {
    totals: &'a mut [f64],
    stages: Vec<Vec<Written<'a>>>,
}

impl<'a> Rows<'a> {
    /// Writes half of the rows on another core where that is worth it.
    fn write(self, views: &[View<'_>]) {
        let begin = views.first().map_or(0, |view| view.base);
        let middle = self.totals.len() / 2;
        let half = views.partition_point(|view| view.base - begin < middle);
        if !is_worthwhile(self.totals.len()) || half == views.len() {
            return self.write_each(views);
        }
        let (first, second) = views.split_at(half);
        let (ours, theirs) = self.split(second[0].base - begin);
        join(|| ours.write(first), || theirs.write(second));
    }

    fn split(self, row: usize) -> (Self, Self) {
        let (totals, rest) = self.totals.split_at_mut(row);
        let split =
            |stage: Vec<Written<'a>>| stage.into_iter().map(|column| column.split(row)).unzip();
        let (stages, others) = self.stages.into_iter().map(split).unzip();
        (
            Self { totals, stages },
            Self {
                totals: rest,
                stages: others,
            },
        )
    }

    /// Goes view by view, so that what a view's documents need stays in the nearest cache, and asks for what the later
    /// stages read while the first one reads vectors.
    fn write_each(mut self, views: &[View<'_>]) {
        let begin = views.first().map_or(0, |view| view.base);
        let has_rules = self.stages.len() > 1;
        for (number, view) in views.iter().enumerate() {
            if has_rules {
                view.prefetch(views.get(number + 1));
            }
            let range = view.base - begin..view.base - begin + view.content.slots();
            let totals = &mut self.totals[range.clone()];
            for stage in &mut self.stages {
                for column in &mut *stage {
                    (column.write)(view, totals, &mut column.values[range.clone()]);
                }
                for column in stage {
                    add(totals, &column.values[range.clone()], column.weight);
                }
            }
        }
    }
}

/// Adds the values that there are, each times the weight, to the totals; 0 in place of others, so that no branch depends
/// on them. No total is -0, which adding 0 would change, and weights are finite.
fn add(totals: &mut [f64], values: &[f32], weight: f64) {
    for (total, value) in totals.iter_mut().zip(values) {
        let value = if value.is_nan() { 0.0 } else { *value };
        *total += f64::from(value) * weight;
    }
}
