//! The parts of a layer over whole matrices: projection, attention and layer normalisation, for any lanes.

use super::lanes::Lanes;
use super::rows;
use super::tile::{Start, Tile, even_split};
use super::{Finish, HEAD, HEADS, HIDDEN, LAYER_NORM_EPSILON, PANEL, Panels};

/// `output = finish(input * weights + bias)`; a panel stays in the near cache while all rows pass it, and each tile asks for
/// its share of the next panel, which follows in memory, also across projections.
///
/// # Safety
/// `count >= 1`, `input` holds that many rows of `weights.inputs()` values, `output` as many of `weights.outputs()`, they do not overlap,
/// and the processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn project<S: Lanes>(
    input: *const f32,
    count: usize,
    weights: &Panels,
    output: *mut f32,
    finish: Finish,
) {
    let (depth, width) = (weights.inputs(), weights.outputs());
    for panel in 0..width / PANEL {
        // SAFETY: the caller's promise covers every panel, and the rows of every turn.
        unsafe {
            let tile = panel_tile(input, weights, panel, output, finish);
            let ahead_step = PANEL.div_ceil(count.div_ceil(S::ROWS));
            for (turn, (first, rows)) in even_split(count, S::ROWS).enumerate() {
                let tile = Tile {
                    ahead: tile.ahead.wrapping_add(turn * depth * ahead_step),
                    ahead_step,
                    ..tile.down(first)
                };
                S::tile(rows, &tile);
                if finish == Finish::Gelu {
                    rows::gelu::<S>(tile.output, width, rows, PANEL);
                }
            }
        }
    }
}

/// The product of the input's first rows with one panel.
///
/// # Safety
/// As for [`project`]; the weights have the panel.
#[inline(always)]
unsafe fn panel_tile(
    input: *const f32,
    weights: &Panels,
    panel: usize,
    output: *mut f32,
    finish: Finish,
) -> Tile {
    let (values, column) = (weights.panel(panel), panel * PANEL);
    let bias = weights.bias()[column..].as_ptr();
    Tile {
        left: input,
        left_stride: weights.inputs(),
        right: values.as_ptr(),
        right_stride: PANEL,
        depth: weights.inputs(),
        start: match finish {
            Finish::Store | Finish::Gelu => Start::Bias(bias),
            Finish::Add => Start::BiasAndOutput(bias),
        },
        // SAFETY: the panel's columns are within a row of the output.
        output: unsafe { output.add(column) },
        output_stride: weights.outputs(),
        ahead: values.as_ptr_range().end,
        ahead_step: 0,
    }
}

/// Self-attention of one sequence: `softmax(Q K^T) V` for each head; the scale of the scores is in Q's weights.
///
/// # Safety
/// `qkv` holds `len` rows of `3 * HIDDEN`, `output` as many of `HIDDEN`; with `padded` the next multiple of [`PANEL`],
/// `keys` has room for `HEAD * padded` values and `scores` for `S::ROWS * padded`; nothing overlaps, `len >= 1`, and the
/// processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn attend<S: Lanes>(
    qkv: *const f32,
    len: usize,
    keys: *mut f32,
    scores: *mut f32,
    output: *mut f32,
) {
    let padded = len.next_multiple_of(PANEL);
    for head in 0..HEADS {
        // SAFETY: every head has HEAD columns in each third of a row.
        unsafe {
            let query = qkv.add(head * HEAD);
            let value = query.add(2 * HIDDEN);
            transpose_keys(query.add(HIDDEN), len, padded, keys);
            for (first, rows) in even_split(len, S::ROWS) {
                score::<S>(query.add(first * 3 * HIDDEN), keys, padded, scores, rows);
                for row in 0..rows {
                    rows::softmax::<S>(scores.add(row * padded), len);
                }
                let mix = Tile {
                    left: scores,
                    left_stride: padded,
                    right: value,
                    right_stride: 3 * HIDDEN,
                    depth: len,
                    start: Start::Zero,
                    output: output.add(first * HIDDEN + head * HEAD),
                    output_stride: HIDDEN,
                    ahead: value,
                    ahead_step: 0,
                };
                S::tile(rows, &mix);
            }
        }
    }
}

/// Products of `rows` queries with all keys.
///
/// # Safety
/// As for [`attend`], with `query` at its first row.
#[inline(always)]
unsafe fn score<S: Lanes>(
    query: *const f32,
    keys: *const f32,
    padded: usize,
    scores: *mut f32,
    rows: usize,
) {
    for column in (0..padded).step_by(PANEL) {
        // SAFETY: a panel of keys is HEAD x PANEL values.
        unsafe {
            let tile = Tile {
                left: query,
                left_stride: 3 * HIDDEN,
                right: keys.add(column * HEAD),
                right_stride: PANEL,
                depth: HEAD,
                start: Start::Zero,
                output: scores.add(column),
                output_stride: padded,
                ahead: query,
                ahead_step: 0,
            };
            S::tile(rows, &tile);
        }
    }
}

/// Lays a head's keys out as panels of [`PANEL`] tokens, zero beyond the last.
///
/// # Safety
/// `keys` holds `len` rows at a stride of `3 * HIDDEN`; `panels` has room for `HEAD * padded` values.
#[inline(always)]
unsafe fn transpose_keys(keys: *const f32, len: usize, padded: usize, panels: *mut f32) {
    for token in 0..padded {
        // SAFETY: token < padded; a row of keys is only read below len.
        unsafe {
            let to = panels.add(token / PANEL * PANEL * HEAD + token % PANEL);
            for d in 0..HEAD {
                *to.add(d * PANEL) = if token < len {
                    *keys.add(token * 3 * HIDDEN + d)
                } else {
                    0.0
                };
            }
        }
    }
}

/// Normalises `count` rows of [`HIDDEN`] values.
///
/// # Safety
/// The rows are there, `weight` and `bias` hold [`HIDDEN`] values, and the processor has the instruction set of `S`.
#[inline(always)]
pub(super) unsafe fn layer_norm<S: Lanes>(
    values: *mut f32,
    count: usize,
    weight: *const f32,
    bias: *const f32,
) {
    for row in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            rows::layer_norm::<S>(
                values.add(row * HIDDEN),
                HIDDEN,
                weight,
                bias,
                LAYER_NORM_EPSILON,
            )
        };
    }
}
