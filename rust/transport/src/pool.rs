//! Calls that wait for an answer, and the queue of those that threads answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};
use remora_supervision::failpoints::{self, Point};
use remora_supervision::{Panicked, caught, keep_thread};
use tokio::sync::oneshot;

use super::admission::Slots;
use super::backlog::{Backlog, Making, Outgoing};
use super::budget::Share;
use super::flow::{Closer, Flow, Next, Source};
use super::handler::{Answer, Handler, Question, Refusals};
use super::message::{Encoding, Message};
use super::meter::Wait;
use super::status::Status;

/// A request that waits for its answer. It holds a slot and its bytes until then.
pub(super) struct Job<H: Handler> {
    pub(super) method: usize,
    pub(super) caller: Arc<H::Caller>,
    pub(super) traceparent: String,
    pub(super) message: Message,
    pub(super) encoding: Encoding,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Outcome>,
    /// The backlog in which the reply counts.
    pub(super) backlog: Arc<Backlog>,
    pub(super) slot: Slots,
    pub(super) share: Share,
    /// Counts it as waiting until its turn has come.
    pub(super) wait: Wait,
}

/// What became of a request.
pub(super) enum Outcome {
    Reply {
        message: Outgoing,
        after: u64,
    },
    Failure(Status),
    Stream(Flow),
    /// A panic, or an answer that its method does not give.
    Broken,
    /// There was no room for a reply. The request with its counters.
    NoRoom(Message, Share),
}

impl<H: Handler> Job<H> {
    /// Answers it if that needs no wait, and gives it back otherwise. A request for which nobody waits is dropped.
    pub(super) fn run_at_once(self, handler: &H) -> Option<Self> {
        let (job, making) = self.with_room()?;
        let answered = caught(|| {
            failpoints::hit(Point::AnsweringAtOnce);
            handler.answer(&job.question(&job.message.bytes, None))
        });
        match answered {
            Ok(Answer::WouldWait) => Some(job),
            answered => {
                job.finish(answered, making);
                None
            }
        }
    }

    /// Answers it. Its decompressed message has at most `limit` bytes. A request for which nobody waits is dropped.
    fn run(self, handler: &H, limit: usize, refusals: &Refusals, closer: &Arc<dyn Closer>) {
        let Some((mut job, making)) = self.with_room() else {
            return;
        };
        let message = job.message.take();
        let answered = caught(|| {
            failpoints::hit(Point::Answering);
            match message.unpacked(job.encoding, limit) {
                Err(why) => Answer::Failure(refusals.unreadable(why)),
                Ok(message) => handler.answer(&job.question(&message, Some(job.deadline))),
            }
        });
        let answered = answered.map(|mut answer| {
            if let Answer::Stream(flow) = &mut answer {
                flow.closed_by(Arc::clone(closer));
            }
            answer
        });
        job.finish(answered, making);
    }

