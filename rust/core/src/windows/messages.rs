//! The messages of one conversation: what is known of each, and the bodies of the newest.
//!
//! A message that is replaced or removed stays as long as a reader may see it, that is until the change is published. All
//! messages keep their metadata; bodies go, the oldest first, once they are applied and the bounds are passed.

use std::collections::VecDeque;

use bytes::Bytes;
use remora_fingerprint::Fingerprint;

use super::Bounds;
use super::ids::Ids;
use super::names::Names;

/// The end of what is not removed.
const NEVER: u64 = u64::MAX;

/// Where there is no room for another message, there will be for so many, or a quarter of those that are there.
const LEAST_ROOM: usize = 4;

/// One version of a message: what readers see from revision `added` until `removed`. There are far more without a body
/// than with one, so that a body is held at the price of one pointer.
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) added: u64,
    removed: u64,
    pub(super) create_time: i64,
    pub(super) sent_time: i64,
    id: Fingerprint,
    pub(super) user: u32,
    pub(super) role: u32,
    pub(super) token_count: i32,
    pub(super) may_use_tools: bool,
    /// The message as it is served; `None` if only the database has it.
    pub(super) body: Option<Box<Bytes>>,
}

/// A message to put.
pub(super) struct NewMessage<'a> {
    pub(super) sequence: u64,
    pub(super) id: Fingerprint,
    pub(super) user: &'a str,
    pub(super) role: &'a str,
    pub(super) create_time: i64,
    pub(super) sent_time: i64,
    pub(super) token_count: i32,
    /// Whether it may call a tool or answer a call; false only if it is known that it does not.
    pub(super) may_use_tools: bool,
    pub(super) body: Option<Bytes>,
}

impl Entry {
    fn is_live(&self) -> bool {
        self.removed == NEVER
    }

    fn is_visible(&self, published: u64) -> bool {
        self.added <= published && published < self.removed
    }

    fn body_len(&self) -> usize {
        self.body.as_ref().map_or(0, |body| body.len())
    }
}

#[derive(Default)]
pub(super) struct Messages {
    /// The newest version of each, by sequence; some are removed.
    entries: VecDeque<Entry>,
    /// Versions that were replaced, by sequence, then age.
    superseded: Vec<Entry>,
    /// Of the live messages.
    ids: Ids,
    pub(super) users: Names,
    pub(super) roles: Names,
    /// How many of `entries` are removed.
    removed: usize,
    /// From this index on every entry has its body.
    window_start: usize,
    /// Sequences before the window that have their body because it is not applied.
    strays: Vec<u64>,
    /// Of all entries and superseded ones.
    body_bytes: usize,
}

impl Messages {
    /// Puts a message in its place, over the one that may be there.
    pub(super) fn put(&mut self, message: NewMessage<'_>, revision: u64) {
        let id = message.id;
        let entry = self.entry(message, revision);
        let sequence = entry.sequence;
        self.body_bytes += entry.body_len();
        match self.position(sequence) {
            Ok(index) => self.replace(index, entry),
            Err(index) => self.insert(index, entry),
        }
        self.ids.insert(id, sequence);
    }

    /// Appends a message from the database. Only the oldest may come without their bodies.
    pub(super) fn load(&mut self, message: NewMessage<'_>, revision: u64) {
        let is_bodiless = message.body.is_none();
        self.put(message, revision);
        if is_bodiless {
            self.window_start = self.entries.len();
        }
    }

    fn entry(&mut self, message: NewMessage<'_>, revision: u64) -> Entry {
        Entry {
            sequence: message.sequence,
            added: revision,
            removed: NEVER,
            create_time: message.create_time,
            sent_time: message.sent_time,
            id: message.id,
            user: self.users.number(message.user),
            role: self.roles.number(message.role),
            token_count: message.token_count,
            may_use_tools: message.may_use_tools,
            body: message.body.map(Box::new),
        }
    }

    fn insert(&mut self, index: usize, entry: Entry) {
        if index < self.window_start {
            self.window_start += 1;
            self.strays.push(entry.sequence);
        }
        if self.entries.len() == self.entries.capacity() {
            let room = (self.entries.len() / 4).max(LEAST_ROOM);
            self.entries.reserve_exact(room);
        }
        self.entries.insert(index, entry);
    }

    fn replace(&mut self, index: usize, entry: Entry) {
        let (sequence, revision) = (entry.sequence, entry.added);
        if index < self.window_start {
            self.strays.push(sequence);
        }
        let mut old = std::mem::replace(&mut self.entries[index], entry);
        if old.is_live() {
            old.removed = revision;
            self.ids.remove(old.id, sequence);
        } else {
            self.removed -= 1;
        }
        self.supersede(old);
    }

    fn supersede(&mut self, old: Entry) {
        let index = self
            .superseded
            .partition_point(|entry| (entry.sequence, entry.added) <= (old.sequence, old.added));
        self.superseded.insert(index, old);
    }

    /// Removes the message with this sequence, where there is one.
    pub(super) fn remove(&mut self, sequence: u64, revision: u64) {
        if let Ok(index) = self.position(sequence) {
            self.remove_at(index, revision);
        }
    }

