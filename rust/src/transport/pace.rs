//! How fast calls are refused: a refusal takes time from the calls that are answered.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time from one refusal to the next, of all connections together.
const INTERVAL: Duration = Duration::from_micros(500);
/// A connection is left alone no longer than this: in a longer time all calls under way could be answered, and there would
/// be nothing to do.
const LONGEST_REST: Duration = Duration::from_millis(2);

/// Hands out times at which calls may be looked at while there is no room for them. Who asks in a hurry waits, and has
/// fewer calls under way: HTTP/2 bounds the streams of a connection.
pub(super) struct Pace {
    next: Mutex<Instant>,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self {
            next: Mutex::new(Instant::now()),
        }
    }

    /// For how long a connection is left alone.
    pub(super) fn rest(&self) -> Duration {
        let now = Instant::now();
        let mut next = self.next.lock();
        let turn = (*next).clamp(now, now + LONGEST_REST);
        *next = turn + INTERVAL;
        turn - now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_come_apart_and_none_is_put_off_for_long() {
        let pace = Pace::new();
        let rests: Vec<_> = (0..1000).map(|_| pace.rest()).collect();

        let longest = rests.iter().max().copied().unwrap_or_default();
        assert!(longest > LONGEST_REST / 2 && longest <= LONGEST_REST);
    }

    #[test]
    fn who_comes_alone_rests_not_at_all() {
        let pace = Pace::new();
        std::thread::sleep(INTERVAL);

        assert_eq!(pace.rest(), Duration::ZERO);
    }
}
