//! The interface of handlers, which answer calls.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::budget::Full;
use super::credentials::Credentials;
use super::flow::Flow;
use super::message::Unreadable;
use super::status::Status;

/// How calls of a method are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// On the transport's thread if the answer needs no wait, or else in a thread of the pool.
    Quick,
    /// In a thread of the pool.
    Pool,
    /// Each message of a stream by one message, in the pool, in order.
    Each,
    /// By a stream of messages, opened in the pool.
    Stream,
}

/// A method: its path, `/package.Service/Method`, and how its calls are answered.
#[derive(Clone, Debug)]
pub struct Method {
    pub path: String,
    pub answering: Answering,
}

/// What a method receives whose messages may be longer than others'.
#[derive(Clone, Debug)]
pub struct Larger {
    /// The longest message. One that is compressed has no more room than others once it is decompressed.
    pub bytes: usize,
    /// The answer to a longer one.
    pub refusal: Status,
}

/// A request to be answered.
pub struct Question<'a, Caller> {
    /// The position of its method in the list of methods.
    pub method: usize,
    pub caller: &'a Caller,
    /// The header `traceparent`; empty if there is none.
    pub traceparent: &'a str,
    pub message: &'a [u8],
    /// The deadline of the answer. `None`: it must not wait for anything.
    pub deadline: Option<Instant>,
}

/// The result of a request.
pub enum Answer {
    /// A message to be sent when the revision `after` is published.
    Reply {
        message: Bytes,
        after: u64,
    },
    Failure(Status),
    /// It would have had to wait, and had no effect. Only for requests without a deadline.
    WouldWait,
    /// The messages of a stream. Only for methods that are answered so.
    Stream(Flow),
}

/// Answers calls, on the transport's thread and on those of the pool.
pub trait Handler: Send + Sync + 'static {
    /// The caller of a call.
    type Caller: Send + Sync + 'static;

    /// Identifies a caller by its credentials. It must be brief, because it runs on the transport's thread.
    fn identify(&self, credentials: &Credentials<'_>) -> Result<Self::Caller, Status>;

    /// Answers a request.
    fn answer(&self, question: &Question<'_, Self::Caller>) -> Answer;

    /// Runs work that answers several requests, and takes what they all need once.
    fn together(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Logs a failure that no caller learns of.
    fn report(&self, trouble: &str);

    /// Learns who has connected over a Unix socket, by the kernel's word: the ids of the user, its group and the process,
    /// 0 where the kernel tells none.
    fn connected(&self, _user: u32, _group: u32, _process: i32) {}
}

/// The publication of revisions.
pub trait Publication: Send + Sync + 'static {
    /// The newest published revision.
    fn published(&self) -> u64;

    /// Whether nothing will be published any more.
    fn has_ended(&self) -> bool;

    /// Has `changed` called after each change of either, from any thread. Only one transport calls this, once.
    fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>);
}

/// Characters of a path in a message.
const LONGEST_PATH: usize = 200;

/// The errors that the transport answers by itself.
#[derive(Clone, Debug)]
pub struct Refusals {
    /// There is no room for the call.
    pub overloaded: Status,
    /// The peer has reached its bound.
    pub peer_overloaded: Status,
    /// The deadline passed before there was an answer.
    pub deadline_exceeded: Status,
    /// The revision of the reply will not be published.
    pub not_published: Status,
    /// A panic, or another unexpected failure.
    pub internal: Status,
    /// The server stops.
    pub stopping: Status,
    /// The reader of a stream has let too many messages wait.
    pub slow_reader: Status,
    /// The request breaks gRPC's protocol. The answer says how.
    pub malformed: Status,
    /// A message of the request is too long.
    pub too_large: Status,
    /// The request's compression is unknown.
    pub unknown_compression: Status,
    /// There is no such method. The answer names it.
    pub unknown_method: Status,
}

impl Refusals {
    pub(super) fn full(&self, full: Full) -> Status {
        match full {
            Full::OfAll => self.overloaded.clone(),
            Full::OfPeer => self.peer_overloaded.clone(),
        }
    }

    /// A path may have any length: its beginning is shown, as printable ASCII.
    pub(super) fn unknown(&self, path: &str) -> Status {
        let printable = |letter: char| {
            if letter.is_ascii_graphic() {
                letter
            } else {
                '?'
            }
        };
        let shown: String = path.chars().take(LONGEST_PATH).map(printable).collect();
        self.unknown_method
            .saying(&format!("there is no method {shown}"))
    }

    pub(super) fn unreadable(&self, why: Unreadable) -> Status {
        match why {
            Unreadable::Malformed(how) => self.malformed.saying(how),
            Unreadable::TooLarge => self.too_large.clone(),
        }
    }
}
