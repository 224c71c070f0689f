//! A write goes to the journal, and under its lock to everything in memory, so that memory and disk agree.
//!
//! Locks. `Journal::submit_with` runs `apply` under the queue's lock. Within it, the locks of `backlog`, `requests`,
//! `records`, `windows`, `recall`, `vectors` and `items` are held for microseconds each, and those of one of them at a time.
//! None of them is held while the journal is called, or during a sync. A record is checked before it is submitted, so that applying
//! an accepted record cannot fail. If it panics all the same, memory is *torn*: nothing more is accepted, nothing in memory
//! is shown, and the next start reads the journal.

mod backlog;
mod follow;
mod plan;
mod requests;
#[cfg(test)]
mod tests;
mod unapplied;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use remora_items::Items;
use remora_journal::{Journal, JournalError, Note, Options, Recovery, Waited};
use remora_kernels::Kernels;
use remora_recall::Recall;
use remora_supervision::failpoints::{self, Point};
use remora_vectors::Vectors;

pub use plan::InvalidRecord;
pub use requests::Known;
pub use unapplied::{FollowError, Unapplied};

use crate::records::{Kinds, Records};
use crate::windows::{Bounds, Windows};
use backlog::Backlog;
use plan::Plan;
use requests::{Claim, Requests};

/// How a core is opened.
#[derive(Clone, Debug)]
pub struct Settings {
    pub journal: Options,
    /// The kinds of records by key.
    pub kinds: Kinds,
    /// Bytes of records by key.
    pub record_bytes: usize,
    pub windows: Bounds,
    /// Bytes of what recall holds.
    pub recall_bytes: usize,
    /// Bytes of the vectors of collections.
    pub vector_bytes: usize,
    /// What vectors are compared with.
    pub kernels: &'static Kernels,
    /// How many request ids are remembered.
    pub request_ids: usize,
    /// Bytes of records that the database may be behind before commits wait for it.
    pub backlog_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            journal: Options::default(),
            kinds: Kinds::default(),
            record_bytes: 64 << 20,
            windows: Bounds::default(),
            recall_bytes: 256 << 20,
            vector_bytes: 256 << 20,
            kernels: Kernels::best(),
            request_ids: 1_000_000,
            backlog_bytes: 32 << 20,
        }
    }
}

/// Why a record was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    #[error(transparent)]
    Invalid(#[from] InvalidRecord),
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The database stayed too far behind for as long as a commit waits for it.
    #[error("the database is too far behind the journal")]
    Behind,
}

/// The result of committing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It is accepted with this revision.
    New(u64),
    /// Its request was committed before; nothing was written.
    Known(Known),
}

/// The journal and what follows it in memory.
pub struct Core {
    journal: Journal,
    recovery: Recovery,
    /// When it was opened.
    opened: Instant,
    backlog: Backlog,
    requests: Requests,
    records: Records,
    windows: Windows,
    recall: Recall,
    vectors: Vectors,
    items: Items,
    /// Whether a panic may have left half of a change in memory.
    is_torn: AtomicBool,
}

/// A panic may have left half of a change in memory: nothing of it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a panic may have left half of a change in memory: restart the server")]
pub struct Torn;

impl Core {
    /// Opens the journal in `directory`; without one, a journal in memory. Nothing is resident: what the journal holds
    /// beyond `settings.journal.applied_revision` must be applied to the database and marked so, or followed
    /// (`follow_unapplied`), before anything is loaded.
    pub fn open(directory: Option<&Path>, settings: &Settings) -> Result<Self, JournalError> {
        let (journal, recovery) = match directory {
            Some(directory) => Journal::open(directory, settings.journal.clone())?,
            None => (Journal::volatile(), no_recovery(&settings.journal)),
        };
        let windows = Windows::new(settings.windows.clone(), settings.journal.applied_revision);
        let records = Records::new(
            settings.kinds.clone(),
            settings.record_bytes,
            settings.journal.applied_revision,
        );
        Ok(Self {
            windows,
            records,
            recall: Recall::new(settings.kernels, settings.recall_bytes),
            vectors: Vectors::new(settings.kernels, settings.vector_bytes),
            items: Items::new(settings.kernels, settings.vector_bytes),
            opened: Instant::now(),
            backlog: Backlog::new(settings.backlog_bytes),
            requests: Requests::new(settings.request_ids),
            is_torn: AtomicBool::new(false),
            journal,
            recovery,
        })
    }

    /// What was found when the journal was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Works on the records in memory. Where that panics within a change, memory is torn and the journal ends.
    pub fn with_records<T>(&self, work: impl FnOnce(&Records) -> T) -> Result<T, Torn> {
        self.require_whole()?;
        let done = catch_unwind(AssertUnwindSafe(|| work(&self.records)));
        Ok(done.unwrap_or_else(|panic| {
            if self.records.is_torn() {
                self.tear();
            }
            resume_unwind(panic)
        }))
    }

    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    pub fn recall(&self) -> &Recall {
        &self.recall
    }

    pub fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Accepts an encoded record and applies it in memory, where writers see it at once, readers when it is published.
    ///
    /// Waits while the journal's queue is full, and for another commit of the same request, for at most `patience`
    /// (`None`: without end); then fails with `JournalError::Busy`. Waits no longer, and two seconds at most, while the
    /// database is too far behind; then fails with `Behind`.
    pub fn commit(
        &self,
        record: Bytes,
        patience: Option<Duration>,
    ) -> Result<Committed, CommitError> {
        let deadline = patience.and_then(|patience| Instant::now().checked_add(patience));
        failpoints::hit(Point::CorePlanning);
        let plan = Plan::read(
            record.clone(),
            self.records.kinds(),
            self.windows.fingerprints(),
            self.now(),
        )?;
        let Some(request) = plan.request else {
            let revision = self.submit(record, deadline, |revision| self.apply(plan, revision))?;
            return Ok(Committed::New(revision));
        };
        let _reservation = match self.requests.claim(&request, deadline) {
            Claim::Known(known) => return Ok(Committed::Known(known)),
            Claim::TimedOut => return Err(JournalError::Busy.into()),
            Claim::Reserved(reservation) => reservation,
        };
        let revision = self.submit(record, deadline, |revision| {
            self.requests.remember(&request, revision);
            self.apply(plan, revision);
        })?;
        Ok(Committed::New(revision))
    }

