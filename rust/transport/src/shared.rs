//! What the connections and calls of a transport share.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::admission::Admission;
use super::connections::Connections;
use super::handler::{Answering, Handler, Refusals};
use super::health::Health;
use super::held::Held;
use super::identities::Identities;
use super::options::Options;
use super::peer::Budgets;
use super::pool::Pool;
use super::quick::Quick;

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
    pub(super) budgets: Arc<Budgets>,
    pub(super) connections: Arc<Connections>,
    pub(super) stopping: watch::Sender<Option<Duration>>,
}
