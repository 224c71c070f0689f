//! Int8 kernels for AVX-512 VNNI: weights are unsigned (`w + 128`), activations signed, sums exact in 32 bits.

use std::arch::x86_64::*;

use super::panels::QuantizedPanels;
use super::tile::even_split;
use super::{Finish, Int8Kernels, PANEL, QuantizedRows};

pub(super) static KERNELS: Int8Kernels = Int8Kernels { quantize, project };

const ROWS: usize = 14;
const WIDTH: usize = 16;
/// Registers in a panel.
const COLUMNS: usize = PANEL / WIDTH;
/// Neighbouring products that one instruction adds.
const GROUP: usize = 4;

/// Steps between the least and the largest code.
const LEVELS: f32 = 255.0;
const CODE_LEAST: f32 = -128.0;

/// What the tiles of one panel share.
#[derive(Clone, Copy)]
struct Panel {
    /// Groups of [`GROUP`] inputs.
    groups: usize,
    codes: *const u8,
    scales: *const f32,
    /// The sum of each output's weights.
    sums: *const f32,
    bias: *const f32,
    output_stride: usize,
    add: bool,
    /// By how much the memory to ask for moves on with each group.
    ahead_step: usize,
}

impl Panel {
    /// The panel of this index, to be multiplied with `rows` rows.
    fn new(weights: &QuantizedPanels, index: usize, rows: usize, finish: Finish) -> Self {
        let column = index * PANEL;
        Self {
            groups: weights.inputs() / GROUP,
            codes: weights.panel(index).as_ptr(),
            scales: weights.scales()[column..].as_ptr(),
            sums: weights.sums()[column..].as_ptr(),
            bias: weights.bias()[column..].as_ptr(),
            output_stride: weights.outputs(),
            add: finish == Finish::Add,
            ahead_step: (PANEL * GROUP).div_ceil(rows.div_ceil(ROWS)),
        }
    }

    /// What the tile of this `turn` asks for: its share of the next panel, which follows this one in memory.
    fn ahead(&self, turn: usize) -> *const u8 {
        let next = self.codes.wrapping_add(self.groups * PANEL * GROUP);
        next.wrapping_add(turn * self.groups * self.ahead_step)
    }
}

/// The rows of one tile: where their codes, scales, shifts, sums and outputs begin.
#[derive(Clone, Copy)]
struct Rows {
    codes: *const i8,
    scales: *const f32,
    shifts: *const f32,
    sums: *const i32,
    output: *mut f32,
    /// Memory to ask for meanwhile, which may lie anywhere.
    ahead: *const u8,
}

/// Rounds each row to codes in -128..=127, of which one stands for zero: a row has a scale and a zero of its own.
///
/// # Safety
/// `input` holds `rows` rows of `width` values, a multiple of 16, for which `quantized` has room; the processor has
/// AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn quantize(input: *const f32, rows: usize, width: usize, quantized: &mut QuantizedRows) {
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let values = input.add(row * width);
            let codes = quantized.codes.as_mut_ptr().add(row * width);
            let (least, most) = bounds(values, width);
            let scale = (most - least) / LEVELS;
            let inverse = if scale > 0.0 { scale.recip() } else { 0.0 };
            let zero = CODE_LEAST - (least * inverse).round_ties_even();
            *quantized.scales.as_mut_ptr().add(row) = scale;
            *quantized.shifts.as_mut_ptr().add(row) = zero * scale;
            *quantized.sums.as_mut_ptr().add(row) = round_row(values, width, inverse, zero, codes);
        }
    }
}

/// The least and the largest value of a row, zero included.
///
/// # Safety
/// As for [`quantize`], one row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn bounds(values: *const f32, width: usize) -> (f32, f32) {
    let (mut least, mut most) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    for at in (0..width).step_by(WIDTH) {
        // SAFETY: `at + WIDTH <= width`.
        let value = unsafe { _mm512_loadu_ps(values.add(at)) };
        least = _mm512_min_ps(least, value);
        most = _mm512_max_ps(most, value);
    }
    (_mm512_reduce_min_ps(least), _mm512_reduce_max_ps(most))
}

/// Writes the codes of a row and returns their sum.
///
/// # Safety
/// As for [`quantize`], one row.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn round_row(
    values: *const f32,
    width: usize,
    inverse: f32,
    zero: f32,
    codes: *mut i8,
) -> i32 {
    let (inverse, zero) = (_mm512_set1_ps(inverse), _mm512_set1_ps(zero));
    let most = _mm512_set1_epi32(i32::from(i8::MAX));
    let mut sum = _mm512_setzero_si512();
    for at in (0..width).step_by(WIDTH) {
        // SAFETY: `at + WIDTH <= width`.
        unsafe {
            let scaled = _mm512_fmadd_ps(_mm512_loadu_ps(values.add(at)), inverse, zero);
            let rounded = _mm512_min_epi32(_mm512_cvtps_epi32(scaled), most);
            sum = _mm512_add_epi32(sum, rounded);
            _mm_storeu_si128(codes.add(at).cast(), _mm512_cvtepi32_epi8(rounded));
        }
    }
    _mm512_reduce_add_epi32(sum)
}

