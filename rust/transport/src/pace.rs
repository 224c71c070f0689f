//! How fast calls are refused: a refusal takes time from the calls that are answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep_until;

/// How many refusals may come at once after a time without any.
const BURST: u32 = 64;

/// Hands out turns to refuse calls, one after the other, at a bounded rate (the generic cell rate algorithm, ITU-T I.371).
/// A connection that calls fast waits, and has fewer calls under way, because HTTP/2 bounds its streams.
pub(super) struct Pace {
    turns: Arc<Semaphore>,
    interval: Duration,
    /// When the last refusal would have come, had all come one by one.
    due: Mutex<Instant>,
}

/// The turn to refuse calls. The next turn comes when this one has ended.
pub(super) struct Turn<'a> {
    pace: &'a Pace,
    permit: Option<OwnedSemaphorePermit>,
}

impl Pace {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(1)),
            interval,
            due: Mutex::new(Instant::now()),
        }
    }

    /// Waits for a turn, in order of arrival.
    pub(super) async fn turn(&self) -> Turn<'_> {
        // It is never closed.
        let permit = Arc::clone(&self.turns).acquire_owned().await.ok();
        Turn { pace: self, permit }
    }

    /// Counts refusals; when there may be more.
    fn spend(&self, refused: u32, now: Instant) -> Instant {
        let mut due = self.due.lock();
        let earliest = now.checked_sub(BURST * self.interval).unwrap_or(now);
        *due = (*due).max(earliest) + refused * self.interval;
        *due
    }
}

impl Turn<'_> {
    /// Ends the turn after a number of refusals.
    pub(super) fn end(self, refused: u32) {
        let now = Instant::now();
        let next = self.pace.spend(refused, now);
        if next > now {
            tokio::spawn(async move {
                sleep_until(next.into()).await;
                drop(self.permit);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(1);

    #[test]
    fn refusals_come_apart() {
        let pace = Pace::new(INTERVAL);
        let began = Instant::now();
        let last = (0..1000).map(|_| pace.spend(4, began)).last();

        assert!(last.is_some_and(|last| last >= began + (4000 - BURST) * INTERVAL));
    }

    #[test]
    fn some_come_at_once_after_a_time_without_any() {
        let pace = Pace::new(INTERVAL);
        let later = Instant::now() + 1000 * INTERVAL;

        assert!(pace.spend(BURST, later) <= later);
        assert!(pace.spend(1, later) > later);
    }
}