    /// Removes all messages of a user.
    pub(super) fn remove_all(&mut self, user: &str, revision: u64) {
        let Some(user) = self.users.find(user) else {
            return;
        };
        for index in 0..self.entries.len() {
            if self.entries[index].user == user {
                self.remove_at(index, revision);
            }
        }
    }

    fn remove_at(&mut self, index: usize, revision: u64) {
        let entry = &mut self.entries[index];
        if entry.is_live() {
            entry.removed = revision;
            self.ids.remove(entry.id, entry.sequence);
            self.removed += 1;
        }
    }

    fn position(&self, sequence: u64) -> Result<usize, usize> {
        match self.entries.back() {
            Some(last) if last.sequence < sequence => Err(self.entries.len()),
            _ => self
                .entries
                .binary_search_by_key(&sequence, |entry| entry.sequence),
        }
    }

    /// The accepted message with this fingerprint of user and id.
    pub(super) fn find(&self, id: Fingerprint) -> Option<&Entry> {
        let at = |sequence| self.entries.get(self.position(sequence).ok()?);
        let has_id = |sequence| at(sequence).is_some_and(|entry| entry.id == id);
        at(self.ids.find(id, has_id)?)
    }

    /// The accepted messages, ascending.
    pub(super) fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_live())
    }

    /// What a reader sees of the sequences from `first` up to and without `end`, ascending.
    pub(super) fn visible(
        &self,
        first: u64,
        end: u64,
        published: u64,
    ) -> impl DoubleEndedIterator<Item = &Entry> {
        let from = self.entries.partition_point(|entry| entry.sequence < first);
        let to = self.entries.partition_point(|entry| entry.sequence < end);
        self.entries
            .range(from..to.max(from))
            .filter_map(move |entry| self.version(entry, published))
    }

    /// The version of a message that a reader sees.
    fn version<'a>(&'a self, entry: &'a Entry, published: u64) -> Option<&'a Entry> {
        if entry.added <= published {
            return entry.is_visible(published).then_some(entry);
        }
        let start = self
            .superseded
            .partition_point(|old| old.sequence < entry.sequence);
        self.superseded[start..]
            .iter()
            .take_while(|old| old.sequence == entry.sequence)
            .find(|old| old.is_visible(published))
    }

    /// Drops what no reader sees any more, and the bodies that are applied and beyond the bounds.
    pub(super) fn settle(&mut self, applied: u64, published: u64, bounds: &Bounds) {
        self.drop_superseded(published);
        self.drop_removed(published, bounds.gaps);
        self.drop_strays(applied);
        self.trim(applied, bounds);
    }

    fn drop_superseded(&mut self, published: u64) {
        let bytes = &mut self.body_bytes;
        self.superseded.retain(|old| {
            let seen = old.removed > published;
            if !seen {
                *bytes -= old.body_len();
            }
            seen
        });
    }

    fn drop_removed(&mut self, published: u64, gaps: usize) {
        while let Some(first) = self.entries.front()
            && first.removed <= published
        {
            self.body_bytes -= first.body_len();
            self.entries.pop_front();
            self.removed -= 1;
            self.window_start = self.window_start.saturating_sub(1);
        }
        if self.removed > gaps && self.removed > self.entries.len() / 4 {
            self.sweep(published);
        }
    }

    /// Closes the gaps of removed messages.
    fn sweep(&mut self, published: u64) {
        let window_start = self.window_start;
        let (mut index, mut before_window, mut bytes, mut swept) = (0, 0, 0, 0);
        self.entries.retain(|entry| {
            let gone = entry.removed <= published;
            if gone {
                swept += 1;
                bytes += entry.body_len();
                before_window += usize::from(index < window_start);
            }
            index += 1;
            !gone
        });
        self.removed -= swept;
        self.body_bytes -= bytes;
        self.window_start -= before_window;
    }

    /// Drops bodies before the window that the database has by now.
    fn drop_strays(&mut self, applied: u64) {
        let strays = std::mem::take(&mut self.strays);
        for sequence in strays {
            match self.position(sequence) {
                Ok(index) if index >= self.window_start => {}
                Ok(index) if self.entries[index].added > applied => self.strays.push(sequence),
                Ok(index) => self.drop_body(index),
                Err(_) => {}
            }
        }
    }

    fn trim(&mut self, applied: u64, bounds: &Bounds) {
        while self.body_bytes > bounds.body_bytes
            || self.entries.len() - self.window_start > bounds.bodies
        {
            match self.entries.get(self.window_start) {
                Some(oldest) if oldest.added <= applied => {
                    self.drop_body(self.window_start);
                    self.window_start += 1;
                }
                _ => return,
            }
        }
    }

    fn drop_body(&mut self, index: usize) {
        if let Some(body) = self.entries[index].body.take() {
            self.body_bytes -= body.len();
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// An estimate of the memory held.
    pub(super) fn bytes(&self) -> usize {
        let entries = self.entries.capacity() + self.superseded.capacity();
        let bodies = self.entries.len() - self.window_start + self.strays.len();
        entries * size_of::<Entry>()
            + bodies * size_of::<Bytes>()
            + self.ids.bytes()
            + self.strays.capacity() * size_of::<u64>()
            + self.body_bytes
            + self.users.bytes()
            + self.roles.bytes()
    }
}
