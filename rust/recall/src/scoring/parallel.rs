//! Work on a large scope, on several cores.

use std::sync::OnceLock;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use remora_supervision::failpoints::{self, Point};

/// Slots of a scope, or of a range of it, that are worth a thread of their own. Of hybrid searches, one core scores so many
/// in 0.15 ms, with all rules in 0.3 and with word pieces in 1.4; to divide a search costs some 0.02 ms, which one by words
/// alone, that takes as long, does not get back. (`cargo run --release --example recall_search 4095 40`; `8192 80`, which
/// is divided, beside the same under `taskset -c 0`.) Tests divide all that can be divided.
const WORTHWHILE: usize = if cfg!(test) { 1 } else { 4096 };

/// Threads for all searches, one for each core, made for the first search that is worth it. `None` if there is but one
/// core, or they could not be made.
static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();

fn pool() -> Option<&'static ThreadPool> {
    let pool = POOL.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let builder = ThreadPoolBuilder::new()
            .num_threads(cores)
            .thread_name(|_| "search".to_owned());
        (cores > 1).then(|| builder.build().ok()).flatten()
    });
    pool.as_ref()
}

/// Does what concerns so many slots where [`join`] finds other threads, if it is worth it.
pub(crate) fn scope<T: Send>(slots: usize, work: impl FnOnce() -> T + Send) -> T {
    match pool().filter(|_| is_worthwhile(slots)) {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// Whether so many slots are worth being divided.
pub(crate) fn is_worthwhile(slots: usize) -> bool {
    slots >= 2 * WORTHWHILE
}

/// Does both, at the same time where this is in a [`scope`] that is worth it.
pub(crate) fn join<A: Send, B: Send>(
    first: impl FnOnce() -> A + Send,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    match rayon::current_thread_index() {
        Some(_) => rayon::join(first, || {
            failpoints::hit(Point::RecallDividing);
            second()
        }),
        None => (first(), second()),
    }
}
