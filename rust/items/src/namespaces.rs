//! The namespaces of a tenant, each with its rows.
//!
//! An encoded namespace is the labels, each with the end `00 01`, and the end `00 00`; a label's byte `00` is `00 ff`. So
//! their order is that of the labels, and what begins with some labels begins with their encoding.

use std::collections::BTreeMap;

use bytes::Bytes;

/// The number of a namespace.
pub(crate) type Number = u32;

/// The namespaces that have rows.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    numbers: BTreeMap<Bytes, Number>,
    rows: Vec<Vec<u32>>,
    free: Vec<Number>,
    bytes: usize,
}

impl Namespaces {
    /// Adds a row; the namespace's number, and where in its list the row stands.
    pub(crate) fn add(&mut self, namespace: &Bytes, row: u32) -> (Number, u32) {
        let number = match self.numbers.get(namespace) {
            Some(number) => *number,
            None => self.begin(namespace),
        };
        let rows = &mut self.rows[number as usize];
        rows.push(row);
        (number, rows.len() as u32 - 1)
    }

    fn begin(&mut self, namespace: &Bytes) -> Number {
        let number = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Vec::new());
            self.rows.len() as Number - 1
        });
        self.bytes += namespace.len();
        self.numbers.insert(namespace.clone(), number);
        number
    }

    /// Removes the row at a place of a namespace's list; the row that takes its place.
    pub(crate) fn remove(&mut self, namespace: &Bytes, number: Number, place: u32) -> Option<u32> {
        let rows = &mut self.rows[number as usize];
        rows.swap_remove(place as usize);
        if rows.is_empty() {
            self.bytes -= namespace.len();
            self.numbers.remove(namespace);
            self.free.push(number);
            self.rows[number as usize] = Vec::new();
        }
        self.rows[number as usize].get(place as usize).copied()
    }

    /// The row at a place of a namespace's list gets another number.
    pub(crate) fn renumber(&mut self, number: Number, place: u32, row: u32) {
        self.rows[number as usize][place as usize] = row;
    }

    /// The rows of one namespace.
    pub(crate) fn rows_of(&self, namespace: &[u8]) -> &[u32] {
        let number = self.numbers.get(namespace);
        number.map_or(&[], |number| &self.rows[*number as usize])
    }

    /// The namespaces that begin so, in their order, with their rows.
    pub(crate) fn beginning_with<'a>(
        &'a self,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a Bytes, &'a [u32])> {
        let from = self.numbers.range::<[u8], _>((
            std::ops::Bound::Included(prefix),
            std::ops::Bound::Unbounded,
        ));
        from.take_while(move |(namespace, _)| namespace.starts_with(prefix))
            .map(|(namespace, number)| (namespace, &*self.rows[*number as usize]))
    }

    /// An estimate of the memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let lists: usize = self.rows.iter().map(Vec::capacity).sum();
        self.bytes
            + lists * size_of::<u32>()
            + self.rows.capacity() * size_of::<Vec<u32>>()
            + self.numbers.len() * size_of::<(Bytes, Number)>()
    }
}

const END: [u8; 2] = [0, 0];
const NUL: u8 = 0xff;

/// The labels of an encoded namespace.
pub(crate) fn labels(namespace: &[u8]) -> Vec<String> {
    let mut labels = Vec::new();
    let mut label = Vec::new();
    let mut rest = namespace;
    while let Some((byte, behind)) = rest.split_first() {
        if rest.starts_with(&END) {
            break;
        }
        rest = behind;
        if *byte != 0 {
            label.push(*byte);
            continue;
        }
        if let Some((kind, behind)) = rest.split_first() {
            rest = behind;
            if *kind == NUL {
                label.push(0);
            } else {
                labels.push(String::from_utf8_lossy(&std::mem::take(&mut label)).into_owned());
            }
        }
    }
    labels
}

/// What an encoded namespace begins with that begins with some labels.
pub(crate) fn encoded_leading<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut encoded = Vec::new();
    for label in labels {
        for byte in label.bytes() {
            encoded.push(byte);
            if byte == 0 {
                encoded.push(NUL);
            }
        }
        encoded.extend([0, 1]);
    }
    encoded
}
