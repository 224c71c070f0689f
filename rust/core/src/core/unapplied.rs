//! Records that are in the journal and not in the database. If the database has no room for them, a start follows them in
//! memory, and loads add them to the database's answers.

use std::collections::{BTreeMap, BTreeSet};

use remora_journal::JournalError;
use remora_recall::{Later, Op};

use super::Core;
use super::follow::Followed;
use super::plan::{InvalidRecord, Plan};
use crate::windows::{Run, StoredConversation, UnknownBodies};

/// Bytes of records that are read together.
const PAGE_BYTES: usize = 1 << 20;

/// What the journal holds cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("revision {revision}: {reason}")]
    Record {
        revision: u64,
        reason: InvalidRecord,
    },
    #[error(transparent)]
    Bodies(#[from] UnknownBodies),
}

/// The changes of a tenant's parts that the database lacks.
#[derive(Debug, Default)]
pub struct Unapplied {
    parts: BTreeMap<(String, u64), UnappliedPart>,
    /// Conversations that are deleted, with the revision of it.
    dropped: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct UnappliedPart {
    conversation_id: String,
    later: Later,
}

impl Core {
    /// Follows in memory what was published after `applied`, as the commits did; for a start, before any commit. `now` is
    /// what the wall clock shows, in microseconds since 1970. Returns how many records that were.
    pub fn follow_unapplied(&self, applied: u64, now: i64) -> Result<u64, FollowError> {
        let through = self.plans_after(applied, |revision, bytes, mut plan| {
            self.backlog.add(revision, bytes);
            if let Some(request) = &mut plan.request {
                let age = now.saturating_sub(plan.time).max(0);
                request.time = self.now().saturating_sub(age);
                self.requests.remember(request, revision);
            }
            self.apply(plan, revision);
        })?;
        Ok(through - applied)
    }

    /// Makes a conversation resident: see `Windows::load` and `Windows::admit`. `with_journal`: what the journal holds beyond
    /// `as_of` is added.
    pub fn load_conversation(
        &self,
        tenant: &str,
        id: &str,
        as_of: u64,
        stored: StoredConversation<'_>,
        with_journal: bool,
    ) -> Result<bool, FollowError> {
        let (through, later) = match with_journal {
            false => (as_of, Vec::new()),
            true => match self.runs_after(as_of, tenant, id) {
                // The database has them by now.
                Err(FollowError::Journal(JournalError::Released(_))) => return Ok(false),
                runs => runs?,
            },
        };
        let loaded = self.windows.load(tenant, id, through, stored, &later)?;
        Ok(self.changing(|| self.windows.admit(loaded)))
    }

    /// The changes of a conversation that were published after a revision, and up to which.
    fn runs_after(
        &self,
        after: u64,
        tenant: &str,
        id: &str,
    ) -> Result<(u64, Vec<(u64, Run)>), FollowError> {
        let key = self.windows.fingerprints().of([tenant, id]);
        let mut found = Vec::new();
        let through = self.plans_after(after, |revision, _, plan| {
            for mut run in plan.runs {
                if run.key == key {
                    run.seal(revision);
                    found.push((revision, run));
                }
            }
        })?;
        Ok((through, found))
    }

    /// What was published after a revision of a tenant's parts; `None` if the database has some of it by now.
    pub fn unapplied(&self, tenant: &str, after: u64) -> Result<Option<Unapplied>, FollowError> {
        let mut found = Unapplied::default();
        let read = self.plans_after(after, |revision, _, plan| {
            if plan.tenant == tenant {
                for mut run in plan.runs {
                    run.seal(revision);
                    found.take_in(run, revision);
                }
            }
        });
        match read {
            Err(FollowError::Journal(JournalError::Released(_))) => Ok(None),
            read => read.map(|_| Some(found)),
        }
    }

    /// Reads what was published after a revision: each record's revision, bytes and plan. Returns up to which revision.
    fn plans_after(
        &self,
        mut revision: u64,
        mut each: impl FnMut(u64, usize, Plan),
    ) -> Result<u64, FollowError> {
        loop {
            let records = self.journal.records_after(revision, PAGE_BYTES)?;
            if records.is_empty() {
                return Ok(revision);
            }
            for record in records {
                revision = record.revision;
                let bytes = record.payload.len();
                let plan = Plan::read(
                    record.payload,
                    self.records.kinds(),
                    self.windows.fingerprints(),
                    0,
                )
                .map_err(|reason| FollowError::Record { revision, reason })?;
                each(revision, bytes, plan);
            }
        }
    }
}

impl Unapplied {
    fn take_in(&mut self, run: Run, revision: u64) {
        for change in run.changes {
            match Followed::of(change.kind) {
                Followed::Nothing => {}
                Followed::Dropped => {
                    self.dropped.insert(change.uid, revision);
                }
                Followed::Part { user, op } => {
                    let part = self.parts.entry((user, change.uid));
                    let part = part.or_insert_with(|| UnappliedPart {
                        conversation_id: run.conversation_id.clone(),
                        later: Later::default(),
                    });
                    part.later.push(revision, op);
                }
            }
        }
    }

    /// Whose parts have changed.
    pub fn users(&self) -> BTreeSet<&str> {
        self.parts.keys().map(|(user, _)| user.as_str()).collect()
    }

    /// The uids of a user's changed parts, and their conversations' ids.
    pub fn parts(&self, user: &str) -> Vec<(u64, &str)> {
        let of_user = self.parts.iter().filter(|((owner, _), _)| owner == user);
        of_user
            .map(|((_, uid), part)| (*uid, part.conversation_id.as_str()))
            .collect()
    }

    /// What has changed of a part.
    pub fn later(&self, user: &str, uid: u64) -> Later {
        let part = self.parts.get(&(user.to_owned(), uid));
        let mut later = part.map(|part| part.later.clone()).unwrap_or_default();
        if let Some(revision) = self.dropped.get(&uid) {
            later.push(*revision, Op::RemoveAll);
        }
        later
    }
}
