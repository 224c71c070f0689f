//! Weights laid out as the kernels read them: panels of [`PANEL`] outputs, within a panel one row per input.

use super::PANEL;
use super::buffer::Buffer;

/// A projection as a model file holds it: one row of weights per output, and one bias each.
#[derive(Debug, Clone)]
pub(crate) struct Dense {
    inputs: usize,
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Dense {
    /// # Panics
    /// Where there is not one row of `inputs` weights for each bias.
    pub(crate) fn new(inputs: usize, weights: Vec<f32>, bias: Vec<f32>) -> Self {
        assert_eq!(
            weights.len(),
            inputs * bias.len(),
            "one row of weights per output"
        );
        Self {
            inputs,
            weights,
            bias,
        }
    }

    /// The projection whose outputs are this one's followed by `other`'s.
    ///
    /// # Panics
    /// Where the inputs differ.
    pub(crate) fn beside(mut self, other: Self) -> Self {
        assert_eq!(self.inputs, other.inputs, "projections of the same input");
        self.weights.extend(other.weights);
        self.bias.extend(other.bias);
        self
    }

    /// The projection whose outputs are this one's times `factor`.
    pub(crate) fn scaled(mut self, factor: f32) -> Self {
        for value in self.weights.iter_mut().chain(&mut self.bias) {
            *value *= factor;
        }
        self
    }

    /// One row of weights per output.
    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.weights.chunks_exact(self.inputs)
    }

    /// The rows of each panel.
    fn panels(&self) -> impl Iterator<Item = &[f32]> {
        assert_eq!(self.bias.len() % PANEL, 0, "whole panels");
        self.weights.chunks_exact(PANEL * self.inputs)
    }
}

/// Packed f32 weights: value `(k, j)` of a panel is the weight of input `k` for the panel's output `j`.
#[derive(Debug)]
pub(crate) struct Panels {
    inputs: usize,
    values: Buffer<f32>,
    bias: Vec<f32>,
}

impl Panels {
    /// Packs into the front of `memory`.
    ///
    /// # Panics
    /// Where the outputs are not a multiple of [`PANEL`] or the memory is too small.
    pub(crate) fn pack(dense: Dense, memory: &mut Buffer<f32>) -> Self {
        let mut values = memory.split_to(dense.weights.len());
        let packed = values.chunks_exact_mut(PANEL * dense.inputs);
        for (rows, packed) in dense.panels().zip(packed) {
            for (j, row) in rows.chunks_exact(dense.inputs).enumerate() {
                for (k, &weight) in row.iter().enumerate() {
                    packed[k * PANEL + j] = weight;
                }
            }
        }
        Self {
            inputs: dense.inputs,
            values,
            bias: dense.bias,
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub(crate) fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// The values of a panel, `inputs` rows of [`PANEL`].
    pub(crate) fn panel(&self, index: usize) -> &[f32] {
        let size = PANEL * self.inputs;
        &self.values[index * size..][..size]
    }
}

/// Packed int8 weights, each output with a scale of its own. Within a panel, four neighbouring inputs of one output lie
/// together: code `(g, j, i)` is for input `4 g + i` and the panel's output `j`.
#[derive(Debug)]
pub(crate) struct QuantizedPanels {
    inputs: usize,
    codes: Buffer<u8>,
    scales: Vec<f32>,
    sums: Vec<f32>,
    bias: Vec<f32>,
}

#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only x86-64 has int8 kernels")
)]
impl QuantizedPanels {
    /// What is added to a code in -127..=127 to store it unsigned.
    pub(crate) const OFFSET: u8 = 128;
    /// Inputs that lie together.
    const GROUP: usize = 4;

    /// Packs into the front of `memory`.
    ///
    /// # Panics
    /// Where the outputs are not a multiple of [`PANEL`], the inputs not of sixteen, or the memory is too small.
    pub(crate) fn pack(dense: Dense, memory: &mut Buffer<u8>) -> Self {
        assert_eq!(dense.inputs % 16, 0, "whole registers of inputs");
        let scales = dense.rows().map(scale).collect::<Vec<_>>();
        let mut sums = Vec::with_capacity(scales.len());
        let mut codes = memory.split_to(dense.weights.len());
        let packed = codes.chunks_exact_mut(PANEL * dense.inputs);
        for (panel, (rows, packed)) in dense.panels().zip(packed).enumerate() {
            for (j, row) in rows.chunks_exact(dense.inputs).enumerate() {
                let scale = scales[panel * PANEL + j];
                let row = quantize(row, scale);
                Self::write(&row, j, packed);
                sums.push(row.iter().map(|&code| i32::from(code)).sum::<i32>() as f32 * scale);
            }
        }
        Self {
            inputs: dense.inputs,
            codes,
            scales,
            sums,
            bias: dense.bias,
        }
    }

    /// Writes the codes of output `j` of a panel.
    fn write(codes: &[i8], j: usize, panel: &mut [u8]) {
        let (groups, _) = codes.as_chunks::<{ Self::GROUP }>();
        let targets = panel.chunks_exact_mut(Self::GROUP).skip(j).step_by(PANEL);
        for (group, target) in groups.iter().zip(targets) {
            target.copy_from_slice(
                &group.map(|code| code.cast_unsigned().wrapping_add(Self::OFFSET)),
            );
        }
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    pub(crate) fn outputs(&self) -> usize {
        self.bias.len()
    }

    pub(crate) fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// What a code counts, for each output.
    pub(crate) fn scales(&self) -> &[f32] {
        &self.scales
    }

    /// The sum of the weights of each output, as its codes have them.
    pub(crate) fn sums(&self) -> &[f32] {
        &self.sums
    }

    /// The codes of a panel.
    pub(crate) fn panel(&self, index: usize) -> &[u8] {
        let size = PANEL * self.inputs;
        &self.codes[index * size..][..size]
    }
}

/// The scale that maps the largest magnitude of `row` to 127.
fn scale(row: &[f32]) -> f32 {
    row.iter()
        .fold(0.0, |most: f32, value| most.max(value.abs()))
        / 127.0
}

/// The codes of a row, in -127..=127, rounded half away from zero.
fn quantize(row: &[f32], scale: f32) -> Vec<i8> {
    let scale = scale.max(f32::MIN_POSITIVE);
    let steps = row.iter().map(|weight| weight / scale);
    steps
        .map(|steps| (steps + 0.5f32.copysign(steps)) as i8)
        .collect()
}