/// `output = finish(quantized * weights + bias)`.
///
/// # Safety
/// `rows >= 1`, `quantized` holds that many rows of `weights.inputs()` codes, `output` has room for as many of `weights.outputs()`; the
/// processor has AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn project(
    quantized: &QuantizedRows,
    rows: usize,
    weights: &QuantizedPanels,
    output: *mut f32,
    finish: Finish,
) {
    let (depth, width) = (weights.inputs(), weights.outputs());
    for index in 0..width / PANEL {
        let panel = Panel::new(weights, index, rows, finish);
        for (turn, (first, count)) in even_split(rows, ROWS).enumerate() {
            // SAFETY: the rows are there, and the panel's columns are within a row of the output.
            unsafe {
                let rows = Rows {
                    codes: quantized.codes.as_ptr().add(first * depth),
                    scales: quantized.scales.as_ptr().add(first),
                    shifts: quantized.shifts.as_ptr().add(first),
                    sums: quantized.sums.as_ptr().add(first),
                    output: output.add(first * width + index * PANEL),
                    ahead: panel.ahead(turn),
                };
                tile(count, &panel, &rows);
                if finish == Finish::Gelu {
                    super::avx512::gelu(rows.output, width, count, PANEL);
                }
            }
        }
    }
}

/// # Safety
/// `count` is in `1..=ROWS`, and the pointers reach all that the tile covers; the processor has AVX-512 F, BW and VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn tile(count: usize, panel: &Panel, rows: &Rows) {
    // SAFETY: the arms only fix the number of rows at compile time.
    unsafe {
        match count {
            1 => fixed::<1>(panel, rows),
            2 => fixed::<2>(panel, rows),
            3 => fixed::<3>(panel, rows),
            4 => fixed::<4>(panel, rows),
            5 => fixed::<5>(panel, rows),
            6 => fixed::<6>(panel, rows),
            7 => fixed::<7>(panel, rows),
            8 => fixed::<8>(panel, rows),
            9 => fixed::<9>(panel, rows),
            10 => fixed::<10>(panel, rows),
            11 => fixed::<11>(panel, rows),
            12 => fixed::<12>(panel, rows),
            13 => fixed::<13>(panel, rows),
            14 => fixed::<14>(panel, rows),
            _ => debug_assert!(false, "a tile of {count} rows"),
        }
    }
}

/// # Safety
/// As for [`tile`], with `R` rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn fixed<const R: usize>(panel: &Panel, rows: &Rows) {
    let mut sums = [[_mm512_setzero_si512(); COLUMNS]; R];
    let stride = panel.groups * GROUP;
    let mut ahead = rows.ahead;
    for group in 0..panel.groups {
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(panel.ahead_step / 2).cast());
        ahead = ahead.wrapping_add(panel.ahead_step);
        let mut weights = [_mm512_setzero_si512(); COLUMNS];
        for (c, weight) in weights.iter_mut().enumerate() {
            // SAFETY: a group holds PANEL x GROUP codes.
            *weight = unsafe {
                _mm512_loadu_si512(panel.codes.add((group * PANEL + c * WIDTH) * GROUP).cast())
            };
        }
        for (r, row) in sums.iter_mut().enumerate() {
            // SAFETY: a row holds `stride` codes.
            let four = unsafe {
                rows.codes
                    .add(r * stride + group * GROUP)
                    .cast::<i32>()
                    .read_unaligned()
            };
            let four = _mm512_set1_epi32(four);
            for (sum, weight) in row.iter_mut().zip(weights) {
                *sum = _mm512_dpbusd_epi32(*sum, weight, four);
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { finish(panel, rows, &sums) }
}

/// Scales and writes the sums, less what the offset of the weights and the rows' zeros added to them: `128 * (sum of the
/// row's codes)` and `(the row's zero) * (sum of the output's weights)`.
///
/// # Safety
/// As for [`fixed`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn finish<const R: usize>(panel: &Panel, rows: &Rows, sums: &[[__m512i; COLUMNS]; R]) {
    for (r, row) in sums.iter().enumerate() {
        // SAFETY: every row has a scale, a sum and PANEL outputs, every column a scale and a bias.
        unsafe {
            let scale = _mm512_set1_ps(*rows.scales.add(r));
            let shift = _mm512_set1_ps(*rows.shifts.add(r));
            let offset = _mm512_set1_epi32(*rows.sums.add(r) * i32::from(QuantizedPanels::OFFSET));
            for (c, &sum) in row.iter().enumerate() {
                let at = c * WIDTH;
                let to = rows.output.add(r * panel.output_stride + at);
                let exact = _mm512_cvtepi32_ps(_mm512_sub_epi32(sum, offset));
                let scale = _mm512_mul_ps(scale, _mm512_loadu_ps(panel.scales.add(at)));
                let bias = _mm512_loadu_ps(panel.bias.add(at));
                let start = _mm512_fnmadd_ps(shift, _mm512_loadu_ps(panel.sums.add(at)), bias);
                let mut value = _mm512_fmadd_ps(exact, scale, start);
                if panel.add {
                    value = _mm512_add_ps(value, _mm512_loadu_ps(to));
                }
                _mm512_storeu_ps(to, value);
            }
        }
    }
}
