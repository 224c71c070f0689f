//! The vectors of a part: what is stored of each, and what a search compares.

use std::ops::Range;

use bytes::Bytes;
use hashbrown::HashMap;
use prost::Message as _;
use remora_filter::{Columns, Expression};
use remora_kernels::Kernels;
use remora_parts as parts;
use remora_wire as wire;

use crate::change::Op;
use crate::codes::{Codes, GROUP};
use crate::values::{floats, norm};
use crate::words::Words;

/// The rows of a part, in any order.
pub(crate) struct Content {
    kernels: &'static Kernels,
    rows: Vec<Row>,
    numbers: HashMap<Bytes, u32>,
    codes: Codes,
    attributes: Columns,
    /// Of the kinds whose texts are searched.
    words: Option<Words>,
    row_bytes: usize,
}

/// One vector.
#[derive(Debug)]
struct Row {
    key: Bytes,
    body: Bytes,
    /// A part of the body.
    values: Bytes,
    norm: f64,
}

impl Row {
    fn floats(&self) -> impl ExactSizeIterator<Item = f32> + Clone {
        floats(&self.values)
    }

    /// The keys of its attributes.
    fn keys(&self) -> impl Iterator<Item = String> + use<> {
        stored(&self.body).attributes.into_keys()
    }

    fn bytes(&self) -> usize {
        // Its number is held beside its key once more; a map is two thirds full.
        let number = size_of::<(Bytes, u32)>() * 3 / 2;
        size_of::<Self>() + number + self.key.len() + self.body.len()
    }
}

/// What is stored. A body that cannot be decoded as a vector has no values and is near nothing.
fn stored(body: &Bytes) -> wire::Vector {
    wire::Vector::decode(body.clone()).unwrap_or_default()
}

/// Which rows pass a filter.
pub(crate) enum Passing {
    All(usize),
    Some(Vec<bool>),
}

impl Passing {
    /// The rows, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        let (len, some) = match self {
            Self::All(len) => (*len, None),
            Self::Some(some) => (some.len(), Some(some)),
        };
        (0..len).filter(move |row| some.is_none_or(|some| some[*row]))
    }

    pub(crate) fn has(&self, row: usize) -> bool {
        match self {
            Self::All(len) => row < *len,
            Self::Some(some) => some[row],
        }
    }

    pub(crate) fn count(&self) -> usize {
        match self {
            Self::All(len) => *len,
            Self::Some(some) => some.iter().filter(|passes| **passes).count(),
        }
    }

    /// The rows as ranges, ascending, none of which reaches from one group of codes into another.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let mut rows = self.rows().peekable();
        std::iter::from_fn(move || {
            let begin = rows.next()?;
            let mut end = begin + 1;
            while !end.is_multiple_of(GROUP) && rows.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(begin..end)
        })
    }
}

impl parts::Content for Content {
    type Change = Op;

    fn apply(&mut self, op: Op) {
        match op {
            Op::Put { key, body } => self.put(key, body),
            Op::Remove { key } => self.remove(&key),
            Op::RemoveAll => {
                let words = self.words.as_ref().map(Words::emptied);
                *self = Self::new(self.kernels, words);
            }
        }
    }

    fn bytes(&self) -> usize {
        let words = self.words.as_ref().map_or(0, Words::bytes);
        self.row_bytes + self.codes.bytes() + self.attributes.bytes() + words
    }
}

impl Content {
    pub(crate) fn new(kernels: &'static Kernels, words: Option<Words>) -> Self {
        Self {
            kernels,
            rows: Vec::new(),
            numbers: HashMap::new(),
            codes: Codes::new(0),
            attributes: Columns::default(),
            words,
            row_bytes: 0,
        }
    }

    /// Adds or replaces a vector. The first one decides with which dimension vectors are compared.
    fn put(&mut self, key: Bytes, body: Bytes) {
        let wire::Vector { values, attributes } = stored(&body);
        let row = Row {
            norm: norm(&values),
            key: key.clone(),
            body,
            values,
        };
        if self.rows.is_empty() {
            self.codes = Codes::new(row.floats().len());
        }
        self.row_bytes += row.bytes();
        let number = match self.numbers.get(&key) {
            Some(number) => self.replace(*number as usize, row),
            None => self.push(row),
        };
        if let Some(words) = &mut self.words {
            words.put(number, &self.rows[number].body);
        }
        for (key, value) in attributes {
            self.attributes.put(number, &key, value.into());
        }
    }

    fn replace(&mut self, number: usize, row: Row) -> usize {
        self.codes.replace(number, row.floats(), row.norm);
        let before = std::mem::replace(&mut self.rows[number], row);
        self.forget(number, &before);
        number
    }

    fn push(&mut self, row: Row) -> usize {
        let number = self.rows.len();
        self.codes.push(row.floats(), row.norm);
        self.numbers.insert(row.key.clone(), number as u32);
        self.rows.push(row);
        number
    }

    fn remove(&mut self, key: &Bytes) {
        let Some(number) = self.numbers.remove(key) else {
            return;
        };
        let number = number as usize;
        self.codes.swap_remove(number);
        let gone = self.rows.swap_remove(number);
        self.forget(number, &gone);
        self.forget_words(number);
        if let Some(moved) = self.rows.get(number) {
            self.numbers.insert(moved.key.clone(), number as u32);
            for key in moved.keys() {
                self.attributes.shift(self.rows.len(), number, &key);
            }
        }
    }

    /// Takes the attributes and the size of what was in a row.
    fn forget(&mut self, number: usize, row: &Row) {
        self.row_bytes -= row.bytes();
        for key in row.keys() {
            self.attributes.remove(number, &key);
        }
    }

    /// Takes the words of a row, in whose place the last one has moved.
    fn forget_words(&mut self, number: usize) {
        if let Some(words) = &mut self.words {
            words.remove(self.rows.len());
            if let Some(moved) = self.rows.get(number) {
                words.put(number, &moved.body);
            }
        }
    }

    /// By row, how much of the words of a query it has, from 0 to 1.
    pub(crate) fn word_shares(&self, query: &str) -> Vec<f32> {
        let rows = self.rows.len();
        let words = self.words.as_ref();
        words.map_or_else(|| vec![0.0; rows], |words| words.shares(query, rows))
    }

    pub(crate) fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    pub(crate) fn codes(&self) -> &Codes {
        &self.codes
    }

    pub(crate) fn key(&self, row: usize) -> &Bytes {
        &self.rows[row].key
    }

    pub(crate) fn body(&self, row: usize) -> &Bytes {
        &self.rows[row].body
    }

    /// The values of a vector, and their norm.
    pub(crate) fn vector(&self, row: usize) -> (&[u8], f64) {
        (&self.rows[row].values, self.rows[row].norm)
    }

    /// The rows whose attributes pass.
    pub(crate) fn passing(&self, filter: Option<&Expression>) -> Passing {
        let rows = self.rows.len();
        match filter {
            None => Passing::All(rows),
            Some(filter) => Passing::Some(self.attributes.passing(filter, rows)),
        }
    }
}
