//! What a connection holds, and whether its peer reads it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::backlog::Backlog;
use super::options::Options;
use super::peer::Peer;
use super::reply::SLOWEST_BYTES;
use super::room::Room;

/// A connection, as its calls see it.
pub(super) struct Line {
    pub(super) peer: Arc<Peer>,
    pub(super) replies: Arc<Backlog>,
    /// Unread messages of streams. Their readers may pause as long as they like.
    pub(super) streams: Arc<Backlog>,
    /// Its calls that are answered by streams.
    pub(super) flows: Arc<Room>,
    /// Tells the connection to end.
    pub(super) leave: Notify,
}

impl Line {
    pub(super) fn new(peer: &Arc<Peer>, options: &Options) -> Self {
        let bound = options.connection_reply_bytes;
        let backlog = || Backlog::new(bound, &peer.replies, options.stall_timeout);
        Self {
            peer: Arc::clone(peer),
            replies: backlog(),
            streams: backlog(),
            flows: Room::new(options.connection_flows),
            leave: Notify::new(),
        }
    }

    fn held(&self) -> usize {
        self.replies.held() + self.streams.held()
    }

    fn taken(&self) -> u64 {
        self.replies.taken() + self.streams.taken()
    }

    /// Whether calls of its peer are refused, and its own unread replies are a cause.
    fn is_in_the_way(&self) -> bool {
        self.held() > 0 && self.peer.replies.require(1).is_err()
    }
}

/// How much a connection had read at a time, and how much it must read from there.
pub(super) struct Mark {
    made: Instant,
    goal: u64,
}

impl Mark {
    pub(super) fn new(line: &Line, patience: Duration) -> Self {
        let most = SLOWEST_BYTES as u64 * patience.as_millis() as u64 / 1000;
        Self {
            made: Instant::now(),
            goal: line.taken() + most.clamp(1, line.held().max(1) as u64),
        }
    }

    /// Whether the connection blocks its peer and has not read enough in time. Otherwise this makes a new mark.
    pub(super) fn is_missed(&mut self, line: &Line, patience: Duration) -> bool {
        if !line.is_in_the_way() || line.taken() >= self.goal {
            *self = Self::new(line, patience);
        }
        self.made.elapsed() >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::super::peer::Budgets;
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A connection of a peer that has long been at its bound.
    fn stalled() -> (Line, Mark, impl Sized) {
        let options = Options {
            reply_bytes: 1 << 20,
            ..Options::default()
        };
        let line = Line::new(&Budgets::new(&options).peer(), &options);
        let held = line.replies.hold(vec![0; 600 << 10].into());
        let mut mark = Mark::new(&line, PATIENCE);
        mark.made -= PATIENCE;
        (line, mark, held)
    }

    #[test]
    fn a_connection_that_takes_nothing_misses_its_mark() {
        let (line, mut mark, _held) = stalled();

        assert!(mark.is_missed(&line, PATIENCE));
    }

    #[test]
    fn a_connection_that_takes_little_misses_its_mark_and_one_that_takes_more_does_not() {
        let (line, mut mark, _held) = stalled();
        let enough = 600 << 10;

        line.replies.take(enough - 1);
        assert!(mark.is_missed(&line, PATIENCE));
        line.replies.take(1);
        assert!(!mark.is_missed(&line, PATIENCE));
    }

    #[test]
    fn a_connection_may_take_nothing_while_nobody_is_refused() {
        let (line, mut mark, held) = stalled();

        drop(held);

        assert!(!mark.is_missed(&line, PATIENCE));
    }
}
