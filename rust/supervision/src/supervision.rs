//! What outlives a panic: a future that ends in one, tasks and threads that begin again after one.
//!
//! A panic is told of by the process's hook (`panics`), with its location; here it only has to end nothing else.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

/// The pause before the first of a row of new beginnings; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What worked for so long has not failed in a row.
const STEADY: Duration = Duration::from_secs(30);

/// Something panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panicked;

/// What a function gives, or that it panicked. Whatever it changed must be left to nobody, or be whole after any step.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Panicked)
}

/// As `caught`, of a future.
pub async fn caught_task<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match caught(|| future.as_mut().poll(context)) {
        Ok(polled) => polled.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// Runs a task to its end, and begins it anew where it panics.
pub async fn keep_task<F: Future<Output = ()>>(mut begin: impl FnMut() -> F) {
    let mut pauses = Pauses::default();
    loop {
        let began = Instant::now();
        if caught_task(async { begin().await }).await.is_ok() {
            return;
        }
        tokio::time::sleep(pauses.next(began.elapsed())).await;
    }
}

/// As `keep_task`, of the calling thread's work.
pub fn keep_thread(mut work: impl FnMut()) {
    let mut pauses = Pauses::default();
    loop {
        let began = Instant::now();
        if caught(&mut work).is_ok() {
            return;
        }
        thread::sleep(pauses.next(began.elapsed()));
    }
}

/// How long to wait before something begins anew.
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    /// The pause after a failure that came after so long.
    fn next(&mut self, worked: Duration) -> Duration {
        if worked >= STEADY {
            self.0 = FIRST_PAUSE;
        }
        let pause = self.0;
        self.0 = (2 * pause).min(LONGEST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_panics_begins_anew_until_it_ends() {
        let mut begun = 0;
        keep_thread(|| {
            begun += 1;
            assert!(begun == 3, "not yet");
        });
        assert_eq!(begun, 3);
    }

    #[test]
    fn pauses_grow_up_to_a_bound_and_begin_anew_after_steady_work() {
        let mut pauses = Pauses::default();
        let row: Vec<_> = (0..20).map(|_| pauses.next(Duration::ZERO)).collect();
        assert_eq!(row[0], FIRST_PAUSE);
        assert!(row.is_sorted());
        assert_eq!(row[19], LONGEST_PAUSE);
        assert_eq!(pauses.next(STEADY), FIRST_PAUSE);
    }
}
