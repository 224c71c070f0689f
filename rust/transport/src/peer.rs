//! The other end of a connection.

use std::sync::Arc;

use super::connections::Connected;
use super::handler::Handler;
use super::reply::Backlog;
use super::room::Room;
use super::shared::Shared;

/// What the other end of a connection holds here: what it has not read of replies, and of streams, whose reader may pause as it likes.
pub(super) struct Peer {
    pub(super) connected: Connected,
    pub(super) replies: Arc<Backlog>,
    pub(super) streams: Arc<Backlog>,
    /// Its calls that are answered by streams.
    pub(super) flows: Arc<Room>,
}

impl Peer {
    pub(super) fn of<H: Handler>(shared: &Shared<H>, connected: Connected) -> Self {
        Self {
            connected,
            replies: backlog(shared),
            streams: backlog(shared),
            flows: Room::new(shared.options.connection_flows),
        }
    }
}

fn backlog<H: Handler>(shared: &Shared<H>) -> Arc<Backlog> {
    Arc::new(Backlog::new(
        shared.options.connection_reply_bytes,
        &shared.replies,
        &shared.pressure,
        shared.options.stall_timeout,
    ))
}
