//! How replies are sent, without holding more for a peer that does not read than it may.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{sleep, timeout};

use super::budget::{Budget, Share};
use super::message::ACCEPTED;
use super::status::{Status, ok_trailers};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(super) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Replies up to this size are handed over whole.
const SMALL_BYTES: usize = 1 << 10;
/// What a larger one is handed over in.
const PART_BYTES: usize = 64 << 10;
/// What a peer that takes a reply takes in a second.
const SLOWEST_BYTES: usize = 16 << 10;

/// What h2 is handed: what stands in front of a message, once, and bytes of it. To put both together would
/// copy the message.
pub(super) type Part = Chain<Bytes, Bytes>;

/// The flag and the length of a message.
fn prefix(message: &[u8]) -> Bytes {
    // A reply of 4 GiB cannot be made: its record would be larger than the store takes.
    let [a, b, c, d] = (message.len() as u32).to_be_bytes();
    Bytes::copy_from_slice(&[0, a, b, c, d])
}

/// Calls of a connection that are answered at a time: replies whose size is not known yet.
const TURNS: usize = 16;

/// How long a connection may take nothing of its replies while those of all have no more room.
const PRESSED_PATIENCE: Duration = Duration::from_secs(1);

/// What a connection has not taken yet.
pub(super) struct Backlog {
    of_connection: Arc<Budget>,
    of_all: Arc<Budget>,
    shrank: Notify,
    turns: Semaphore,
    parts_taken: AtomicU64,
    pressure: Arc<Notify>,
    stall: Duration,
}

/// A message that is to be sent. It counts until its last bytes are written to the socket, or dropped: what h2 holds because
/// the peer does not read is counted, too.
pub(super) struct Outgoing(Bytes);

/// The owner of a message's bytes, which h2 drops when it has written them.
struct Unread {
    message: Bytes,
    of_connection: Share,
    of_all: Share,
    backlog: Arc<Backlog>,
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.of_connection.shrink(self.message.len());
        self.of_all.shrink(self.message.len());
        self.backlog.parts_taken.fetch_add(1, Ordering::Relaxed);
        self.backlog.shrank.notify_waiters();
    }
}

impl Backlog {
    pub(super) fn new(
        bound: usize,
        of_all: &Arc<Budget>,
        pressure: &Arc<Notify>,
        stall: Duration,
    ) -> Self {
        Self {
            of_connection: Budget::new(bound),
            of_all: Arc::clone(of_all),
            shrank: Notify::new(),
            turns: Semaphore::new(TURNS),
            parts_taken: AtomicU64::new(0),
            pressure: Arc::clone(pressure),
            stall,
        }
    }

    /// Waits until the peer has taken nothing for a while although the replies of all have no more room: others are
    /// refused until it is gone.
    pub(super) async fn until_in_the_way(&self) {
        loop {
            self.pressure.notified().await;
            while self.is_pressed() {
                let before = self.parts_taken.load(Ordering::Relaxed);
                sleep(PRESSED_PATIENCE).await;
                if self.is_pressed() && self.parts_taken.load(Ordering::Relaxed) == before {
                    return;
                }
            }
        }
    }

    fn is_pressed(&self) -> bool {
        self.of_all.is_spent() && self.of_connection.held() > 0
    }

    /// Waits until the connection has taken enough for another reply. The turn ends when that counts.
    pub(super) async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        let turn = self.turns.acquire().await.ok();
        while self.of_connection.is_spent() {
            self.shrank.notified().await;
        }
        turn
    }

    /// Counts a message that is to be sent.
    pub(super) fn hold(self: &Arc<Self>, message: Bytes) -> Outgoing {
        let mut of_connection = Share::of(&self.of_connection);
        let mut of_all = Share::of(&self.of_all);
        of_connection.force(message.len());
        of_all.force(message.len());
        if self.of_all.is_spent() {
            self.pressure.notify_waiters();
        }
        Outgoing(Bytes::from_owner(Unread {
            message,
            of_connection,
            of_all,
            backlog: Arc::clone(self),
        }))
    }
}

/// The reply to a call.
pub(super) struct Reply {
    state: State,
    pub(super) backlog: Arc<Backlog>,
}

enum State {
    Unsent(SendResponse<Part>),
    Sending(SendStream<Part>),
}

/// The peer ended the call or the connection, or does not read.
pub(super) struct Gone;

impl From<h2::Error> for Gone {
    fn from(_: h2::Error) -> Self {
        Self
    }
}

