//! Peers: where connections come from, and what a peer holds with all of its connections together.

use std::net::IpAddr;
use std::sync::Arc;

use super::budget::{Budget, Portion};
use super::options::Options;

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// An address; of IPv6 the network (/64), within which a host chooses addresses freely.
    Network(IpAddr),
    /// A process of this machine: its user, and its id as this process sees it, or 0.
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

/// The bounds of what all peers together hold.
pub(super) struct Budgets {
    /// Bytes of replies that were not taken.
    pub(super) replies: Arc<Budget>,
    /// Bytes of requests that were not answered.
    pub(super) requests: Arc<Budget>,
    /// Calls in any state.
    pub(super) calls: Arc<Budget>,
    /// Calls that are answered by streams.
    pub(super) flows: Arc<Budget>,
    /// Calls that watch the health of a service.
    pub(super) watches: Arc<Budget>,
}

/// What the connections of one origin hold.
pub(super) struct Peer {
    pub(super) replies: Arc<Portion>,
    pub(super) requests: Arc<Portion>,
    pub(super) calls: Arc<Portion>,
    pub(super) flows: Arc<Portion>,
    pub(super) watches: Arc<Portion>,
}

impl Budgets {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            replies: Budget::new(options.reply_bytes),
            requests: Budget::new(options.request_bytes),
            calls: Budget::new(options.open_calls),
            flows: Budget::new(options.flows),
            watches: Budget::new(options.watches),
        }
    }

    /// A peer that holds nothing yet.
    pub(super) fn peer(&self) -> Arc<Peer> {
        Arc::new(Peer {
            replies: Portion::of(&self.replies),
            requests: Portion::of(&self.requests),
            calls: Portion::of(&self.calls),
            flows: Portion::of(&self.flows),
            watches: Portion::of(&self.watches),
        })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_peer() {
        let of = |text: &str| Origin::of_address(text.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
