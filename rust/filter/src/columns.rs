//! The attributes of many things, a column for each key, so that a filter looks at nothing else.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::expression::{Condition, Expression, Operator};
use crate::scalar::{Scalar, ScalarRef};
use crate::symbols::{Symbol, Symbols};

/// A column has a cell for each row where at least one in so many rows has a value; else it is a map.
const DENSE: usize = 8;

/// A value; texts are numbers of the table that all columns share.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Missing,
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(Symbol),
    Composite,
}

/// Attributes by key and row.
#[derive(Debug, Default)]
pub struct Columns {
    columns: HashMap<Box<str>, Column, FxBuildHasher>,
    texts: Symbols,
}

#[derive(Debug)]
enum Column {
    Dense { cells: Vec<Cell>, values: usize },
    Sparse(HashMap<u32, Cell, FxBuildHasher>),
}

impl Columns {
    /// The attribute of a row gets a value; it had none.
    pub fn put(&mut self, row: usize, key: &str, value: Scalar) {
        let cell = match value {
            Scalar::Null => Cell::Null,
            Scalar::Boolean(value) => Cell::Boolean(value),
            Scalar::Integer(value) => Cell::Integer(value),
            Scalar::Number(value) => Cell::Number(value),
            Scalar::Text(text) => Cell::Text(self.texts.hold(&text)),
            Scalar::Composite => Cell::Composite,
        };
        self.put_cell(row, key, cell);
    }

    fn put_cell(&mut self, row: usize, key: &str, cell: Cell) {
        match self.columns.get_mut(key) {
            Some(column) => column.put(row, cell),
            None => {
                let mut column = Column::new();
                column.put(row, cell);
                self.columns.insert(key.into(), column);
            }
        }
    }

    /// The attribute of a row loses its value, if it has one.
    pub fn remove(&mut self, row: usize, key: &str) {
        if let Cell::Text(symbol) = self.take(row, key) {
            self.texts.release(symbol);
        }
    }

    /// The value of an attribute goes from one row to another, which has none.
    pub fn shift(&mut self, from: usize, to: usize, key: &str) {
        let cell = self.take(from, key);
        if !matches!(cell, Cell::Missing) {
            self.put_cell(to, key, cell);
        }
    }

    fn take(&mut self, row: usize, key: &str) -> Cell {
        let Some(column) = self.columns.get_mut(key) else {
            return Cell::Missing;
        };
        let cell = column.take(row);
        if column.is_empty() {
            self.columns.remove(key);
        }
        cell
    }

    /// Which of so many rows pass.
    pub fn passing(&self, expression: &Expression, rows: usize) -> Vec<bool> {
        match expression {
            Expression::All(all) => self.combined(all, rows, true, |so_far, each| so_far & each),
            Expression::Any(any) => self.combined(any, rows, false, |so_far, each| so_far | each),
            Expression::Not(negated) => {
                let mut passing = self.passing(negated, rows);
                passing.iter_mut().for_each(|passes| *passes = !*passes);
                passing
            }
            Expression::Condition(condition) => self.holding(condition, rows),
        }
    }

    fn combined(
        &self,
        expressions: &[Expression],
        rows: usize,
        of_none: bool,
        combine: impl Fn(bool, bool) -> bool,
    ) -> Vec<bool> {
        let mut passing = vec![of_none; rows];
        for expression in expressions {
            let each = self.passing(expression, rows);
            for (so_far, each) in passing.iter_mut().zip(each) {
                *so_far = combine(*so_far, each);
            }
        }
        passing
    }

    fn holding(&self, condition: &Condition, rows: usize) -> Vec<bool> {
        let mut holding = vec![condition.holds(None); rows];
        let test = Test::new(condition, &self.texts);
        match self.columns.get(condition.key.as_str()) {
            None => {}
            Some(Column::Dense { cells, .. }) => {
                for (holds, cell) in holding.iter_mut().zip(cells) {
                    *holds = test.holds(*cell);
                }
            }
            Some(Column::Sparse(cells)) => {
                for (row, cell) in cells {
                    if let Some(holds) = holding.get_mut(*row as usize) {
                        *holds = test.holds(*cell);
                    }
                }
            }
        }
        holding
    }

