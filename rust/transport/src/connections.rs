//! The connections that are served: how many are allowed, of one peer and of all, and which one is closed for a new one.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use remora_supervision::failpoints::{self, Point};

use super::credentials::Names;
use super::line::{Line, Mark};
use super::options::Options;
use super::peer::{Budgets, Origin, Peer};

/// The connections of a transport. When there are too many, the oldest that has made no valid call is closed.
pub(super) struct Connections {
    state: Mutex<State>,
    options: Options,
    budgets: Arc<Budgets>,
}

#[derive(Default)]
struct State {
    arrivals: u64,
    served: HashMap<u64, Served>,
    /// How many connections each peer has, and its portions.
    peers: HashMap<Origin, (usize, Arc<Peer>)>,
    /// Connections without a valid call, in the order of arrival.
    unproven: BTreeSet<u64>,
}

/// A connection that is served.
struct Served {
    origin: Origin,
    line: Arc<Line>,
    mark: Mark,
}

/// A connection, counted until this is dropped or another has taken its place.
pub(super) struct Connected {
    connections: Arc<Connections>,
    number: u64,
    is_proven: AtomicBool,
    line: Arc<Line>,
    /// The names in the certificate that the peer showed.
    pub(super) names: Names,
}

impl Connections {
    pub(super) fn new(options: Options, budgets: Arc<Budgets>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            options,
            budgets,
        })
    }

    /// Counts a new connection. When there are too many, another one is told to end; `None` if all others have made valid
    /// calls.
    pub(super) fn take(self: &Arc<Self>, origin: Origin) -> Option<Connected> {
        let mut state = self.state.lock();
        if state.of_peer(origin) >= self.options.peer_connections {
            state.evict(|other| other == origin).then_some(())?;
        }
        if state.served.len() >= self.options.connections {
            state.evict(|_| true).then_some(())?;
        }
        let peer = state.peers.get(&origin).map(|(_, peer)| Arc::clone(peer));
        let peer = peer.unwrap_or_else(|| self.budgets.peer());
        let line = Arc::new(Line::new(&peer, &self.options));
        let mark = Mark::new(&line, self.options.full_stall_timeout);
        Some(Connected {
            connections: Arc::clone(self),
            number: state.enter(origin, &line, mark),
            is_proven: AtomicBool::new(false),
            line,
            names: None,
        })
    }

    /// Tells the oldest connection without a valid call to end. Returns whether there was one.
    pub(super) fn evict(&self) -> bool {
        self.state.lock().evict(|_| true)
    }

    /// Tells connections to end that do not read while their peer holds as many replies as it may: all of its calls are
    /// refused meanwhile. To be called often.
    pub(super) fn evict_stalled(&self) {
        let patience = self.options.full_stall_timeout;
        for served in self.state.lock().served.values_mut() {
            failpoints::hit(Point::StalledTask);
            if served.mark.is_missed(&served.line, patience) {
                served.line.leave.notify_one();
            }
        }
    }

    pub(super) fn taken(&self) -> usize {
        self.state.lock().served.len()
    }
}

impl State {
    fn of_peer(&self, origin: Origin) -> usize {
        self.peers.get(&origin).map_or(0, |(count, _)| *count)
    }

    fn enter(&mut self, origin: Origin, line: &Arc<Line>, mark: Mark) -> u64 {
        self.arrivals += 1;
        let of_peer = || (0, Arc::clone(&line.peer));
        self.peers.entry(origin).or_insert_with(of_peer).0 += 1;
        self.unproven.insert(self.arrivals);
        let line = Arc::clone(line);
        let served = Served { origin, line, mark };
        self.served.insert(self.arrivals, served);
        self.arrivals
    }

    fn evict(&mut self, may_go: impl Fn(Origin) -> bool) -> bool {
        let mut unproven = self.unproven.iter();
        let oldest = unproven.find(|number| may_go(self.served[number].origin));
        let Some(&number) = oldest else {
            return false;
        };
        self.served[&number].line.leave.notify_one();
        self.leave(number);
        true
    }

    /// Counts a connection no more.
    fn leave(&mut self, number: u64) {
        self.unproven.remove(&number);
        let Some(Served { origin, .. }) = self.served.remove(&number) else {
            return;
        };
        if let Entry::Occupied(mut peer) = self.peers.entry(origin) {
            peer.get_mut().0 -= 1;
            if peer.get().0 == 0 {
                peer.remove();
            }
        }
    }
}

impl Connected {
    pub(super) fn line(&self) -> &Line {
        &self.line
    }

    /// Notes that it has made a valid call. It is not closed for a new connection any more.
    pub(super) fn prove(&self) {
        if !self.is_proven.swap(true, Ordering::Relaxed) {
            let mut state = self.connections.state.lock();
            state.unproven.remove(&self.number);
        }
    }

    /// Waits until another connection has taken its place, or until it must end because it blocks its peer by not reading.
    pub(super) async fn until_evicted(&self) {
        self.line.leave.notified().await;
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.connections.state.lock().leave(self.number);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    fn connections(connections: usize, peer_connections: usize) -> Arc<Connections> {
        let options = Options {
            connections,
            peer_connections,
            ..Options::default()
        };
        let budgets = Arc::new(Budgets::new(&options));
        Connections::new(options, budgets)
    }

    const A: Origin = Origin::Process(1, 1);
    const B: Origin = Origin::Process(1, 2);

    fn is_told_to_end(connected: &Connected) -> bool {
        !connected
            .connections
            .state
            .lock()
            .served
            .contains_key(&connected.number)
    }

    #[test]
    fn the_oldest_without_a_valid_call_makes_way() {
        let connections = connections(3, 3);
        let [first, second, third] = [(); 3].map(|()| connections.take(A).unwrap());
        first.prove();

        let fourth = connections.take(B).unwrap();

        let told = [&first, &second, &third, &fourth].map(is_told_to_end);
        assert_eq!(
            (told, connections.taken()),
            ([false, true, false, false], 3)
        );
    }

    #[test]
    fn none_is_taken_where_all_have_made_valid_calls() {
        let connections = connections(2, 2);
        let held = [(); 2].map(|()| connections.take(A).unwrap());
        held.iter().for_each(Connected::prove);

        assert!(connections.take(B).is_none());
        drop(held);
        assert!(connections.take(B).is_some());
        assert_eq!(connections.taken(), 0);
    }

    #[test]
    fn a_peer_at_its_bound_takes_no_place_of_others() {
        let connections = connections(10, 2);
        let other = connections.take(B).unwrap();
        let held = [(); 2].map(|()| connections.take(A).unwrap());

        let next = connections.take(A).unwrap();

        assert_eq!(
            [&other, &held[0], &held[1]].map(is_told_to_end),
            [false, true, false]
        );
        [&held[1], &next].into_iter().for_each(Connected::prove);
        assert!(connections.take(A).is_none());
        assert!(connections.take(B).is_some());
    }
}
