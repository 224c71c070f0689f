//! What the connections and calls of a transport share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::admission::Admission;
use super::budget::Budget;
use super::connections::Connections;
use super::handler::{Answering, Handler, Refusals};
use super::health::Health;
use super::held::Held;
use super::identities::Identities;
use super::options::Options;
use super::pool::Pool;
use super::quick::Quick;
use super::room::{Place, Room};

/// How long connections without calls get to say goodbye, and streams that do not end to say why.
pub(super) const FAREWELL: Duration = Duration::from_millis(500);

/// What connections and calls share.
pub(super) struct Shared<H: Handler> {
    pub(super) options: Options,
    pub(super) handler: H,
    pub(super) methods: HashMap<String, (usize, Answering)>,
    pub(super) refusals: Refusals,
    pub(super) identities: Identities<H>,
    pub(super) health: Arc<Health>,
    pub(super) held: Arc<Held>,
    pub(super) quick: Quick<H>,
    pub(super) pool: Arc<Pool<H>>,
    /// Calls that are being answered, or wait for it.
    pub(super) admission: Admission,
    /// Calls in any state.
    pub(super) open: Arc<Room>,
    /// Calls that are answered by streams.
    pub(super) flows: Arc<Room>,
    pub(super) connections: Arc<Connections>,
    pub(super) requests: Arc<Budget>,
    pub(super) replies: Arc<Budget>,
    /// Told when the replies of all have no more room.
    pub(super) pressure: Arc<Notify>,
    pub(super) stopping: watch::Sender<Option<Duration>>,
}

impl<H: Handler> Shared<H> {
    /// A place among the open calls, where there is one and room for what they hold.
    pub(super) fn open(&self) -> Option<Place> {
        if self.requests.is_spent() || self.replies.is_spent() {
            return None;
        }
        self.open.take()
    }
}
