//! Calls on their way to an answer, and the queue of those that threads answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use remora_supervision::failpoints::{self, Point};
use remora_supervision::{Panicked, caught, keep_thread};
use tokio::sync::oneshot;

use super::admission::Places;
use super::budget::Share;
use super::flow::{Closer, Flow, Next, Source};
use super::handler::{Answer, Handler, Question, Refusals};
use super::message::{Encoding, Message};
use super::status::Status;

/// A request that waits for its answer. It takes a place and its bytes until it has one.
pub(super) struct Job<H: Handler> {
    pub(super) method: usize,
    pub(super) caller: Arc<H::Caller>,
    pub(super) traceparent: String,
    pub(super) message: Message,
    pub(super) encoding: Encoding,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Result<Answer, Panicked>>,
    pub(super) place: Places,
    pub(super) share: Share,
}

impl<H: Handler> Job<H> {
    /// Answers it where nothing must be waited for; gives it back otherwise. What nobody waits for any more is dropped.
    pub(super) fn run_at_once(self, handler: &H) -> Option<Self> {
        if self.reply.is_closed() {
            return None;
        }
        let answered = caught(|| {
            failpoints::hit(Point::AnsweringAtOnce);
            handler.answer(&self.question(&self.message.bytes, None))
        });
        match answered {
            Ok(Answer::WouldWait) => Some(self),
            answered => {
                self.finish(answered);
                None
            }
        }
    }

    /// Answers it; its message, unpacked, has at most `limit` bytes. What nobody waits for any more is dropped.
    fn run(mut self, handler: &H, limit: usize, refusals: &Refusals, closer: &Arc<dyn Closer>) {
        if self.reply.is_closed() {
            return;
        }
        let message = self.message.take();
        let answered = caught(|| {
            failpoints::hit(Point::Answering);
            match message.unpacked(self.encoding, limit) {
                Err(why) => Answer::Failure(refusals.unreadable(why)),
                Ok(message) => handler.answer(&self.question(&message, Some(self.deadline))),
            }
        });
        self.finish(answered.map(|mut answer| {
            if let Answer::Stream(flow) = &mut answer {
                flow.closed_by(Arc::clone(closer));
            }
            answer
        }));
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
    fn finish(self, answered: Result<Answer, Panicked>) {
        drop(self.place);
        drop(self.share);
        // The caller may have gone meanwhile.
        let _ = self.reply.send(answered);
    }
}

/// A stream that waits for its next message.
pub(super) struct Pull {
    pub(super) flow: Flow,
    pub(super) reply: oneshot::Sender<(Flow, Next)>,
    pub(super) place: Places,
}

impl Pull {
    /// Asks for the message. A source that panics is asked no more.
    fn run(self, internal: &Status) {
        let Self {
            mut flow,
            reply,
            place,
        } = self;
        if reply.is_closed() {
            return;
        }
        let next = caught(|| {
            failpoints::hit(Point::Pulling);
            flow.next()
        });
        drop(place);
        // The reader may have gone meanwhile.
        let _ = reply.send((
            flow,
            next.unwrap_or_else(|_| Next::Failure(internal.clone())),
        ));
    }
}

/// What a thread of the pool does.
enum Work<H: Handler> {
    Call(Job<H>),
    Pull(Pull),
    /// Nobody asks a source any more.
    Close(Box<dyn Source>),
}

impl<H: Handler> Work<H> {
    /// Whether somebody waits for it.
    fn is_awaited(&self) -> bool {
        match self {
            Self::Call(job) => !job.reply.is_closed(),
            Self::Pull(pull) => !pull.reply.is_closed(),
            Self::Close(_) => true,
        }
    }
}

/// The queue of the pool's threads.
pub(super) struct Pool<H: Handler> {
    state: Mutex<State<H>>,
    ready: Condvar,
}

struct State<H: Handler> {
    queue: VecDeque<Work<H>>,
    is_closed: bool,
}

impl<H: Handler> Closer for Pool<H> {
    fn close(&self, source: Box<dyn Source>) {
        self.enter(Work::Close(source));
    }
}

impl<H: Handler> Pool<H> {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                is_closed: false,
            }),
            ready: Condvar::new(),
        })
    }

    /// Queues a call; whoever queues has seen to room for it. A closed pool drops it.
    pub(super) fn push(&self, job: Job<H>) {
        self.enter(Work::Call(job));
    }

    /// As `push`, of a stream.
    pub(super) fn pull(&self, pull: Pull) {
        self.enter(Work::Pull(pull));
    }

    fn enter(&self, work: Work<H>) {
        let mut state = self.state.lock();
        if state.is_closed && !matches!(work, Work::Close(_)) {
            // What is dropped may enter again: not under the lock.
            drop(state);
            return;
        }
        state.queue.push_back(work);
        drop(state);
        self.ready.notify_one();
    }

    /// Does what is queued in the calling thread until the pool is closed.
    pub(super) fn work(self: &Arc<Self>, handler: &H, limit: usize, refusals: &Refusals) {
        let closer: Arc<dyn Closer> = Arc::clone(self) as _;
        keep_thread(|| {
            while let Some(work) = self.next() {
                failpoints::hit(Point::Worker);
                match work {
                    Work::Call(job) => job.run(handler, limit, refusals, &closer),
                    Work::Pull(pull) => pull.run(&refusals.internal),
                    Work::Close(mut source) => source.close(),
                }
            }
        });
    }

    /// Sources are closed by a closed pool, too.
    fn next(&self) -> Option<Work<H>> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.queue.pop_front() {
                return Some(work);
            }
            if state.is_closed {
                return None;
            }
            self.ready.wait(&mut state);
        }
    }

    /// Drops what nobody waits for any more.
    pub(super) fn sweep(&self) {
        self.keep(Work::is_awaited);
    }

    /// Takes nothing more; what waits is dropped.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.keep(|work| matches!(work, Work::Close(_)));
        self.ready.notify_all();
    }

    fn keep(&self, stays: impl Fn(&Work<H>) -> bool + Copy) {
        let mut state = self.state.lock();
        if state.queue.iter().all(&stays) {
            return;
        }
        let (kept, dropped): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut state.queue)
            .into_iter()
            .partition(stays);
        state.queue = kept;
        // What is dropped may enter again: not under the lock.
        drop(state);
        drop(dropped);
    }
}
