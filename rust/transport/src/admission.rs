//! Admission of calls: each takes a slot. If none is free, it waits for one, or for its turn to be refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pace::{Pace, Turn};

/// Hands out slots in the order in which they were asked for.
pub(super) struct Admission {
    slots: Arc<Semaphore>,
    pace: Pace,
}

/// Slots that are taken, until this is dropped.
pub(super) struct Slots(Option<OwnedSemaphorePermit>);

impl Slots {
    /// One of them; `None` where there is none left.
    pub(super) fn one(&mut self) -> Option<Self> {
        Some(Self(Some(self.0.as_mut()?.split(1)?)))
    }
}

impl Admission {
    pub(super) fn new(slots: usize, refusal_interval: Duration) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(slots)),
            pace: Pace::new(refusal_interval),
        }
    }

    /// A slot, if one is free and nobody waits for it.
    pub(super) fn slot(&self) -> Option<Slots> {
        let permit = Arc::clone(&self.slots).try_acquire_owned();
        Some(Slots(Some(permit.ok()?)))
    }

    /// A slot. Waits for it in order of arrival.
    pub(super) async fn wait(&self) -> Slots {
        // They are never closed.
        Slots(Arc::clone(&self.slots).acquire_owned().await.ok())
    }

    /// A number of slots, or a turn to refuse as many calls, whichever comes first.
    pub(super) async fn slots_or_turn(&self, count: u32) -> Result<Slots, Turn<'_>> {
        let slots = Arc::clone(&self.slots).acquire_many_owned(count);
        tokio::select! {
            biased;
            turn = self.pace.turn() => Err(turn),
            // They are never closed.
            permit = slots => Ok(Slots(permit.ok())),
        }
    }
}
