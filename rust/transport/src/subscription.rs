//! Streams that wait: their messages are put by any thread and held here until the reader takes them; no thread waits.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::budget::{Budget, Portion, Share};
use super::status::Status;

/// How many messages of a subscription, and bytes of them, wait for its reader at most; one message may be larger.
const MESSAGES: usize = 256;
const BYTES: usize = 256 << 10;

/// The messages of one stream that nobody has taken yet.
pub struct Subscription {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    /// Where the messages count.
    portion: Arc<Portion>,
    messages: VecDeque<(Bytes, Share)>,
    bytes: usize,
    ended: Option<Ended>,
}

#[derive(Clone, Debug)]
enum Ended {
    /// By whoever puts messages; with a status where something failed.
    Closed(Option<Status>),
    /// More would have waited than may.
    Overrun,
    /// The reader is gone.
    Left,
}

/// What a reader takes.
pub(super) enum Taken {
    Message(Bytes, Share),
    End,
    Failure(Status),
    /// It was too slow, and has missed messages.
    Overrun,
}

impl Subscription {
    /// Its messages count for nobody but all peers until its reader is known.
    pub(super) fn new(of_all: &Arc<Budget>) -> Self {
        Self {
            state: Mutex::new(State {
                portion: Portion::of(of_all),
                messages: VecDeque::new(),
                bytes: 0,
                ended: None,
            }),
            changed: Notify::new(),
        }
    }

    /// Has the messages count for its reader's peer, those that wait and those that come.
    pub(super) fn count_for(&self, portion: &Arc<Portion>) {
        let mut state = self.state.lock();
        state.portion = Arc::clone(portion);
        for (_, share) in &mut state.messages {
            share.transfer(portion);
        }
    }

    /// Puts a message behind the others; false if the stream has ended, also by this one, for which there is no room:
    /// what waits is dropped then, and the reader learns of it.
    pub fn push(&self, message: Bytes) -> bool {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return false;
        }
        let mut share = Share::of(&state.portion);
        let has_room = state.has_room_for(message.len()) && share.grow(message.len()).is_ok();
        if has_room {
            state.bytes += message.len();
            state.messages.push_back((message, share));
        } else {
            state.end(Ended::Overrun);
        }
        drop(state);
        self.changed.notify_one();
        has_room
    }

    /// Ends the stream behind what waits: well, or with a status.
    pub fn close(&self, failure: Option<Status>) {
        self.state
            .lock()
            .ended
            .get_or_insert(Ended::Closed(failure));
        self.changed.notify_one();
    }

    /// Whether more came than may wait.
    pub(super) fn is_overrun(&self) -> bool {
        matches!(self.state.lock().ended, Some(Ended::Overrun))
    }

    /// The reader is gone: nothing more is taken in.
    pub(super) fn leave(&self) {
        self.state.lock().end(Ended::Left);
    }

    /// Waits for what comes next. For one reader.
    pub(super) async fn take(&self) -> Taken {
        loop {
            if let Some(taken) = self.state.lock().take() {
                return taken;
            }
            self.changed.notified().await;
        }
    }
}

impl State {
    fn has_room_for(&self, bytes: usize) -> bool {
        let fits = self.bytes + bytes <= BYTES || self.messages.is_empty();
        fits && self.messages.len() < MESSAGES
    }

    /// Ends it at once, with nothing left to take.
    fn end(&mut self, ended: Ended) {
        self.messages.clear();
        self.bytes = 0;
        self.ended = Some(ended);
    }

    fn take(&mut self) -> Option<Taken> {
        if let Some((message, share)) = self.messages.pop_front() {
            self.bytes -= message.len();
            return Some(Taken::Message(message, share));
        }
        Some(match self.ended.clone()? {
            Ended::Closed(None) | Ended::Left => Taken::End,
            Ended::Closed(Some(status)) => Taken::Failure(status),
            Ended::Overrun => Taken::Overrun,
        })
    }
}
