//! Columns as Arrow lays them out, with offsets of 64 bits.

/// One column: its buffers, in the order of the kind that the reader knows it to be.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// A bit for each row, set where there is a value; `None` if all rows have one.
    pub validity: Option<Vec<u8>>,
    /// Where each row begins in `values`, and where the last one ends: in a column of lists, in values of the list.
    pub offsets: Option<Vec<u8>>,
    /// The values, one after the other.
    pub values: Vec<u8>,
}

impl Column {
    /// Numbers, each as its bytes in memory.
    pub(super) fn numbers<const N: usize>(rows: impl Iterator<Item = [u8; N]>) -> Self {
        let mut values = Vec::with_capacity(N * rows.size_hint().0);
        rows.for_each(|row| values.extend_from_slice(&row));
        Self {
            values,
            ..Self::default()
        }
    }

    /// Numbers of which some are not there.
    pub(super) fn some_numbers<const N: usize>(
        rows: impl Iterator<Item = Option<[u8; N]>>,
    ) -> Self {
        let mut present = Bits::default();
        let rows = rows.inspect(|row| present.push(row.is_some()));
        let column = Self::numbers(rows.map(|row| row.unwrap_or([0; N])));
        Self {
            validity: Some(present.bytes),
            ..column
        }
    }

    /// Truths, a bit each.
    pub(super) fn truths(rows: impl Iterator<Item = bool>) -> Self {
        Self {
            values: Bits::of(rows).bytes,
            ..Self::default()
        }
    }

    /// Truths of which some are not there.
    pub(super) fn some_truths(rows: impl Iterator<Item = Option<bool>>) -> Self {
        let mut present = Bits::default();
        let rows = rows.inspect(|row| present.push(row.is_some()));
        let column = Self::truths(rows.map(Option::unwrap_or_default));
        Self {
            validity: Some(present.bytes),
            ..column
        }
    }

    /// Texts or bytes.
    pub(super) fn bytes<'a>(rows: impl Iterator<Item = &'a [u8]>) -> Self {
        Self::lists(rows, 1)
    }

    /// Bytes of which some are not there.
    pub(super) fn some_bytes<'a>(rows: impl Iterator<Item = Option<&'a [u8]>>) -> Self {
        let mut present = Bits::default();
        let rows = rows.inspect(|row| present.push(row.is_some()));
        let column = Self::bytes(rows.map(Option::unwrap_or_default));
        Self {
            validity: Some(present.bytes),
            ..column
        }
    }

    /// Lists of values of so many bytes each.
    pub(super) fn lists<'a>(rows: impl Iterator<Item = &'a [u8]>, width: usize) -> Self {
        let mut values = Vec::new();
        let mut offsets = 0_i64.to_ne_bytes().to_vec();
        for row in rows {
            values.extend_from_slice(row);
            offsets.extend_from_slice(&((values.len() / width) as i64).to_ne_bytes());
        }
        Self {
            validity: None,
            offsets: Some(offsets),
            values,
        }
    }
}

/// Bits, the first of a byte its lowest.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    count: usize,
}

impl Bits {
    fn of(bits: impl Iterator<Item = bool>) -> Self {
        let mut all = Self::default();
        bits.for_each(|bit| all.push(bit));
        all
    }

    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(8) {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (self.count % 8);
        }
        self.count += 1;
    }
}
