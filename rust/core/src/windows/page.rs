//! Pages of messages: which a reader selects, and what of them is in memory.

use bytes::{BufMut, Bytes};
use remora_wire as wire;
use remora_wire::Between;

use super::messages::{Entry, Messages};

/// Which messages a page holds. Times and sequences are exclusive.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Only this user's.
    pub user: String,
    /// Only these roles; none: all.
    pub roles: Vec<String>,
    /// By the callers' clocks; a message without a time of its own was sent when it was received.
    pub sent: Between,
    /// When the messages were first stored.
    pub received: Between,
    pub after_sequence: Option<u64>,
    pub before_sequence: Option<u64>,
    /// Only messages from the first sequence on, and the one with the second, which is before it or 0.
    pub window: (u64, u64),
    /// Whether the newest are selected, or the oldest.
    pub newest: bool,
    /// How many at most.
    pub limit: usize,
    /// Bytes of the page's entries at most, those in memory counted; the first selected is never left out.
    pub max_bytes: usize,
}

/// The selected messages, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The uid of the conversation; 0 if there is none.
    pub uid: u64,
    /// The page shows everything up to this revision at least.
    pub revision: u64,
    /// Those in memory: the newest of the selected.
    pub bodies: Vec<Bytes>,
    /// How many are selected, the missing ones included.
    pub count: usize,
    /// The sequences of the first and the last selected; 0 if there is none.
    pub first_sequence: u64,
    pub last_sequence: u64,
    /// Sum of their token counts.
    pub tokens: i64,
    /// Whether more pass on the far side.
    pub more: bool,
    /// The selected ones that are not in `bodies`, ascending; all are older than those.
    pub missing: Vec<u64>,
    /// The database has the missing ones once it has this revision. It may not yet: one that was replaced just now, and
    /// is older than one whose body is gone, is missing as well.
    pub missing_revision: u64,
}

impl Page {
    /// Bytes of the entries in memory.
    pub fn encoded_len(&self) -> usize {
        wire::entries_len(self.bodies.iter().map(Bytes::as_ref))
    }

    /// Writes the entries in memory as field 1 of a reply.
    pub fn encode(&self, buffer: impl BufMut) {
        wire::put_entries(self.bodies.iter().map(Bytes::as_ref), buffer);
    }
}

/// A selection in the numbers of one conversation.
struct Filter<'a> {
    selection: &'a Selection,
    user: u32,
    roles: Vec<u32>,
}

impl<'a> Filter<'a> {
    /// `None` if nothing can pass.
    fn new(selection: &'a Selection, messages: &Messages) -> Option<Self> {
        let user = messages.users.find(&selection.user)?;
        let numbers = selection.roles.iter();
        let roles: Vec<u32> = numbers
            .filter_map(|role| messages.roles.find(role))
            .collect();
        let passes = selection.roles.is_empty() || !roles.is_empty();
        passes.then_some(Self {
            selection,
            user,
            roles,
        })
    }

    fn passes(&self, entry: &Entry) -> bool {
        entry.user == self.user
            && (self.roles.is_empty() || self.roles.contains(&entry.role))
            && self.selection.sent.contains(entry.sent_time)
            && self.selection.received.contains(entry.create_time)
            && self.is_in_window(entry.sequence)
    }

    fn is_in_window(&self, sequence: u64) -> bool {
        let (first, other) = self.selection.window;
        sequence >= first || sequence == other
    }
}

/// The page of a selection as a reader sees it; `uid` and `revision` are left to the caller.
pub(super) fn select(messages: &Messages, selection: &Selection, published: u64) -> Page {
    let least = match selection.window {
        (first, 0) => first,
        (_, other) => other,
    };
    let first = selection.after_sequence.map_or(0, |s| s.saturating_add(1));
    let first = first.max(least);
    let end = selection.before_sequence.unwrap_or(u64::MAX);
    let Some(filter) = Filter::new(selection, messages) else {
        return Page::default();
    };
    let passing = messages
        .visible(first, end, published)
        .filter(|entry| filter.passes(entry));
    if !selection.newest {
        let (picked, more) = fitting(passing, selection);
        return page(&picked, more);
    }
    let (mut picked, more) = fitting(passing.rev(), selection);
    picked.reverse();
    page(&picked, more)
}

/// The first that fit, and whether others follow.
fn fitting<'a>(
    passing: impl Iterator<Item = &'a Entry>,
    selection: &Selection,
) -> (Vec<&'a Entry>, bool) {
    let limits = wire::Limits {
        items: selection.limit,
        bytes: selection.max_bytes,
    };
    limits.fitting(passing, |entry| entry.body.as_deref().map(Bytes::as_ref))
}

fn page(picked: &[&Entry], more: bool) -> Page {
    let last_missing = picked.iter().rposition(|entry| entry.body.is_none());
    let (missing, held) = picked.split_at(last_missing.map_or(0, |index| index + 1));
    let sequence = |entry: &&Entry| entry.sequence;
    Page {
        bodies: held
            .iter()
            .filter_map(|e| e.body.as_deref().cloned())
            .collect(),
        count: picked.len(),
        first_sequence: picked.first().map_or(0, sequence),
        last_sequence: picked.last().map_or(0, sequence),
        tokens: picked.iter().map(|e| i64::from(e.token_count)).sum(),
        more,
        missing: missing.iter().map(sequence).collect(),
        missing_revision: missing.iter().map(|e| e.added).max().unwrap_or(0),
        ..Page::default()
    }
}
