//! The connections that are served: how many there may be, of one peer and of all, and which of them goes for another.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// An address; of IPv6 the network (/64), within which a host chooses addresses freely.
    Network(IpAddr),
    /// A process of this machine: its user, and its id as this process sees it, else 0.
    Process(u32, i32),
}

impl Origin {
    pub(super) fn of_address(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            address => address,
        })
    }
}

/// The connections of a transport. When there are too many, the oldest that has made no valid call is closed.
pub(super) struct Connections {
    state: Mutex<State>,
    bound: usize,
    peer_bound: usize,
}

#[derive(Default)]
struct State {
    arrivals: u64,
    origins: HashMap<u64, Origin>,
    of_peers: HashMap<Origin, usize>,
    /// Connections without a valid call, in the order of arrival, and what tells each to end.
    unproven: BTreeMap<u64, Arc<Notify>>,
}

/// A connection, counted until this is dropped or another has taken its place.
pub(super) struct Connected {
    connections: Arc<Connections>,
    number: u64,
    is_proven: AtomicBool,
    leave: Arc<Notify>,
}

impl Connections {
    pub(super) fn new(bound: usize, peer_bound: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            bound,
            peer_bound,
        })
    }

    /// Counts a new connection. When there are too many, another one is told to end; `None` if all others have made valid
    /// calls.
    pub(super) fn take(self: &Arc<Self>, origin: Origin) -> Option<Connected> {
        let mut state = self.state.lock();
        if state.of_peer(origin) >= self.peer_bound {
            state.evict(|other| other == origin).then_some(())?;
        }
        if state.origins.len() >= self.bound {
            state.evict(|_| true).then_some(())?;
        }
        let leave = Arc::new(Notify::new());
        Some(Connected {
            number: state.enter(origin, &leave),
            connections: Arc::clone(self),
            is_proven: AtomicBool::new(false),
            leave,
        })
    }

    /// Tells the oldest connection without a valid call to end; whether there was one.
    pub(super) fn evict(&self) -> bool {
        self.state.lock().evict(|_| true)
    }

    pub(super) fn taken(&self) -> usize {
        self.state.lock().origins.len()
    }
}

impl State {
    fn of_peer(&self, origin: Origin) -> usize {
        self.of_peers.get(&origin).copied().unwrap_or(0)
    }

    fn enter(&mut self, origin: Origin, leave: &Arc<Notify>) -> u64 {
        self.arrivals += 1;
        self.origins.insert(self.arrivals, origin);
        *self.of_peers.entry(origin).or_default() += 1;
        self.unproven.insert(self.arrivals, Arc::clone(leave));
        self.arrivals
    }

    fn evict(&mut self, may_go: impl Fn(Origin) -> bool) -> bool {
        let mut unproven = self.unproven.iter();
        let oldest = unproven.find(|(number, _)| may_go(self.origins[number]));
        let Some((&number, leave)) = oldest else {
            return false;
        };
        leave.notify_one();
        self.leave(number);
        true
    }

    /// Counts a connection no more.
    fn leave(&mut self, number: u64) {
        self.unproven.remove(&number);
        let Some(origin) = self.origins.remove(&number) else {
            return;
        };
        let left = self.of_peer(origin) - 1;
        if left == 0 {
            self.of_peers.remove(&origin);
        } else {
            self.of_peers.insert(origin, left);
        }
    }
}

impl Connected {
    /// It has made a valid call, and is not closed for another.
    pub(super) fn prove(&self) {
        if !self.is_proven.swap(true, Ordering::Relaxed) {
            let mut state = self.connections.state.lock();
            state.unproven.remove(&self.number);
        }
    }

    /// Waits until another connection has taken its place.
    pub(super) async fn until_evicted(&self) {
        self.leave.notified().await;
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

    const A: Origin = Origin::Process(1, 1);
    const B: Origin = Origin::Process(1, 2);

    fn is_told_to_end(connected: &Connected) -> bool {
        !connected
            .connections
            .state
            .lock()
            .origins
            .contains_key(&connected.number)
    }

    #[test]
    fn the_oldest_without_a_valid_call_makes_way() {
        let connections = Connections::new(3, 3);
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
        let connections = Connections::new(2, 2);
        let held = [(); 2].map(|()| connections.take(A).unwrap());
        held.iter().for_each(Connected::prove);

        assert!(connections.take(B).is_none());
        drop(held);
        assert!(connections.take(B).is_some());
        assert_eq!(connections.taken(), 0);
    }

    #[test]
    fn a_peer_at_its_bound_takes_no_place_of_others() {
        let connections = Connections::new(10, 2);
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

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let of = |text: &str| Origin::of_address(text.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
