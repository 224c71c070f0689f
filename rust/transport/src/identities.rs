//! Who calls: remembered by a keyed digest of the credentials, so that each is told once.

use std::sync::Arc;

use parking_lot::Mutex;
use remora_fingerprint::{Fingerprint, FingerprintMap, Fingerprints};
use remora_supervision::caught;
use remora_supervision::failpoints::{self, Point};

use super::credentials::Credentials;
use super::handler::Handler;
use super::status::Status;

/// How many callers are remembered.
const REMEMBERED: usize = 4096;

/// The callers that were told. What is looked up is a digest that nobody outside can compute: how long that takes says
/// nothing of the credentials of others.
pub(super) struct Identities<H: Handler> {
    digests: Fingerprints,
    known: Mutex<FingerprintMap<Fingerprint, Arc<H::Caller>>>,
}

impl<H: Handler> Identities<H> {
    pub(super) fn new() -> Self {
        Self {
            digests: Fingerprints::default(),
            known: Mutex::default(),
        }
    }

    /// The caller of a call, remembered or told by the handler; `internal` where that panics.
    pub(super) fn caller(
        &self,
        credentials: &Credentials<'_>,
        handler: &H,
        internal: &Status,
    ) -> Result<Arc<H::Caller>, Status> {
        let digest = self
            .digests
            .of([credentials.authorization, credentials.tenant]);
        if let Some(caller) = self.known.lock().get(&digest) {
            return Ok(Arc::clone(caller));
        }
        let told = caught(|| {
            failpoints::hit(Point::Identifying);
            handler.identify(credentials)
        });
        let caller = Arc::new(told.unwrap_or_else(|_| Err(internal.clone()))?);
        let mut known = self.known.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(digest, Arc::clone(&caller));
        Ok(caller)
    }
}