impl Reply {
    pub(super) fn new(respond: SendResponse<Part>, backlog: &Arc<Backlog>) -> Self {
        Self {
            state: State::Unsent(respond),
            backlog: Arc::clone(backlog),
        }
    }

    /// Ready when the peer has ended the call.
    pub(super) fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.state {
            State::Unsent(respond) => respond.poll_reset(context),
            State::Sending(stream) => stream.poll_reset(context),
        };
        reset.map(drop)
    }

    /// Sends a message.
    pub(super) async fn message(&mut self, message: Outgoing) -> Result<(), Gone> {
        let backlog = Arc::clone(&self.backlog);
        let stream = self.begin()?;
        let Outgoing(message) = message;
        let bytes = message.len();
        if bytes <= SMALL_BYTES {
            return Ok(stream.send_data(prefix(&message).chain(message), false)?);
        }
        let patience = backlog.stall + Duration::from_secs((bytes / SLOWEST_BYTES) as u64);
        let sent = timeout(patience, send_in_parts(stream, message, &backlog)).await;
        sent.unwrap_or_else(|_| {
            stream.send_reset(Reason::CANCEL);
            Err(Gone)
        })
    }

    /// Sends a message of a stream, whose reader takes it when it likes: nothing of it is handed over before.
    pub(super) async fn at_leisure(&mut self, message: Outgoing) -> Result<(), Gone> {
        let backlog = Arc::clone(&self.backlog);
        let Outgoing(message) = message;
        send_in_parts(self.begin()?, message, &backlog).await
    }

    /// Says that messages will come.
    pub(super) fn open(&mut self) -> Result<(), Gone> {
        self.begin().map(drop)
    }

    fn begin(&mut self) -> Result<&mut SendStream<Part>, Gone> {
        if let State::Unsent(respond) = &mut self.state {
            self.state = State::Sending(respond.send_response(head(), false)?);
        }
        match &mut self.state {
            State::Sending(stream) => Ok(stream),
            State::Unsent(_) => Err(Gone),
        }
    }

    /// Ends the call well.
    pub(super) fn end(mut self) {
        if let Ok(stream) = self.begin() {
            // A peer that is gone needs no trailers.
            let _ = stream.send_trailers(ok_trailers());
        }
    }

    /// Ends the call with a status.
    pub(super) fn fail(self, status: &Status) {
        // A peer that is gone needs no status.
        let _ = match self.state {
            State::Unsent(respond) => refuse(respond, status),
            State::Sending(mut stream) => stream.send_trailers(status.trailers()),
        };
    }
}

async fn send_in_parts(
    stream: &mut SendStream<Part>,
    mut message: Bytes,
    backlog: &Backlog,
) -> Result<(), Gone> {
    let mut prefix = prefix(&message);
    while !(prefix.is_empty() && message.is_empty()) {
        let wanted = prefix.len() + message.len();
        let room = capacity(stream, wanted.min(PART_BYTES)).await?.min(wanted);
        let front = prefix.split_to(room.min(prefix.len()));
        let part = message.split_to(room - front.len());
        backlog.parts_taken.fetch_add(1, Ordering::Relaxed);
        stream.send_data(front.chain(part), false)?;
    }
    Ok(())
}

/// How much the peer takes now, once it takes something.
async fn capacity(stream: &mut SendStream<Part>, wanted: usize) -> Result<usize, Gone> {
    stream.reserve_capacity(wanted);
    while stream.capacity() == 0 {
        match poll_fn(|context| stream.poll_capacity(context)).await {
            None => return Err(Gone),
            Some(granted) => granted?,
        };
    }
    Ok(stream.capacity())
}

fn head() -> Response<()> {
    let mut response = Response::new(());
    response.headers_mut().insert(header::CONTENT_TYPE, GRPC);
    response
}

/// Answers with nothing but a status.
pub(super) fn refuse(mut respond: SendResponse<Part>, status: &Status) -> Result<(), h2::Error> {
    let mut response = head();
    status.write(response.headers_mut());
    respond.send_response(response, true).map(drop)
}

/// As `refuse`, and says how messages may be compressed.
pub(super) fn refuse_encoding(
    mut respond: SendResponse<Part>,
    status: &Status,
) -> Result<(), h2::Error> {
    let mut response = head();
    status.write(response.headers_mut());
    let accepted = HeaderValue::from_static(ACCEPTED);
    response.headers_mut().insert(ACCEPT_ENCODING, accepted);
    respond.send_response(response, true).map(drop)
}

/// Answers what is no call.
pub(super) fn refuse_http(
    mut respond: SendResponse<Part>,
    status: StatusCode,
) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    respond.send_response(response, true).map(drop)
}
