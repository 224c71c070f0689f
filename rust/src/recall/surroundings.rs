//! Components `passage` and `nearby`: what is said around a message.
//!
//! A message's neighbours are up to two before and two after it, of one session with it, and short as it is: a long
//! message stands for itself. Its passage is it and its neighbours.

use super::Recall;
use super::scope::View;
use super::sessions::Sessions;
use crate::lexical::Parameters;

/// Neighbours on each side, at most.
const REACH: usize = 2;

/// No neighbour.
const NONE: u32 = u32::MAX;

/// The neighbours of all documents of a scope.
pub(super) struct Surroundings<'a> {
    views: &'a [View<'a>],
    /// The places of the neighbours of the document at each place.
    neighbours: Vec<[u32; 2 * REACH]>,
}

impl<'a> Surroundings<'a> {
    pub(super) fn of(views: &'a [View<'a>], sessions: &Sessions, places: usize) -> Self {
        let mut surroundings = Self {
            views,
            neighbours: vec![[NONE; 2 * REACH]; places],
        };
        for view in views {
            surroundings.join(view, sessions);
        }
        surroundings
    }

    /// Joins the neighbours of a view.
    fn join(&mut self, view: &View<'_>, sessions: &Sessions) {
        let order = view.content.order();
        let is_short = |slot: u32| view.content.traits(slot).signs.short;
        for (at, &(_, slot)) in order.iter().enumerate() {
            let place = view.base + slot as usize;
            let after = order[at + 1..].iter().take(REACH);
            for (distance, &(_, other)) in after.enumerate() {
                let other_place = view.base + other as usize;
                if is_short(slot) && is_short(other) && sessions.same(place, other_place) {
                    self.neighbours[place][distance] = other_place as u32;
                    self.neighbours[other_place][REACH + distance] = place as u32;
                }
            }
        }
    }

    fn around(&self, place: usize) -> impl Iterator<Item = usize> {
        let neighbours = self.neighbours[place].into_iter();
        neighbours
            .filter(|other| *other != NONE)
            .map(|other| other as usize)
    }

    /// Writes to each document the best score among its neighbours.
    pub(super) fn write_nearby(&self, scores: &[f64], values: &mut [f32]) {
        for place in self.views.iter().flat_map(View::places) {
            for other in self.around(place) {
                values[place] = values[place].max(scores[other] as f32);
            }
        }
    }

    /// Writes to each document the BM25 of its passage among all passages, divided by the best.
    pub(super) fn write_passages(&self, recall: &Recall, text: &str, values: &mut [f32]) {
        let lengths = self.passage_lengths();
        let documents: usize = self
            .views
            .iter()
            .map(|view| view.content.order().len())
            .sum();
        let average =
            lengths.iter().map(|length| f64::from(*length)).sum::<f64>() / documents as f64;
        let mut terms = recall.analyzer.analyze(text);
        terms.sort_unstable();
        terms.dedup();
        let mut counts = vec![0; values.len()];
        let mut having = Vec::new();
        for term in terms {
            for view in self.views {
                view.content.words().each_posting(term, |slot, count| {
                    let place = view.base + slot as usize;
                    for place in self.around(place).chain([place]) {
                        if counts[place] == 0 {
                            having.push(place);
                        }
                        counts[place] += u32::from(count);
                    }
                });
            }
            let weight = Parameters::weight(documents as u64, having.len() as u64);
            for place in having.drain(..) {
                let length = f64::from(lengths[place]) / average;
                let count = std::mem::take(&mut counts[place]);
                values[place] +=
                    (weight * Parameters::default().saturated(count.into(), length)) as f32;
            }
        }
        divide_by_best(values);
    }

    /// The length of each document's passage, in terms.
    fn passage_lengths(&self) -> Vec<u32> {
        let mut own = vec![0; self.neighbours.len()];
        for view in self.views {
            for &(_, slot) in view.content.order() {
                own[view.base + slot as usize] = view.content.traits(slot).length;
            }
        }
        let whole =
            |place: usize| self.around(place).map(|other| own[other]).sum::<u32>() + own[place];
        (0..own.len()).map(whole).collect()
    }
}

/// Divides all values by the best, where that is above 0.
pub(super) fn divide_by_best(values: &mut [f32]) {
    let best = values.iter().copied().fold(0.0, f32::max);
    if best > 0.0 {
        for value in values {
            *value /= best;
        }
    }
}