    /// Fails if a panic may have left half of a change in memory. To be asked before memory is read or changed.
    pub fn require_whole(&self) -> Result<(), Torn> {
        match self.is_torn.load(Ordering::Acquire) {
            true => Err(Torn),
            false => Ok(()),
        }
    }

    /// Runs what changes memory outside of the journal's lock. Where it panics, memory is torn and the journal ends.
    fn changing<T>(&self, change: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(change)).unwrap_or_else(|panic| {
            self.tear();
            resume_unwind(panic)
        })
    }

    fn tear(&self) {
        self.is_torn.store(true, Ordering::Release);
        self.journal.end_by_panic();
    }

    /// Microseconds since the core was opened, by a clock that nobody sets.
    fn now(&self) -> i64 {
        self.opened.elapsed().as_micros() as i64
    }

    fn submit(
        &self,
        record: Bytes,
        deadline: Option<Instant>,
        accept: impl FnOnce(u64),
    ) -> Result<u64, CommitError> {
        if !self.backlog.wait_for_room(deadline) {
            return Err(CommitError::Behind);
        }
        let bytes = record.len();
        let accept = |revision| {
            let _whole = TornWherePanicked(self);
            self.backlog.add(revision, bytes);
            accept(revision);
        };
        let submitted = match deadline {
            None => self.journal.submit_with(record, accept),
            Some(deadline) => {
                let patience = deadline.saturating_duration_since(Instant::now());
                self.journal.submit_within(patience, record, accept)
            }
        };
        Ok(submitted?)
    }

    fn apply(&self, plan: Plan, revision: u64) {
        for change in plan.records {
            let published = self.journal.published();
            let searched = change.searched();
            // First the records: a load of vectors that begins after this waits for the revision that they were touched at.
            self.records
                .apply(&plan.tenant, change, revision, published);
            for change in searched {
                let searches = (&self.vectors, &self.items);
                follow::deliver_searched(searches, &plan.tenant, change, revision);
            }
        }
        for mut run in plan.runs {
            run.seal(revision);
            self.windows.apply(&run, revision, self.journal.published());
            failpoints::hit(Point::CoreApplying);
            follow::deliver(&self.recall, &plan.tenant, run, revision);
        }
    }

    /// Waits until a revision is published, for at most `timeout`; whether it is.
    pub fn wait(&self, revision: u64, timeout: Option<Duration>) -> Result<bool, JournalError> {
        Ok(self.journal.wait(revision, timeout)? == Waited::Published)
    }

    /// The first commit of a request, and whether its fingerprint is the same.
    pub fn find_request(&self, tenant: &str, id: &str, fingerprint: [u8; 16]) -> Option<Known> {
        let key = self.windows.fingerprints().of([tenant, id]);
        self.requests.find(key, fingerprint)
    }

    /// Takes in a request from the database, made so long ago; in the order of revisions. It is known with all others when
    /// the load ends.
    pub fn load_request(
        &self,
        tenant: &str,
        id: &str,
        fingerprint: [u8; 16],
        revision: u64,
        age: Duration,
    ) {
        let request = requests::Request {
            key: self.windows.fingerprints().of([tenant, id]),
            fingerprint,
            time: self.now() - age.as_micros() as i64,
        };
        self.requests.load(&request, revision);
    }

    /// The database has no request that was not loaded, or committed since the start.
    pub fn end_load_of_requests(&self) {
        self.requests.end_load();
    }

    /// Whether what is not found was not committed lately; before the load ends, the database may know better.
    pub fn has_loaded_requests(&self) -> bool {
        self.requests.is_loaded()
    }

    /// The revision of the oldest request that is remembered; `None` if there is none, or the load has not ended.
    pub fn oldest_request(&self) -> Option<u64> {
        self.requests.oldest()
    }

    /// Whether commits wait because the database is too far behind.
    pub fn is_behind(&self) -> bool {
        self.backlog.is_full()
    }

    /// Says that the database has everything up to `revision`: nothing of it need stay in memory. Where it has it for
    /// good, the journal is to be told so, too.
    pub fn mark_applied(&self, revision: u64) {
        self.changing(|| self.mark_whole_applied(revision));
    }

    fn mark_whole_applied(&self, revision: u64) {
        self.backlog.applied(revision);
        failpoints::hit(Point::CoreApplied);
        self.journal.forget(revision);
        let published = self.journal.published();
        self.records.mark_applied(revision, published);
        self.windows.mark_applied(revision, published);
        self.vectors.settle(published);
        self.items.settle(published);
    }
}

/// Says that memory is torn where it is dropped by a panic; the journal's queue, whose lock is held, ends itself.
struct TornWherePanicked<'a>(&'a Core);

impl Drop for TornWherePanicked<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.is_torn.store(true, Ordering::Release);
        }
    }
}

fn no_recovery(options: &Options) -> Recovery {
    Recovery {
        store_id: options.store_id.unwrap_or_default(),
        first_revision: 1,
        last_revision: 0,
        segments: 0,
        bytes: 0,
        cut: None,
        note: Note::Absent,
    }
}
