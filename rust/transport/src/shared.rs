//! What the connections and calls of a transport share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::admission::Admission;
use super::connections::Connections;
use super::handler::{Answering, Handler, Larger, Refusals};
use super::health::Health;
use super::held::Held;
use super::identities::Identities;
use super::meter::Meters;
use super::options::Options;
use super::page::Pages;
use super::peer::Budgets;
use super::pool::Pool;
use super::quick::Quick;
use super::status::Status;
use super::tls::Tls;

/// How long connections without calls get to say goodbye, and streams that do not end to say why.
pub(super) const FAREWELL: Duration = Duration::from_millis(500);

/// What connections and calls share.
pub(super) struct Shared<H: Handler> {
    pub(super) options: Options,
    pub(super) handler: H,
    pub(super) methods: HashMap<String, (usize, Answering)>,
    /// The methods that receive more than others.
    pub(super) larger: HashMap<usize, Larger>,
    pub(super) refusals: Refusals,
    pub(super) meters: Arc<Meters>,
    /// What TCP ports serve beside calls.
    pub(super) pages: Option<Arc<dyn Pages>>,
    /// What TCP ports speak below HTTP/2.
    pub(super) tls: Option<Arc<Tls>>,
    pub(super) identities: Identities<H>,
    pub(super) health: Arc<Health>,
    pub(super) held: Arc<Held>,
    pub(super) quick: Quick<H>,
    pub(super) pool: Arc<Pool<H>>,
    /// Calls that are being answered, or wait for it.
    pub(super) admission: Admission,
    pub(super) budgets: Arc<Budgets>,
    pub(super) connections: Arc<Connections>,
    pub(super) stopping: watch::Sender<Option<Duration>>,
}

impl<H: Handler> Shared<H> {
    /// Counts a call that is refused before anything is done.
    pub(super) fn refused(&self, path: &str, status: &Status) {
        let method = self.methods.get(path).map(|(number, _)| *number);
        self.meters.refused(method, status.code);
    }
}
