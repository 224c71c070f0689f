//! Replies that are held until their revision is published.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use parking_lot::Mutex;
use remora_supervision::failpoints::{self, Point};
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::handler::Publication;

/// How often waiting replies are checked without a notification.
const LOOK: Duration = Duration::from_secs(1);

/// The revision will not be published.
pub(super) struct NotPublished;

/// The revision waited for, and the order of arrival.
type Ticket = (u64, u64);

/// Who waits for which revision. A publication wakes one task, once for all the replies that it completes.
pub(super) struct Held {
    publication: Arc<dyn Publication>,
    waiting: Mutex<Waiting>,
    /// Whether anybody waits for a change.
    anyone: AtomicBool,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    replies: BTreeMap<Ticket, oneshot::Sender<()>>,
    arrivals: u64,
}

impl Held {
    pub(super) fn new(publication: Arc<dyn Publication>) -> Arc<Self> {
        let held = Arc::new(Self {
            publication,
            waiting: Mutex::default(),
            anyone: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let follower = Arc::clone(&held);
        held.publication
            .follow(Arc::new(move || follower.publication_changed()));
        held
    }

    /// Called after each change. The fence orders the publication before the check for waiters. Its counterpart in `until`
    /// orders the two the other way round, so that one of the two sees the other.
    fn publication_changed(&self) {
        fence(Ordering::SeqCst);
        if self.anyone.load(Ordering::Relaxed) {
            self.changed.notify_one();
        }
    }

    /// Waits until a revision is published.
    pub(super) async fn until(&self, revision: u64) -> Result<(), NotPublished> {
        if self.publication.published() >= revision {
            return Ok(());
        }
        let (sender, receiver) = oneshot::channel();
        self.enter(revision, sender);
        fence(Ordering::SeqCst);
        if self.publication.published() >= revision {
            return Ok(());
        }
        if self.publication.has_ended() {
            return self.outcome(revision);
        }
        // An error means that the sender was dropped: nothing is published any more.
        let _ = receiver.await;
        self.outcome(revision)
    }

    fn enter(&self, revision: u64, sender: oneshot::Sender<()>) {
        let mut waiting = self.waiting.lock();
        let ticket = (revision, waiting.arrivals);
        waiting.arrivals += 1;
        waiting.replies.insert(ticket, sender);
        self.anyone.store(true, Ordering::Relaxed);
    }

    fn outcome(&self, revision: u64) -> Result<(), NotPublished> {
        match self.publication.published() >= revision {
            true => Ok(()),
            false => Err(NotPublished),
        }
    }

    /// Runs for good, and wakes waiters when their revision is published, or all when nothing more will be. It also checks
    /// at intervals, because the thread that notifies it may have panicked.
    pub(super) async fn run(&self) {
        loop {
            failpoints::hit(Point::HeldTask);
            for sender in self.completed() {
                // A waiter of a call that has ended is gone.
                let _ = sender.send(());
            }
            let _ = timeout(LOOK, self.changed.notified()).await;
        }
    }

    fn completed(&self) -> Vec<oneshot::Sender<()>> {
        let published = match self.publication.has_ended() {
            true => u64::MAX - 1,
            false => self.publication.published(),
        };
        let mut waiting = self.waiting.lock();
        let later = waiting.replies.split_off(&(published.saturating_add(1), 0));
        let completed = std::mem::replace(&mut waiting.replies, later);
        self.anyone
            .store(!waiting.replies.is_empty(), Ordering::Relaxed);
        completed.into_values().collect()
    }
}
