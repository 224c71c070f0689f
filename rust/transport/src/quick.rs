//! The calls that the transport's own thread answers, one after the other.

use std::collections::VecDeque;

use parking_lot::Mutex;
use remora_supervision::failpoints::{self, Point};
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::handler::Handler;
use super::pool::{Job, Pool};

/// How many calls are answered before the network is polled again. If many wait, it is a share of them, so that refusals
/// do not keep this thread from answering.
const TOGETHER: usize = 8;
const MOST_TOGETHER: usize = 64;

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

    /// Queues a call. The caller has made sure that there is room.
    pub(super) fn push(&self, job: Job<H>) {
        self.jobs.lock().push_back(job);
        self.ready.notify_one();
    }

    /// Answers calls for good, in their order. Calls that would have to wait go to the pool.
    pub(super) async fn run(&self, handler: &H, pool: &Pool<H>) {
        loop {
            while let waiting @ 1.. = self.waiting() {
                failpoints::hit(Point::QuickTask);
                let count = (waiting / 2).clamp(TOGETHER, MOST_TOGETHER);
                handler.together(&mut || self.run_some(count, handler, pool));
                if waiting > count {
                    yield_now().await;
                }
            }
            self.ready.notified().await;
        }
    }

    fn run_some(&self, count: usize, handler: &H, pool: &Pool<H>) {
        for _ in 0..count {
            let Some(job) = self.next() else { return };
            if let Some(mut job) = job.run_at_once(handler) {
                job.wait.begin();
                pool.push(job);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.jobs.lock().len()
    }

    fn next(&self) -> Option<Job<H>> {
        self.jobs.lock().pop_front()
    }
}
