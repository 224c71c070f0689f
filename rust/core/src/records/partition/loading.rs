//! Records that come back from the database, beneath what is in memory.

use std::ops::Bound;
use std::sync::Arc;

use remora_supervision::failpoints::{self, Point};

use super::{Partition, nothing};
use crate::records::entry::{Entry, Held, Version};
use crate::records::load::{Extent, Loaded, LoadedRecord};
use crate::records::order::{Key, Position};
use crate::records::removals::Removal;

impl Partition {
    /// Takes in what the database answered. `later`: the removals of many that it may lack.
    pub(in crate::records) fn load(&mut self, loaded: Loaded, later: &[Arc<Removal>]) {
        for record in loaded.records {
            self.load_record(record, later);
        }
        failpoints::hit(Point::RecordsLoading);
        for key in &loaded.absent {
            self.load_absence(key);
        }
        match loaded.extent {
            Extent::Keys => {}
            Extent::Whole => self.complete(),
            Extent::Range { order, from, to } => self.complete_range(order, from, to.as_ref()),
        }
    }

    fn load_record(&mut self, record: LoadedRecord, later: &[Arc<Removal>]) {
        let LoadedRecord { key, revision, .. } = record;
        let held = Held {
            expire_time: self
                .late_expiry(&key, revision)
                .unwrap_or(record.expire_time),
            content: Arc::new(record.content),
            body: record.body,
        };
        let Some(entry) = self.entries.get(&key) else {
            let entry = loaded_entry(revision, held, later);
            self.insert_entry(&key, entry);
            return;
        };
        if entry.is_rooted() || entry.oldest() <= revision {
            self.load_body(&key, revision, held.body);
        } else {
            self.load_oldest(&key, revision, held, later);
        }
    }

    /// Gives a record that is in memory its body back.
    fn load_body(&mut self, key: &Key, revision: u64, body: Option<Arc<[u8]>>) {
        self.change(key, |entry| {
            let version = entry.version_mut(revision);
            let held = version.and_then(|version| version.held.as_mut());
            if let Some(held) = held.filter(|held| held.body.is_none()) {
                held.body = body;
            }
        });
    }

    /// Puts what was there before the versions that are in memory.
    fn load_oldest(&mut self, key: &Key, revision: u64, held: Held, later: &[Arc<Removal>]) {
        self.orders.insert(key, revision, &held);
        self.change(key, |entry| {
            let end = end_of(&held, later).filter(|end| *end < entry.oldest());
            if let Some(end) = end {
                entry.push_oldest(nothing(end));
            }
            entry.push_oldest(there(revision, held));
        });
    }

    fn load_absence(&mut self, key: &Key) {
        if self.entries.contains_key(key) {
            self.change(key, Entry::root);
        } else if self.whole_since != Some(0) && !self.is_complete_at(key) {
            self.insert_entry(key, Entry::absent());
        }
    }

    /// Says that the entries are all there is.
    fn complete(&mut self) {
        self.whole_since = Some(0);
        self.entries.values_mut().for_each(Entry::root);
    }

    /// Says that the entries are all there is of an order from a position on, up to another one from where on that was
    /// known. Where it is not known any more, the range says nothing.
    fn complete_range(&mut self, order: usize, from: Position, to: Option<&Position>) {
        let known = self.complete_from[order].as_ref();
        let joins = to.is_none_or(|to| known.is_some_and(|known| known <= to));
        if !joins || known.is_some_and(|known| *known <= from) {
            return;
        }
        if let Position::Key(first) = &from {
            let bounds = (Bound::Included(first.as_ref()), Bound::Unbounded);
            let keys = self.entries.range_mut::<[u8], _>(bounds);
            keys.for_each(|(_, entry)| entry.root());
        }
        self.complete_from[order] = Some(from);
    }
}

/// A record of the database, which a removal may have taken since.
fn loaded_entry(revision: u64, held: Held, later: &[Arc<Removal>]) -> Entry {
    let end = end_of(&held, later);
    let mut entry = Entry::new(there(revision, held), true);
    if let Some(end) = end {
        entry.push(nothing(end));
    }
    entry
}

/// The first removal that took a record of the database.
fn end_of(held: &Held, later: &[Arc<Removal>]) -> Option<u64> {
    let user = &held.content.user;
    let taking = later.iter().find(|removal| removal.takes(user))?;
    Some(taking.revision)
}

fn there(revision: u64, held: Held) -> Version {
    Version {
        revision,
        held: Some(held),
    }
}