    /// The job, if somebody waits for it and there is room for a reply. It checks again when its turn has come, because
    /// jobs before it may have taken the room.
    fn with_room(mut self) -> Option<(Self, Making)> {
        self.wait.end();
        if self.reply.is_closed() {
            return None;
        }
        if let Some(making) = self.backlog.begin() {
            return Some((self, making));
        }
        drop(self.slot);
        // The caller may have gone meanwhile.
        let _ = self.reply.send(Outcome::NoRoom(self.message, self.share));
        None
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

    /// Frees the slot and counts the reply before the caller learns of the answer.
    fn finish(self, answered: Result<Answer, Panicked>, making: Making) {
        let outcome = match answered {
            Ok(Answer::Reply { message, after }) => Outcome::Reply {
                message: making.hold(message),
                after,
            },
            Ok(Answer::Failure(status)) => Outcome::Failure(status),
            Ok(Answer::Stream(flow)) => Outcome::Stream(flow),
            Ok(Answer::WouldWait) | Err(Panicked) => Outcome::Broken,
        };
        drop(self.slot);
        drop(self.share);
        // The caller may have gone meanwhile.
        let _ = self.reply.send(outcome);
    }
}

/// A stream that waits for its next message.
pub(super) struct Pull {
    pub(super) flow: Flow,
    pub(super) reply: oneshot::Sender<(Flow, Pulled)>,
    /// The backlog in which the message counts.
    pub(super) backlog: Arc<Backlog>,
    pub(super) slot: Slots,
    /// Counts it as waiting until its turn has come.
    pub(super) wait: Wait,
}

/// The answer to a stream that asked for a message.
pub(super) enum Pulled {
    Message(Outgoing),
    End,
    Failure(Status),
    /// There was no room for a message: none was asked for.
    NoRoom,
}

impl Pull {
    /// Asks for the message, if there is room for it. A source that panics is asked no more.
    fn run(self, internal: &Status) {
        let Self {
            mut flow,
            reply,
            backlog,
            slot,
            wait,
        } = self;
        drop(wait);
        if reply.is_closed() {
            return;
        }
        let pulled = match backlog.begin() {
            Some(making) => pulled(&mut flow, making, internal),
            None => Pulled::NoRoom,
        };
        drop(slot);
        // The reader may have gone meanwhile.
        let _ = reply.send((flow, pulled));
    }
}

fn pulled(flow: &mut Flow, making: Making, internal: &Status) -> Pulled {
    let next = caught(|| {
        failpoints::hit(Point::Pulling);
        flow.next()
    });
    match next {
        Ok(Next::Message(message)) => Pulled::Message(making.hold(message)),
        Ok(Next::End) => Pulled::End,
        Ok(Next::Failure(status)) => Pulled::Failure(status),
        Err(Panicked) => Pulled::Failure(internal.clone()),
    }
}

/// The work of a thread of the pool.
enum Work<H: Handler> {
    Call(Job<H>),
    Pull(Pull),
    /// A source is closed.
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
}

struct State<H: Handler> {
    queue: VecDeque<Work<H>>,
    /// Wakes each thread that waits for work. The last that began to wait is woken first: its memory and its connection
    /// to the database are still in the caches.
    idle: Vec<Arc<Condvar>>,
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
                idle: Vec::new(),
                is_closed: false,
            }),
        })
    }

    /// Queues a call. The caller has made sure that there is room. A closed pool drops it.
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
        let woken = state.idle.pop();
        drop(state);
        if let Some(thread) = woken {
            thread.notify_one();
        }
    }

    /// Does the queued work in the calling thread until the pool is closed.
    pub(super) fn work(self: &Arc<Self>, handler: &H, limit: usize, refusals: &Refusals) {
        let closer: Arc<dyn Closer> = Arc::clone(self) as _;
        let ready = Arc::new(Condvar::new());
        keep_thread(|| {
            while let Some(work) = self.next(&ready) {
                failpoints::hit(Point::Worker);
                match work {
                    Work::Call(job) => job.run(handler, limit, refusals, &closer),
                    Work::Pull(pull) => pull.run(&refusals.internal),
                    Work::Close(mut source) => source.close(),
                }
            }
        });
    }

    /// The next work of a thread, which waits for it at its own condition. Sources are closed by a closed pool, too.
    fn next(&self, ready: &Arc<Condvar>) -> Option<Work<H>> {
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.queue.pop_front() {
                return Some(work);
            }
            if state.is_closed {
                return None;
            }
            state.idle.push(Arc::clone(ready));
            // It ends only when it is notified, and who notifies takes it from the list.
            ready.wait(&mut state);
        }
    }

    /// How many threads wait for work.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Drops jobs for which nobody waits any more.
    pub(super) fn sweep(&self) {
        self.keep(Work::is_awaited);
    }

    /// Takes no more work, and drops the waiting jobs.
    pub(super) fn close(&self) {
        let idle = {
            let mut state = self.state.lock();
            state.is_closed = true;
            std::mem::take(&mut state.idle)
        };
        self.keep(|work| matches!(work, Work::Close(_)));
        for thread in idle {
            thread.notify_one();
        }
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
