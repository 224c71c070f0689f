//! Codes of int8 for vectors, and how far each is from its vector.
//!
//! A vector `v` of length 1 is `scale * code + rest`. With a query `q`, coded likewise, the cosine is the product of the
//! codes and scales, and what the two rests add: at most `|rest of v| + |rest of q| * (1 + |rest of v|)`, by Cauchy and
//! Schwarz.

use remora_kernels::{BYTE_BLOCK, Kernels};

use crate::values::Query;

/// The largest value of a code.
const LARGEST: f64 = 127.0;

/// Rows that are compared before their cosines are looked at, and that share an allocation.
pub const GROUP: usize = 1024;

/// More than what rounding in f32 may add to a bound.
const ROUNDING: f32 = 1e-5;

/// The codes of rows of one dimension.
#[derive(Debug)]
pub struct Codes {
    dim: usize,
    /// Values in a row, padded with zeros.
    stride: usize,
    groups: Vec<Vec<i8>>,
    scales: Vec<f32>,
    /// The lengths of the rests; not a number where a row cannot be compared.
    rests: Vec<f32>,
}

/// What a code says of a cosine.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub lower: f32,
    pub upper: f32,
}

/// The code of a query.
#[derive(Debug)]
pub struct QueryCode {
    values: Vec<i16>,
    scale: f64,
    rest: f32,
}

impl QueryCode {
    pub fn new(query: &Query) -> Self {
        let stride = query.dim().next_multiple_of(BYTE_BLOCK);
        // As fine as the sum of all products lets it be.
        let finest = f64::from(i32::MAX) / (LARGEST * stride.max(1) as f64);
        let largest = finest.floor().min(f64::from(i16::MAX));
        let mut values = vec![0; stride];
        let (scale, rest) = encode(query.values(), query.norm(), largest, |at, code| {
            values[at] = code as i16;
        });
        Self {
            values,
            scale,
            rest: rest as f32,
        }
    }
}

impl Codes {
    pub fn new(dim: usize) -> Self {
        Self {
            dim,
            stride: dim.next_multiple_of(BYTE_BLOCK),
            groups: Vec::new(),
            scales: Vec::new(),
            rests: Vec::new(),
        }
    }

    /// The dimension of the rows that can be compared.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn len(&self) -> usize {
        self.scales.len()
    }

    /// The memory that is allocated, in bytes.
    pub fn bytes(&self) -> usize {
        let codes: usize = self.groups.iter().map(Vec::capacity).sum();
        codes + (self.scales.capacity() + self.rests.capacity()) * size_of::<f32>()
    }

    /// Appends a row. One of another dimension is never near.
    pub fn push(&mut self, values: impl ExactSizeIterator<Item = f32> + Clone, norm: f64) {
        if self.len().is_multiple_of(GROUP) {
            self.groups.push(Vec::new());
        }
        let row = self.len();
        if let Some(group) = self.groups.last_mut() {
            group.resize(group.len() + self.stride, 0);
        }
        self.scales.push(0.0);
        self.rests.push(f32::NAN);
        self.write(row, values, norm);
    }

    /// Puts another vector into a row.
    pub fn replace(
        &mut self,
        row: usize,
        values: impl ExactSizeIterator<Item = f32> + Clone,
        norm: f64,
    ) {
        self.row_mut(row).fill(0);
        self.scales[row] = 0.0;
        self.rests[row] = f32::NAN;
        self.write(row, values, norm);
    }

    /// Removes a row; the last one takes its place.
    pub fn swap_remove(&mut self, row: usize) {
        let last = self.len() - 1;
        if row != last {
            let moved = self.row_mut(last).to_vec();
            self.row_mut(row).copy_from_slice(&moved);
        }
        self.scales.swap_remove(row);
        self.rests.swap_remove(row);
        if let Some(group) = self.groups.last_mut() {
            group.truncate(group.len() - self.stride);
        }
        // Rows without values take no bytes of it.
        if last.is_multiple_of(GROUP) {
            self.groups.pop();
        }
    }

    /// What the codes of some rows, which share a group, say of their cosines to a query of the same dimension.
    pub fn bounds(
        &self,
        kernels: &Kernels,
        query: &QueryCode,
        first: usize,
        dots: &mut [i32],
        mut look: impl FnMut(usize, Bounds),
    ) {
        let begin = first % GROUP * self.stride;
        let group = &self.groups[first / GROUP];
        let rows = &group[begin..begin + dots.len() * self.stride];
        kernels.dot_bytes(&query.values, rows, dots);
        for (row, dot) in (first..).zip(dots) {
            let rest = self.rests[row];
            let cosine = (f64::from(*dot) * query.scale) as f32 * self.scales[row];
            let margin = rest + query.rest * (1.0 + rest) + ROUNDING;
            let bounds = Bounds {
                lower: cosine - margin,
                upper: cosine + margin,
            };
            look(row, bounds);
        }
    }

    fn write(&mut self, row: usize, values: impl ExactSizeIterator<Item = f32> + Clone, norm: f64) {
        if values.len() != self.dim {
            return;
        }
        let codes = self.row_mut(row);
        let (scale, rest) = encode(values, norm, LARGEST, |at, code| codes[at] = code as i8);
        self.scales[row] = scale as f32;
        self.rests[row] = rest as f32;
    }

    fn row_mut(&mut self, row: usize) -> &mut [i8] {
        let begin = row % GROUP * self.stride;
        &mut self.groups[row / GROUP][begin..begin + self.stride]
    }
}

/// Writes the code of a vector and returns its scale and the length of the rest; of a zero vector, both are 0.
fn encode(
    values: impl Iterator<Item = f32> + Clone,
    norm: f64,
    largest: f64,
    mut write: impl FnMut(usize, f64),
) -> (f64, f64) {
    let greatest = values.clone().map(|value| f64::from(value).abs());
    let greatest = greatest.fold(0.0, f64::max);
    if greatest == 0.0 {
        return (0.0, 0.0);
    }
    let scale = greatest / norm / largest;
    let mut squares = 0.0;
    for (at, value) in values.enumerate() {
        let unit = f64::from(value) / norm;
        let code = (unit / scale).round_ties_even().clamp(-largest, largest);
        squares += (unit - scale * code).powi(2);
        write(at, code);
    }
    (scale, squares.sqrt())
}
