//! Callers: remembered by a keyed digest of their credentials, so that each is identified once.

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

/// The identified callers. They are looked up by a digest that nobody outside can compute, so that the time of a lookup
/// says nothing of the credentials of others.
pub(super) struct Identities<H: Handler> {
    digests: Fingerprints,
    known: Mutex<Known<H::Caller>>,
}

struct Known<Caller> {
    callers: FingerprintMap<Fingerprint, Arc<Caller>>,
    /// How often all were forgotten.
    forgotten: u64,
}

impl<H: Handler> Identities<H> {
    pub(super) fn new() -> Self {
        Self {
            digests: Fingerprints::default(),
            known: Mutex::new(Known {
                callers: FingerprintMap::default(),
                forgotten: 0,
            }),
        }
    }

    /// The caller of a call, remembered or identified by the handler; `internal` if that panics.
    pub(super) fn caller(
        &self,
        credentials: &Credentials<'_>,
        handler: &H,
        internal: &Status,
    ) -> Result<Arc<H::Caller>, Status> {
        let digest = self.digests.of_parts((
            credentials.authorization,
            credentials.tenant,
            credentials.names,
        ));
        let forgotten = {
            let known = self.known.lock();
            if let Some(caller) = known.callers.get(&digest) {
                return Ok(Arc::clone(caller));
            }
            known.forgotten
        };
        let told = caught(|| {
            failpoints::hit(Point::Identifying);
            handler.identify(credentials)
        });
        let caller = Arc::new(told.unwrap_or_else(|_| Err(internal.clone()))?);
        let mut known = self.known.lock();
        if known.callers.len() >= REMEMBERED {
            known.callers.clear();
        }
        // If the files changed meanwhile, the caller is identified again at its next call.
        if known.forgotten == forgotten {
            known.callers.insert(digest, Arc::clone(&caller));
        }
        Ok(caller)
    }

    /// Has every caller identified again.
    pub(super) fn forget(&self) {
        let mut known = self.known.lock();
        known.forgotten += 1;
        known.callers.clear();
    }
}
