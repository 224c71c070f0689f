//! Which sequences pass through the model together.

use std::ops::Range;

/// Tokens that one pass should have: enough that weights are read seldom, few enough that the activations stay in the
/// second-level cache.
pub(super) const CHUNK: usize = 128;

/// The sequences' indices, the shortest first; equally long ones stay in order.
pub(super) fn by_length(lengths: &[usize]) -> Vec<usize> {
    let mut order = (0..lengths.len()).collect::<Vec<_>>();
    order.sort_by_key(|&index| lengths[index]);
    order
}

/// Splits `order` into runs of at most [`CHUNK`] tokens; a longer sequence is a run of its own.
pub(super) fn runs(order: &[usize], lengths: &[usize]) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let (mut first, mut tokens) = (0, 0);
    for (at, &index) in order.iter().enumerate() {
        if at > first && tokens + lengths[index] > CHUNK {
            runs.push(first..at);
            (first, tokens) = (at, 0);
        }
        tokens += lengths[index];
    }
    if first < order.len() {
        runs.push(first..order.len());
    }
    runs
}
