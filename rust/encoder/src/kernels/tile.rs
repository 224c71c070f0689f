//! The tile: a few rows of activations times a few columns of weights.

/// What a sum starts from.
#[derive(Clone, Copy)]
pub(super) enum Start {
    Zero,
    /// One value per column.
    Bias(*const f32),
    /// One value per column, plus what the output holds: a residual connection.
    BiasAndOutput(*const f32),
}

/// `output = start + left * right`, with `depth` products per sum. Strides count values from row to row.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub(super) left: *const f32,
    pub(super) left_stride: usize,
    pub(super) right: *const f32,
    pub(super) right_stride: usize,
    pub(super) depth: usize,
    pub(super) start: Start,
    pub(super) output: *mut f32,
    pub(super) output_stride: usize,
    /// Memory to ask for meanwhile, which may lie anywhere, and by how much it moves on with each product.
    pub(super) ahead: *const f32,
    pub(super) ahead_step: usize,
}

impl Tile {
    /// The same tile, `rows` further down.
    ///
    /// # Safety
    /// The left and output matrices have those rows.
    pub(super) unsafe fn down(self, rows: usize) -> Self {
        // SAFETY: as above.
        unsafe {
            Self {
                left: self.left.add(rows * self.left_stride),
                output: self.output.add(rows * self.output_stride),
                ..self
            }
        }
    }

    /// The same tile, `columns` further right in the same panel.
    ///
    /// # Safety
    /// The right and output matrices and the bias have those columns.
    pub(super) unsafe fn right(self, columns: usize) -> Self {
        // SAFETY: as above.
        unsafe {
            Self {
                right: self.right.add(columns),
                output: self.output.add(columns),
                start: match self.start {
                    Start::Zero => Start::Zero,
                    Start::Bias(bias) => Start::Bias(bias.add(columns)),
                    Start::BiasAndOutput(bias) => Start::BiasAndOutput(bias.add(columns)),
                },
                ..self
            }
        }
    }
}

/// Splits `rows` into the fewest tiles of at most `most` rows and yields `(first, count)` of each, as even as can be, so
/// that the last one is not a narrow rest.
pub(super) fn even_split(rows: usize, most: usize) -> impl Iterator<Item = (usize, usize)> {
    let tiles = rows.div_ceil(most);
    (0..tiles).map(move |tile| {
        let first = tile * rows / tiles;
        (first, (tile + 1) * rows / tiles - first)
    })
}
