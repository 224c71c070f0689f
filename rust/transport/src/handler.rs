//! What the transport asks of those who answer calls.

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
    /// On the transport's thread where nothing must be waited for, else in a thread of the pool.
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

/// A request to be answered.
pub struct Question<'a, Caller> {
    /// The place of its method in the list of methods.
    pub method: usize,
    pub caller: &'a Caller,
    /// The header `traceparent`, empty where there is none.
    pub traceparent: &'a str,
    pub message: &'a [u8],
    /// Until when the answer may take; `None`: it must not wait for anything.
    pub deadline: Option<Instant>,
}

/// What became of a request.
pub enum Answer {
    /// A message to be sent when the revision `after` is published.
    Reply {
        message: Bytes,
        after: u64,
    },
    Failure(Status),
    /// It would have had to wait, and had no effect. Only where there was no deadline.
    WouldWait,
    /// The messages of a stream. Only where calls are answered so.
    Stream(Flow),
}

/// Answers calls, on the transport's thread and on those of the pool.
pub trait Handler: Send + Sync + 'static {
    /// Who makes a call.
    type Caller: Send + Sync + 'static;

    /// Tells a caller by its credentials. Short: it runs on the transport's thread.
    fn identify(&self, credentials: &Credentials<'_>) -> Result<Self::Caller, Status>;

    /// Answers a request.
    fn answer(&self, question: &Question<'_, Self::Caller>) -> Answer;

    /// Runs work that answers several requests: what they all need is taken once.
    fn together(&self, work: &mut dyn FnMut()) {
        work();
    }

    /// Tells those who run the server of trouble that no caller learns of.
    fn report(&self, trouble: &str);
}

/// Where revisions are published.
pub trait Publication: Send + Sync + 'static {
    /// The newest published revision.
    fn published(&self) -> u64;

    /// Whether nothing will be published any more.
    fn has_ended(&self) -> bool;

    /// Has `changed` called after each change of either, from any thread. It is called by one transport, once.
    fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>);
}

/// What the transport answers by itself.
#[derive(Clone, Debug)]
pub struct Refusals {
    /// There is no room for the call.
    pub overloaded: Status,
    /// The peer has as much here as it may.
    pub peer_overloaded: Status,
    /// The deadline passed before there was an answer.
    pub deadline_exceeded: Status,
    /// The revision that the reply speaks of will not be published.
    pub not_published: Status,
    /// Something panicked, or went another way that nobody foresaw.
    pub internal: Status,
    /// The server stops.
    pub stopping: Status,
    /// The reader of a stream has let more wait than may.
    pub slow_reader: Status,
    /// The request breaks gRPC's protocol; what is answered says how.
    pub malformed: Status,
    /// A message of the request is too long.
    pub too_large: Status,
    /// The request is compressed in a way that is not known here.
    pub unknown_compression: Status,
    pub unknown_method: Status,
}

impl Refusals {
    pub(super) fn full(&self, full: Full) -> Status {
        match full {
            Full::OfAll => self.overloaded.clone(),
            Full::OfPeer => self.peer_overloaded.clone(),
        }
    }

    pub(super) fn unreadable(&self, why: Unreadable) -> Status {
        match why {
            Unreadable::Malformed(how) => self.malformed.saying(how),
            Unreadable::TooLarge => self.too_large.clone(),
        }
    }
}
