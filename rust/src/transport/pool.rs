//! Calls on their way to an answer, and the queue of those that threads answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::admission::Places;
use super::budget::Share;
use super::handler::{Answer, Handler, Question};
use super::message::{Encoding, Message};
use super::status::{Code, Status};

/// A request that waits for its answer. It takes a place and its bytes until it has one.
pub(super) struct Job<H: Handler> {
    pub(super) method: usize,
    pub(super) caller: Arc<H::Caller>,
    pub(super) traceparent: String,
    pub(super) message: Message,
    pub(super) encoding: Encoding,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Answer>,
    pub(super) place: Places,
    pub(super) share: Share,
}

impl<H: Handler> Job<H> {
    /// Answers it where nothing must be waited for; gives it back otherwise. What nobody waits for any more is dropped.
    pub(super) fn run_at_once(self, handler: &H) -> Option<Self> {
        if self.reply.is_closed() {
            return None;
        }
        match handler.answer(&self.question(&self.message.bytes, None)) {
            Answer::WouldWait => Some(self),
            answer => {
                self.finish(answer);
                None
            }
        }
    }

    /// Answers it; its message, unpacked, has at most `limit` bytes. What nobody waits for any more is dropped.
    fn run(mut self, handler: &H, limit: usize) {
        if self.reply.is_closed() {
            return;
        }
        let unpacked = self.message.take().unpacked(self.encoding, limit);
        let answer = match unpacked {
            Err(status) => Answer::Failure(status),
            Ok(message) => match handler.answer(&self.question(&message, Some(self.deadline))) {
                Answer::WouldWait => Answer::Failure(Status::new(Code::INTERNAL, "")),
                answer => answer,
            },
        };
        self.finish(answer);
    }

    fn question<'a>(
        &'a self,
        message: &'a [u8],
        deadline: Option<Instant>,
    ) -> Question<'a, H::Caller> {
        Question {
            method: self.method,
            caller: &self.caller,
            traceparent: &self.traceparent,
            message,
            deadline,
        }
    }

    /// Room is free again before the caller learns of the answer.
    fn finish(self, answer: Answer) {
        drop(self.place);
        drop(self.share);
        // The caller may have gone meanwhile.
        let _ = self.reply.send(answer);
    }
}

/// The queue of the pool's threads.
pub(super) struct Pool<H: Handler> {
    state: Mutex<State<H>>,
    work: Condvar,
}

struct State<H: Handler> {
    jobs: VecDeque<Job<H>>,
    is_closed: bool,
}

impl<H: Handler> Pool<H> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                is_closed: false,
            }),
            work: Condvar::new(),
        }
    }

    /// Queues a call; whoever queues has seen to room for it. A closed pool drops it.
    pub(super) fn push(&self, job: Job<H>) {
        let mut state = self.state.lock();
        if !state.is_closed {
            state.jobs.push_back(job);
            drop(state);
            self.work.notify_one();
        }
    }

    /// Answers calls in the calling thread until the pool is closed.
    pub(super) fn work(&self, handler: &H, limit: usize) {
        while let Some(job) = self.next() {
            job.run(handler, limit);
        }
    }

    fn next(&self) -> Option<Job<H>> {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// Drops the calls that nobody waits for any more.
    pub(super) fn sweep(&self) {
        let mut state = self.state.lock();
        state.jobs.retain(|job| !job.reply.is_closed());
    }

    /// Takes nothing more; what waits is dropped.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.jobs.clear();
        self.work.notify_all();
    }
}
