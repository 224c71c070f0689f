//! Admission of calls: each takes a place. If none is free, it waits for one, or for its turn to be refused.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::pace::{Pace, Turn};

/// Hands out places in the order in which they were asked for.
pub(super) struct Admission {
    places: Arc<Semaphore>,
    pace: Pace,
}

/// Places that are taken, until this is dropped.
pub(super) struct Places(Option<OwnedSemaphorePermit>);

impl Places {
    /// One of them; `None` where there is none left.
    pub(super) fn one(&mut self) -> Option<Self> {
        Some(Self(Some(self.0.as_mut()?.split(1)?)))
    }
}

impl Admission {
    pub(super) fn new(places: usize, refusal_interval: Duration) -> Self {
        Self {
            places: Arc::new(Semaphore::new(places)),
            pace: Pace::new(refusal_interval),
        }
    }

    /// A place, if one is free and nobody waits for it.
    pub(super) fn place(&self) -> Option<Places> {
        let permit = Arc::clone(&self.places).try_acquire_owned();
        Some(Places(Some(permit.ok()?)))
    }

    /// A place. Waits for it in order of arrival.
    pub(super) async fn wait(&self) -> Places {
        // They are never closed.
        Places(Arc::clone(&self.places).acquire_owned().await.ok())
    }

    /// A number of places, or a turn to refuse as many calls, whichever comes first.
    pub(super) async fn places_or_turn(&self, count: u32) -> Result<Places, Turn<'_>> {
        let places = Arc::clone(&self.places).acquire_many_owned(count);
        tokio::select! {
            biased;
            turn = self.pace.turn() => Err(turn),
            // They are never closed.
            permit = places => Ok(Places(permit.ok())),
        }
    }
}
