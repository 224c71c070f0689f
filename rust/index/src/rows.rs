//! Rows of equal length in chunks of bounded size, so that no insert copies more than one chunk and removed rows give
//! their memory back.

use remora_kernels::{Block, LANES, as_floats, as_floats_mut};

/// The size that a chunk grows to: long enough for a scan to run at the speed of memory, short enough to be copied at once.
const CHUNK_BYTES: usize = 1 << 20;

/// The number of rows in a chunk is a multiple of this: one bit each of a machine word.
const GROUP: usize = 64;

/// Rows of `dim` values, each padded with zeros to whole blocks, so that each starts on a cache line.
#[derive(Debug)]
pub(super) struct Rows {
    /// Blocks in a row.
    stride: usize,
    /// Rows in a full chunk. Every chunk but the last is full.
    chunk_rows: usize,
    len: usize,
    chunks: Vec<Vec<Block>>,
}

impl Rows {
    pub(super) fn new(dim: usize) -> Self {
        let stride = dim.div_ceil(LANES).max(1);
        let fitting = CHUNK_BYTES / (stride * size_of::<Block>());
        let chunk_rows = (fitting / GROUP * GROUP).max(GROUP);
        Self {
            stride,
            chunk_rows,
            len: 0,
            chunks: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that are allocated.
    pub(super) fn bytes(&self) -> usize {
        let blocks: usize = self.chunks.iter().map(Vec::capacity).sum();
        blocks * size_of::<Block>() + self.chunks.capacity() * size_of::<Vec<Block>>()
    }

    /// Appends a row of zeros and returns it.
    pub(super) fn push(&mut self) -> &mut [f32] {
        if self.len == self.chunks.len() * self.chunk_rows {
            self.chunks.push(Vec::new());
        }
        let row = self.len;
        self.len += 1;
        let full = self.chunk_rows * self.stride;
        let chunk = &mut self.chunks[row / self.chunk_rows];
        let blocks = chunk.len() + self.stride;
        if chunk.capacity() < blocks {
            let capacity = (2 * chunk.capacity()).clamp(blocks, full);
            chunk.reserve_exact(capacity - chunk.len());
        }
        chunk.resize(blocks, Block::ZERO);
        as_floats_mut(&mut chunk[blocks - self.stride..])
    }

    /// The row, padding included.
    pub(super) fn get(&self, row: usize) -> &[f32] {
        as_floats(self.blocks(row))
    }

    pub(super) fn get_mut(&mut self, row: usize) -> &mut [f32] {
        as_floats_mut(self.blocks_mut(row))
    }

    /// Removes the row; the last row takes its place.
    pub(super) fn swap_remove(&mut self, row: usize) {
        let last = self.len - 1;
        if row != last {
            let moved = self.blocks(last).to_vec();
            self.blocks_mut(row).copy_from_slice(&moved);
        }
        self.pop();
    }

    /// The rows in order, up to `count` of them at a time, one after the other, padding included.
    pub(super) fn groups(&self, count: usize) -> impl Iterator<Item = &[f32]> {
        self.chunks
            .iter()
            .flat_map(move |chunk| chunk.chunks(count * self.stride))
            .map(as_floats)
    }

    fn pop(&mut self) {
        self.len -= 1;
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.truncate(chunk.len() - self.stride);
        }
        self.chunks.pop_if(|chunk| chunk.is_empty());
    }

    fn blocks(&self, row: usize) -> &[Block] {
        let first = row % self.chunk_rows * self.stride;
        &self.chunks[row / self.chunk_rows][first..first + self.stride]
    }

    fn blocks_mut(&mut self, row: usize) -> &mut [Block] {
        let first = row % self.chunk_rows * self.stride;
        &mut self.chunks[row / self.chunk_rows][first..first + self.stride]
    }
}