    /// An estimate of the memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let columns = self.columns.iter();
        let held = columns.map(|(key, column)| key.len() + column.bytes());
        self.columns.allocation_size() + held.sum::<usize>() + self.texts.bytes()
    }
}

impl Column {
    fn new() -> Self {
        Self::Sparse(HashMap::default())
    }

    fn put(&mut self, row: usize, cell: Cell) {
        match self {
            Self::Dense { cells, values } => {
                if row >= cells.len() && row >= DENSE * (*values + 1) {
                    self.thin();
                    return self.put(row, cell);
                }
                cells.resize(cells.len().max(row + 1), Cell::Missing);
                cells[row] = cell;
                *values += 1;
            }
            Self::Sparse(cells) => {
                cells.insert(row as u32, cell);
                // Looked at as rarely as a list grows.
                if cells.len().is_power_of_two() {
                    let rows = cells.keys().map(|row| *row as usize + 1).max();
                    let rows = rows.filter(|rows| *rows <= DENSE * cells.len());
                    rows.into_iter().for_each(|rows| self.thicken(rows));
                }
            }
        }
    }

    fn take(&mut self, row: usize) -> Cell {
        match self {
            Self::Dense { cells, values } => {
                let cell = cells.get_mut(row);
                let cell =
                    cell.map_or(Cell::Missing, |cell| std::mem::replace(cell, Cell::Missing));
                *values -= usize::from(!matches!(cell, Cell::Missing));
                cell
            }
            Self::Sparse(cells) => cells.remove(&(row as u32)).unwrap_or(Cell::Missing),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Dense { values, .. } => *values == 0,
            Self::Sparse(cells) => cells.is_empty(),
        }
    }

    /// Makes a map of a column with a cell for each row.
    fn thin(&mut self) {
        if let Self::Dense { cells, .. } = self {
            let rows = (0..).zip(cells.iter().copied());
            let held = rows.filter(|(_, cell)| !matches!(cell, Cell::Missing));
            *self = Self::Sparse(held.collect());
        }
    }

    /// The reverse.
    fn thicken(&mut self, rows: usize) {
        if let Self::Sparse(held) = self {
            let mut cells = vec![Cell::Missing; rows];
            held.iter()
                .for_each(|(row, cell)| cells[*row as usize] = *cell);
            let values = held.len();
            *self = Self::Dense { cells, values };
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Dense { cells, .. } => cells.capacity() * size_of::<Cell>(),
            Self::Sparse(cells) => cells.allocation_size(),
        }
    }
}

/// A condition on cells: whether texts are equal is told by their numbers.
struct Test<'a> {
    condition: &'a Condition,
    texts: &'a Symbols,
    equal: Option<Vec<Symbol>>,
}

impl<'a> Test<'a> {
    fn new(condition: &'a Condition, texts: &'a Symbols) -> Self {
        let compares_equal = matches!(
            condition.operator,
            Operator::Eq | Operator::Ne | Operator::In
        );
        let symbol = |value: &Scalar| match value {
            Scalar::Text(text) => texts.find(text),
            _ => None,
        };
        let equal = compares_equal.then(|| condition.values.iter().filter_map(symbol).collect());
        Self {
            condition,
            texts,
            equal,
        }
    }

    fn holds(&self, cell: Cell) -> bool {
        let value = match (cell, &self.equal) {
            (Cell::Text(symbol), Some(equal)) => {
                return equal.contains(&symbol) != (self.condition.operator == Operator::Ne);
            }
            (Cell::Text(symbol), None) => ScalarRef::Text(self.texts.text(symbol)),
            (Cell::Missing, _) => return self.condition.holds(None),
            (Cell::Null, _) => ScalarRef::Null,
            (Cell::Boolean(value), _) => ScalarRef::Boolean(value),
            (Cell::Integer(value), _) => ScalarRef::Integer(value),
            (Cell::Number(value), _) => ScalarRef::Number(value),
            (Cell::Composite, _) => ScalarRef::Composite,
        };
        self.condition.holds(Some(value))
    }
}
