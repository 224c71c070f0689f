//! The calls that the transport's own thread answers, one after the other.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::handler::Handler;
use super::pool::{Job, Pool};

/// How many calls are answered before the network is looked at again.
const TOGETHER: usize = 8;

/// The queue of quick calls.
pub(super) struct Quick<H: Handler> {
    jobs: Mutex<VecDeque<Job<H>>>,
    ready: Notify,
}

impl<H: Handler> Quick<H> {
    pub(super) fn new() -> Self {
        Self {
            jobs: Mutex::default(),
            ready: Notify::new(),
        }
    }

    /// Queues a call; whoever queues has seen to room for it.
    pub(super) fn push(&self, job: Job<H>) {
        self.jobs.lock().push_back(job);
        self.ready.notify_one();
    }

    /// Answers calls for good; those that would wait go to the pool.
    pub(super) async fn run(&self, handler: &H, pool: &Pool<H>) {
        loop {
            self.ready.notified().await;
            while !self.jobs.lock().is_empty() {
                handler.together(&mut || self.run_some(handler, pool));
                yield_now().await;
            }
        }
    }

    fn run_some(&self, handler: &H, pool: &Pool<H>) {
        for _ in 0..TOGETHER {
            let Some(job) = self.next() else { return };
            if let Some(job) = job.run_at_once(handler) {
                pool.push(job);
            }
        }
    }

    fn next(&self) -> Option<Job<H>> {
        self.jobs.lock().pop_front()
    }
}
