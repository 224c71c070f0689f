//! Records that were committed and are not in the database yet. Memory must hold them and the next start must apply them. A
//! bound on their bytes bounds both, and slows writers down to the speed of the database.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// The longest wait of a writer for the database, whatever its patience, because it holds a thread that readers need.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) struct Backlog {
    records: Mutex<Records>,
    shrunk: Condvar,
    bound: usize,
}

#[derive(Default)]
struct Records {
    /// Revision and bytes of each, in order.
    sizes: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Backlog {
    /// An empty one that has room while it holds less than `bound` bytes.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            records: Mutex::default(),
            shrunk: Condvar::new(),
            bound,
        }
    }

    /// Whether there is no room.
    pub(super) fn is_full(&self) -> bool {
        self.records.lock().bytes >= self.bound
    }

    /// Waits until there is room; false if there is none at `deadline`. Writers that wait at the same time may exceed the
    /// bound together, each by a record.
    pub(super) fn wait_for_room(&self, deadline: Option<Instant>) -> bool {
        let mut records = self.records.lock();
        if records.bytes < self.bound {
            return true;
        }
        let patience = Instant::now() + PATIENCE;
        let deadline = deadline.map_or(patience, |deadline| deadline.min(patience));
        let full = |records: &mut Records| records.bytes >= self.bound;
        !self
            .shrunk
            .wait_while_until(&mut records, full, deadline)
            .timed_out()
    }

    /// Takes in a record; in the order of revisions.
    pub(super) fn add(&self, revision: u64, bytes: usize) {
        let mut records = self.records.lock();
        records.sizes.push_back((revision, bytes));
        records.bytes += bytes;
    }

    /// Releases everything up to `revision`.
    pub(super) fn applied(&self, revision: u64) {
        let mut records = self.records.lock();
        while let Some((first, bytes)) = records.sizes.front().copied()
            && first <= revision
        {
            records.sizes.pop_front();
            records.bytes -= bytes;
        }
        drop(records);
        self.shrunk.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;
    use std::thread;

    #[test]
    fn there_is_room_until_the_bound_and_again_when_records_are_applied() {
        let backlog = Backlog::new(10);
        backlog.add(1, 9);
        assert!(backlog.wait_for_room(Some(Instant::now())));
        backlog.add(2, 9);
        assert!(backlog.is_full());
        assert!(!backlog.wait_for_room(Some(Instant::now())));
        backlog.applied(1);
        assert!(!backlog.is_full());
        assert!(backlog.wait_for_room(Some(Instant::now())));
    }

    #[test]
    fn who_waits_goes_on_when_there_is_room() {
        let backlog = Backlog::new(10);
        backlog.add(1, 10);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| backlog.wait_for_room(None));
            backlog.applied(1);
            assert!(waiting.join().unwrap());
        });
    }
}
