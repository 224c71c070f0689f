//! Component `session`: the best score around the message in its session.

use crate::memory::View;

/// Messages of a session, before and after one, among which the best counts for it: a conversation that nothing divides is
/// about many things.
const REACH: usize = 16;

/// Writes to each document the best score around it in its session.
pub(crate) fn write_best(view: &View<'_>, scores: &[f64], values: &mut [f32]) {
    let (mut best, mut joined) = (Vec::new(), Vec::new());
    for members in view.content.layout().sessions.each() {
        let scores = members.iter().map(|slot| scores[*slot as usize] as f32);
        if members.len() <= REACH + 1 {
            let best = scores.fold(f32::NEG_INFINITY, greater);
            for slot in members {
                values[*slot as usize] = best;
            }
        } else {
            best_around(scores, &mut best, &mut joined);
            for (slot, best) in members.iter().zip(&best) {
                values[*slot as usize] = *best;
            }
        }
    }
}

/// Writes to `best` for each score the best of those up to [`REACH`] before and after it; `joined` is working memory.
/// The windows grow from 1 to their length by joining two of the length that they have, which overlap at the last.
fn best_around(scores: impl Iterator<Item = f32>, best: &mut Vec<f32>, joined: &mut Vec<f32>) {
    const LENGTH: usize = 2 * REACH + 1;
    let beyond = || std::iter::repeat_n(f32::NEG_INFINITY, REACH);
    best.clear();
    best.extend(beyond().chain(scores).chain(beyond()));
    let mut length = 1;
    while length < LENGTH {
        let step = length.min(LENGTH - length);
        let windows = best.iter().zip(&best[step..]);
        joined.clear();
        joined.extend(windows.map(|(left, right)| greater(*left, *right)));
        std::mem::swap(best, joined);
        length += step;
    }
}

/// The greater of two numbers, as one instruction; `f32::max` asks for NaN besides.
fn greater(left: f32, right: f32) -> f32 {
    if left < right { right } else { left }
}
