//! The bounds of the transport, and of what a peer can make it hold.

use std::time::Duration;

/// The bounds of a transport.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest request message, after decompression.
    pub receive_limit_bytes: usize,
    /// The timeout of a call without a deadline.
    pub default_timeout: Duration,
    /// How long a request may take to arrive, whatever the deadline of its call, because it takes room from its peer.
    pub request_timeout: Duration,
    /// Calls that may be under way in threads or wait for one.
    pub room: usize,
    /// The least time between two refusals for lack of room, of all connections together, because refusing takes time from
    /// answering.
    pub refusal_interval: Duration,
    /// Connections at a time. For a further one, the oldest that has made no valid call is closed; without such a one, the
    /// new connection is closed.
    pub connections: usize,
    /// Connections of one peer at a time: of an address, or of a process over a Unix socket.
    pub peer_connections: usize,
    /// Calls that are open at a time, those included that have not sent their request and those whose reply is held. Of
    /// this and of the bounds below that are of all peers together, a peer gets more while it has no more than is free.
    pub open_calls: usize,
    /// Bytes of requests that have not been answered.
    pub request_bytes: usize,
    /// Bytes of replies that the peers have not taken. Each thread that answers may add one reply.
    pub reply_bytes: usize,
    /// Bytes of replies of one connection beyond which its further calls wait.
    pub connection_reply_bytes: usize,
    /// Calls of one connection at a time.
    pub streams: u32,
    /// Calls that are answered by streams: of one connection, which must have room for other calls, and of all.
    pub connection_flows: usize,
    pub flows: usize,
    /// Calls that watch the health of a service.
    pub watches: usize,
    /// Calls of one connection that were reset before they were looked at: more close it. A client whose deadlines are
    /// short resets as many as it may have open while the transport's thread is busy.
    pub pending_resets: usize,
    /// How long a connection may take to say that it speaks HTTP/2.
    pub handshake_timeout: Duration,
    /// How often a peer is pinged, and how long it may take to answer.
    pub keepalive: Duration,
    pub keepalive_timeout: Duration,
    /// How long a peer may read nothing of a reply.
    pub stall_timeout: Duration,
    /// How long a connection may read nothing while its peer's calls are refused because of unread replies.
    pub full_stall_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            receive_limit_bytes: 4 << 20,
            default_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(30),
            room: 16 + 256,
            refusal_interval: Duration::from_micros(500),
            connections: 4096,
            peer_connections: 1024,
            open_calls: 16_384,
            request_bytes: 256 << 20,
            reply_bytes: 256 << 20,
            connection_reply_bytes: 8 << 20,
            streams: 100,
            connection_flows: 50,
            flows: 1024,
            watches: 1024,
            pending_resets: 400,
            handshake_timeout: Duration::from_secs(5),
            keepalive: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(20),
            stall_timeout: Duration::from_secs(20),
            full_stall_timeout: Duration::from_secs(1),
        }
    }
}

/// The longest list of a request's headers.
pub(super) const HEADER_LIST_BYTES: u32 = 16 << 10;
/// How many bytes a peer may send of one request, and of all requests of a connection, before they are read.
pub(super) const STREAM_WINDOW_BYTES: u32 = 256 << 10;
pub(super) const CONNECTION_WINDOW_BYTES: u32 = 1 << 20;
/// Requests up to this size are answered on the transport's own thread.
pub(super) const QUICK_REQUEST_BYTES: usize = 64 << 10;
