//! Unread replies: bytes are counted until they are written, for the connection, for its peer and for all peers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use super::budget::{Full, Portion};

/// How many calls of a connection are answered at a time, because the sizes of their replies are not known yet.
const TURNS: usize = 16;

/// The unread replies of a connection, or the unread messages of its streams.
pub(super) struct Backlog {
    of_peer: Arc<Portion>,
    held: AtomicUsize,
    /// How many replies are being made. Their sizes are not known yet.
    making: AtomicUsize,
    bound: usize,
    taken: AtomicU64,
    shrank: Notify,
    turns: Semaphore,
    pub(super) stall: Duration,
}

/// Whether another reply may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Some,
    /// When the connection has taken more of what it has.
    Later,
    None(Full),
}

/// A message to send. It counts until its last bytes are written to the socket, or dropped. So bytes that h2 holds because
/// the peer does not read are counted, too.
#[derive(Debug)]
pub(super) struct Outgoing(pub(super) Bytes);

/// The owner of a message's bytes. h2 drops it when it has written them.
struct Unread {
    message: Bytes,
    backlog: Arc<Backlog>,
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let (bytes, backlog) = (self.message.len(), &self.backlog);
        backlog.held.fetch_sub(bytes, Ordering::Relaxed);
        backlog.of_peer.subtract(bytes);
        backlog.take(bytes);
        backlog.shrank.notify_waiters();
    }
}

/// A reply that is being made, until it is held or this is dropped.
pub(super) struct Making(Arc<Backlog>);

impl Making {
    /// Counts the reply.
    pub(super) fn hold(self, message: Bytes) -> Outgoing {
        self.0.hold(message)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.0.making.fetch_sub(1, Ordering::Relaxed);
        self.0.shrank.notify_waiters();
    }
}

impl Backlog {
    pub(super) fn new(bound: usize, of_peer: &Arc<Portion>, stall: Duration) -> Arc<Self> {
        Arc::new(Self {
            of_peer: Arc::clone(of_peer),
            held: AtomicUsize::new(0),
            making: AtomicUsize::new(0),
            bound,
            taken: AtomicU64::new(0),
            shrank: Notify::new(),
            turns: Semaphore::new(TURNS),
            stall,
        })
    }

    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// A measure of the bytes that the connection has read so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Counts bytes that the connection reads.
    pub(super) fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether another reply may be made.
    pub(super) fn room(&self) -> Room {
        self.room_beside(self.making.load(Ordering::Relaxed))
    }

    /// Whether another reply may be made while `making` others are made. A connection that has read everything gets a reply
    /// as long as its peer may hold more at all, so that connections that do not read delay only themselves.
    fn room_beside(&self, making: usize) -> Room {
        if let Err(full) = self.of_peer.require(1) {
            return Room::None(full);
        }
        match self.held() {
            0 if making == 0 => Room::Some,
            held if held < self.bound && self.of_peer.is_small() => Room::Some,
            _ => Room::Later,
        }
    }

    /// Begins to make a reply, if there is room for it.
    pub(super) fn begin(self: &Arc<Self>) -> Option<Making> {
        let before = self.making.fetch_add(1, Ordering::Relaxed);
        let making = Making(Arc::clone(self));
        (self.room_beside(before) == Room::Some).then_some(making)
    }

    /// Waits until another reply may be made.
    pub(super) async fn until_room(&self) -> Result<(), Full> {
        loop {
            // Before the check, so that a change after it is not missed.
            let shrank = self.shrank.notified();
            match self.room() {
                Room::Some => return Ok(()),
                Room::None(full) => return Err(full),
                Room::Later => shrank.await,
            }
        }
    }

    /// Waits until it is a call's turn and another reply may be made. The turn ends when that reply counts.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, Full> {
        // It is never closed.
        let turn = self.turns.acquire().await.map_err(|_| Full::OfAll)?;
        self.until_room().await?;
        Ok(turn)
    }

    /// Counts a message to send.
    pub(super) fn hold(self: &Arc<Self>, message: Bytes) -> Outgoing {
        self.held.fetch_add(message.len(), Ordering::Relaxed);
        self.of_peer.add(message.len());
        Outgoing(Bytes::from_owner(Unread {
            message,
            backlog: Arc::clone(self),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::budget::Budget;
    use super::*;

    fn backlogs<const COUNT: usize>(of_all: usize, bound: usize) -> [Arc<Backlog>; COUNT] {
        let of_peer = Portion::of(&Budget::new(of_all));
        [(); COUNT].map(|()| Backlog::new(bound, &of_peer, Duration::ZERO))
    }

    fn bytes(count: usize) -> Bytes {
        vec![0; count].into()
    }

    #[test]
    fn a_connection_that_holds_something_waits_before_its_peer_is_full() {
        let [first, second] = backlogs(1000, 1000);

        let held = first.hold(bytes(200));
        assert_eq!((first.room(), second.room()), (Room::Later, Room::Some));

        let more = second.hold(bytes(300));
        let full = Room::None(Full::OfPeer);
        assert_eq!((first.room(), second.room()), (full, full));

        drop((held, more));
        assert_eq!((first.room(), second.room()), (Room::Some, Room::Some));
    }

    #[test]
    fn a_reply_that_is_being_made_is_taken_for_one_that_is_held() {
        let [first, second] = backlogs(1000, 1000);
        let _held = second.hold(bytes(200));

        let making = first.begin();
        assert!(making.is_some());
        assert!(first.begin().is_none());
        assert_eq!(first.room(), Room::Later);

        drop(making);
        let held = first.begin().map(|making| making.hold(bytes(1)));
        assert_eq!((first.held(), first.room()), (1, Room::Later));
        drop(held);
        assert_eq!(first.room(), Room::Some);
    }

    #[test]
    fn a_connection_waits_at_its_own_bound() {
        let [backlog] = backlogs(1 << 20, 100);

        let held = backlog.hold(bytes(99));
        assert_eq!(backlog.room(), Room::Some);
        let more = backlog.hold(bytes(1));
        assert_eq!(backlog.room(), Room::Later);

        drop(held);
        assert_eq!((backlog.room(), backlog.taken()), (Room::Some, 99));
        drop(more);
    }
}
