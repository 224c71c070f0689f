//! Sends replies, and holds no more than allowed for a peer that does not read.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use tokio::time::timeout_at;

use super::backlog::{Backlog, Outgoing};
use super::message::ACCEPTED;
use super::meter::Metered;
use super::status::{Code, Status, ok_trailers};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
pub(super) const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Replies up to this size are given to h2 whole.
const SMALL_BYTES: usize = 1 << 10;
/// The size of the pieces of a larger reply.
const PART_BYTES: usize = 64 << 10;
/// The least number of bytes of a reply that a peer must read in a second.
pub(super) const SLOWEST_BYTES: usize = 16 << 10;

/// What h2 gets: the prefix of a message, once, and bytes of the message. Joining both would copy the message.
pub(super) type Part = Chain<Bytes, Bytes>;

/// The flag and the length of a message.
fn prefix(message: &[u8]) -> Bytes {
    // A reply of 4 GiB cannot be made: its record would be larger than the store takes.
    let [a, b, c, d] = (message.len() as u32).to_be_bytes();
    Bytes::copy_from_slice(&[0, a, b, c, d])
}

/// The reply to a call.
pub(super) struct Reply {
    state: State,
    pub(super) backlog: Arc<Backlog>,
    metered: Option<Metered>,
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
            metered: None,
        }
    }

    /// The same, counted until it ends.
    pub(super) fn counted(mut self, metered: Metered) -> Self {
        self.metered = Some(metered);
        self
    }

    fn ends(&mut self, code: Code) {
        if let Some(metered) = &mut self.metered {
            metered.ends(code);
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

    /// Sends a message. A peer that does not read it loses the call.
    pub(super) async fn message(&mut self, message: Outgoing) -> Result<(), Gone> {
        let backlog = Arc::clone(&self.backlog);
        let stream = self.begin()?;
        let Outgoing(message) = message;
        let bytes = message.len();
        if bytes <= SMALL_BYTES {
            return Ok(stream.send_data(prefix(&message).chain(message), false)?);
        }
        match send_in_parts(stream, message, &backlog, Some(Instant::now())).await {
            Err(Unsent::Late) => {
                stream.send_reset(Reason::CANCEL);
                Err(Gone)
            }
            Err(Unsent::Gone) => Err(Gone),
            Ok(()) => Ok(()),
        }
    }

    /// Sends a message of a stream. Its reader may take its time, and h2 gets nothing of the message before.
    pub(super) async fn at_leisure(&mut self, message: Outgoing) -> Result<(), Gone> {
        let backlog = Arc::clone(&self.backlog);
        let Outgoing(message) = message;
        let sent = send_in_parts(self.begin()?, message, &backlog, None).await;
        sent.map_err(|_| Gone)
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

    /// Ends the call with OK.
    pub(super) fn end(mut self) {
        if let Ok(stream) = self.begin()
            // A peer that is gone needs no trailers.
            && stream.send_trailers(ok_trailers()).is_ok()
        {
            self.ends(Code::OK);
        }
    }

    /// Ends the call with a status.
    pub(super) fn fail(mut self, status: &Status) {
        self.ends(status.code);
        // A peer that is gone needs no status.
        let _ = match self.state {
            State::Unsent(respond) => refuse(respond, status),
            State::Sending(mut stream) => stream.send_trailers(status.trailers()),
        };
    }
}

/// Why a message was not sent.
enum Unsent {
    Gone,
    /// The peer has read too little of it for too long.
    Late,
}

/// Sends a message at the speed at which the peer reads it. With `begun`, when it began, the speed has a lower bound.
async fn send_in_parts(
    stream: &mut SendStream<Part>,
    mut message: Bytes,
    backlog: &Backlog,
    begun: Option<Instant>,
) -> Result<(), Unsent> {
    let mut prefix = prefix(&message);
    let mut sent = 0;
    while !(prefix.is_empty() && message.is_empty()) {
        let wanted = prefix.len() + message.len();
        let capacity = capacity(stream, wanted.min(PART_BYTES));
        let granted = match begun {
            Some(begun) => {
                let late =
                    begun + backlog.stall + Duration::from_secs((sent / SLOWEST_BYTES) as u64);
                timeout_at(late.into(), capacity).await
            }
            None => Ok(capacity.await),
        };
        let room = granted
            .map_err(|_| Unsent::Late)?
            .map_err(|_| Unsent::Gone)?;
        let front = prefix.split_to(room.min(wanted).min(prefix.len()));
        let part = message.split_to(room.min(wanted) - front.len());
        sent += front.len() + part.len();
        backlog.take(front.len() + part.len());
        let handed_over = stream.send_data(front.chain(part), false);
        handed_over.map_err(|_| Unsent::Gone)?;
    }
    Ok(())
}

/// Waits until the peer accepts bytes, and returns how many.
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

/// Answers with only a status.
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

/// Answers a request that is not a call.
pub(super) fn refuse_http(
    mut respond: SendResponse<Part>,
    status: StatusCode,
) -> Result<(), h2::Error> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    respond.send_response(response, true).map(drop)
}
