//! A resident partition: the keys that were used, or all of them.

mod expiry;
#[cfg(test)]
mod invariants;
mod loading;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::entry::{Content, Entry, Held, Version};
use super::order::{Key, Orders, Position};
use super::removals::{PartitionName, Removal, Removals};
pub(super) use expiry::UnappliedExpiry;
use expiry::{Expiry, Late};

/// An estimate of the memory held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// All but bodies.
    pub(super) keys: usize,
    pub(super) bodies: usize,
}

/// What is asked for is not in memory. In the order asked for all is, from a position on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the records are not in memory")]
pub struct Cold {
    pub after: Option<Position>,
}

/// An entry for each key that was written or asked for. Every change that the database may lack is here.
pub(super) struct Partition {
    name: PartitionName,
    entries: BTreeMap<Key, Entry>,
    orders: Orders,
    /// For who sees this revision or a later one, the entries are all there is.
    whole_since: Option<u64>,
    /// Of each order, from where on all is here.
    complete_from: Box<[Option<Position>]>,
    late: Vec<Late>,
    /// How many removals were taken in.
    removals: u64,
    /// The last that was taken in and not settled since; 0 if there is none.
    removed: u64,
    /// The newest change.
    touched: u64,
    /// A load must have seen this: it was here, and is no longer.
    needed: u64,
    /// Expire times that are seen and that the database may lack, by key and revision of the record.
    expiries: BTreeMap<(Key, u64), Expiry>,
    /// When it became resident and when it was last used, in ticks.
    begun: u64,
    used: u64,
    size: Size,
}

/// Room for an entry in the maps of a partition.
const PLACE_BYTES: usize = 48;

impl Partition {
    /// A partition of which nothing is known, or that is known to be empty.
    pub(super) fn new(name: PartitionName, is_empty: bool, begun: u64) -> Self {
        let orders = Orders::new(Arc::clone(&name.kind));
        let bytes = name.bytes.len() + name.tenant.len();
        Self {
            entries: BTreeMap::new(),
            whole_since: is_empty.then_some(0),
            complete_from: (0..=orders.count()).map(|_| None).collect(),
            orders,
            late: Vec::new(),
            removals: 0,
            removed: 0,
            touched: 0,
            needed: 0,
            expiries: BTreeMap::new(),
            begun,
            used: begun,
            size: Size {
                keys: size_of::<Self>() + PLACE_BYTES + bytes,
                bodies: 0,
            },
            name,
        }
    }

    pub(super) fn name(&self) -> &PartitionName {
        &self.name
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn touched(&self) -> u64 {
        self.touched
    }

    /// The revision that a load must have seen.
    pub(super) fn needed(&self) -> u64 {
        self.needed
    }

    pub(super) fn begun(&self) -> u64 {
        self.begun
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn use_at(&mut self, tick: u64) {
        self.used = tick;
    }

    /// Whether the database has all of it.
    pub(super) fn is_spare(&self, applied: u64) -> bool {
        self.touched <= applied && !self.lacks_expiries()
    }

    /// Takes in the removals that came since it was last used.
    pub(super) fn catch_up(&mut self, removals: &Removals) {
        if self.removals == removals.count() {
            return;
        }
        let (concerned, count) = removals.since(self.removals, &self.name);
        self.removals = count;
        for removal in concerned {
            self.remove_many(&removal);
        }
    }

    fn remove_many(&mut self, removal: &Removal) {
        self.removed = removal.revision;
        let taken = self.entries.iter().filter(|(_, entry)| {
            let held = entry.newest().held.as_ref();
            held.is_some_and(|held| removal.takes(&held.content.user))
        });
        let taken: Vec<_> = taken.map(|(key, _)| Arc::clone(key)).collect();
        for key in taken {
            self.push(&key, nothing(removal.revision));
        }
        if removal.takes_all() {
            self.whole_since.get_or_insert(removal.revision);
        }
    }

    /// Puts a record. `replaces`: one may be there in its place. Removals were taken in.
    pub(super) fn put(
        &mut self,
        key: &Key,
        revision: u64,
        held: Held,
        replaces: bool,
        published: u64,
    ) {
        self.touched = revision;
        let version = Version {
            revision,
            held: Some(held),
        };
        if self.entries.contains_key(key) {
            self.push(key, version);
            self.forget(key, published);
        } else {
            let base = self.base(key, replaces, published);
            self.insert(key, base, version);
        }
    }

    /// Removes a record. Removals of many were taken in.
    pub(super) fn remove(&mut self, key: &Key, revision: u64, published: u64) {
        self.touched = revision;
        if self.entries.contains_key(key) {
            self.push(key, nothing(revision));
            self.forget(key, published);
        } else if self.whole_since.is_none() && !self.is_complete_at(key) {
            self.insert(key, Base::Unknown, nothing(revision));
        }
    }

    /// What is known to have been there before a key that has no entry.
    fn base(&self, key: &Key, replaces: bool, published: u64) -> Base {
        let nothing_since = match self.whole_since {
            _ if self.is_complete_at(key) => 0,
            Some(revision) => revision,
            None if replaces => return Base::Unknown,
            None => self.removed,
        };
        if nothing_since <= published {
            Base::Nothing
        } else {
            Base::NothingSince(nothing_since)
        }
    }

    fn insert(&mut self, key: &Key, base: Base, version: Version) {
        let entry = match base {
            Base::Unknown => Entry::new(version, false),
            Base::Nothing => Entry::new(version, true),
            Base::NothingSince(revision) => {
                let mut entry = Entry::new(nothing(revision), false);
                entry.push(version);
                entry
            }
        };
        self.insert_entry(key, entry);
    }

    fn insert_entry(&mut self, key: &Key, entry: Entry) {
        for version in entry.versions() {
            if let Some(held) = &version.held {
                self.orders.insert(key, version.revision, held);
            }
        }
        self.count_in(key, &entry);
        self.entries.insert(Arc::clone(key), entry);
    }

    fn remove_entry(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.count_out(key, &entry);
            for version in entry.versions() {
                self.orders.remove(version);
            }
        }
    }

    /// Adds a version to an entry. An expire time that only memory has is seen until the version is published.
    fn push(&mut self, key: &Key, version: Version) {
        let revision = version.revision;
        if let Some(held) = &version.held {
            self.orders.insert(key, revision, held);
        }
        let pushed = self.change(key, |entry| (entry.newest().revision, entry.push(version)));
        let Some((before, replaced)) = pushed else {
            return;
        };
        self.end_expiry(key, before, revision);
        if let Some(replaced) = replaced {
            self.orders.remove(&replaced);
        }
    }

    /// Drops the versions of an entry that nobody sees.
    fn forget(&mut self, key: &Key, published: u64) {
        let gone = self.change(key, |entry| entry.forget(published));
        for version in gone.into_iter().flatten() {
            self.orders.remove(&version);
        }
    }

    /// Changes an entry, and counts it anew.
    fn change<T>(&mut self, key: &Key, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        let orders = self.orders.count();
        let entry = self.entries.get_mut(key)?;
        let before = (entry.key_bytes(orders), entry.body_bytes());
        let changed = change(entry);
        self.size.keys = self.size.keys + entry.key_bytes(orders) - before.0;
        self.size.bodies = self.size.bodies + entry.body_bytes() - before.1;
        Some(changed)
    }

    fn count_in(&mut self, key: &Key, entry: &Entry) {
        self.size.keys += PLACE_BYTES + key.len() + entry.key_bytes(self.orders.count());
        self.size.bodies += entry.body_bytes();
    }

    fn count_out(&mut self, key: &Key, entry: &Entry) {
        self.size.keys -= PLACE_BYTES + key.len() + entry.key_bytes(self.orders.count());
        self.size.bodies -= entry.body_bytes();
    }

    /// Drops what nobody sees of a key, and of what the database has what is known without it.
    pub(super) fn settle(&mut self, key: &Key, applied: u64, published: u64) {
        self.forget(key, published);
        self.settle_expiries(key, applied);
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if !entry.is_gone(applied) {
            return;
        }
        let revision = entry.newest().revision;
        entry.forget_end();
        let is_known =
            self.whole_since.is_some_and(|since| since <= published) || self.is_complete_at(key);
        if is_known {
            self.needed = self.needed.max(revision);
            self.remove_entry(key);
        }
    }

    /// Settles all keys, where a removal of many that the database has by now was taken in.
    pub(super) fn settle_removals(&mut self, applied: u64, published: u64) {
        if self.removed == 0 || self.removed > applied {
            return;
        }
        self.removed = 0;
        let keys: Vec<_> = self.entries.keys().cloned().collect();
        for key in keys {
            self.settle(&key, applied, published);
        }
    }

    /// The record of a key that is there at a revision.
    pub(super) fn get(&self, key: &[u8], revision: u64) -> Result<Option<Seen<'_>>, Cold> {
        let cold = Cold { after: None };
        match self.entries.get_key_value(key) {
            Some((_, entry)) if !entry.knows(revision) => Err(cold),
            Some((key, entry)) => Ok(seen(key, entry, revision)),
            None if self.is_whole(revision) || self.is_complete_at(key) => Ok(None),
            None => Err(cold),
        }
    }

    /// Whether the entries are all there is for who sees a revision.
    pub(super) fn is_whole(&self, revision: u64) -> bool {
        self.whole_since.is_some_and(|since| since <= revision)
    }

    /// From where on all is here in an order.
    pub(super) fn complete_from(&self, order: usize) -> Option<&Position> {
        self.complete_from[order].as_ref()
    }

    fn is_complete_at(&self, key: &[u8]) -> bool {
        match &self.complete_from[0] {
            Some(Position::Key(first)) => first.as_ref() <= key,
            _ => false,
        }
    }

    /// The records that are there at a revision and pass, between two positions of an order, ascending.
    pub(super) fn walk<'a>(
        &'a self,
        order: usize,
        bounds: (Bound<&Position>, Bound<&Position>),
        revision: u64,
        passes: impl Fn(&Content) -> bool + 'a,
    ) -> Box<dyn DoubleEndedIterator<Item = Seen<'a>> + 'a> {
        if is_empty(bounds) {
            return Box::new(std::iter::empty());
        }
        if order == 0 {
            let bounds = (key_of(bounds.0), key_of(bounds.1));
            let entries = self.entries.range::<[u8], _>(bounds);
            let seen = entries.filter_map(move |(key, entry)| seen(key, entry, revision));
            return Box::new(seen.filter(move |seen| passes(&seen.held.content)));
        }
        // What stands there is asked first: to find the entry takes longer.
        let placed = self.orders.range(order, bounds);
        let placed = placed.filter(move |(_, placed)| passes(&placed.content));
        Box::new(placed.filter_map(move |(_, placed)| {
            let entry = self.entries.get(&placed.key)?;
            let found = seen(&placed.key, entry, revision)?;
            Arc::ptr_eq(&found.held.content, &placed.content).then_some(found)
        }))
    }

    /// The entries whose body may be dropped, with when they were used.
    pub(super) fn spare_bodies(&self, applied: u64) -> Vec<(u64, Key)> {
        let spare = self
            .entries
            .iter()
            .filter(|(_, entry)| entry.has_spare_body(applied));
        spare
            .map(|(key, entry)| (entry.used(), Arc::clone(key)))
            .collect()
    }

    /// Drops the body of a key, which the database has.
    pub(super) fn drop_body(&mut self, key: &Key) {
        self.change(key, |entry| {
            if let Some(held) = &mut entry.newest_mut().held {
                held.body = None;
            }
        });
    }
}

/// What was there before a key had an entry.
enum Base {
    Unknown,
    Nothing,
    NothingSince(u64),
}

/// A record that somebody sees.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) key: &'a Key,
    pub(super) revision: u64,
    pub(super) held: &'a Held,
    pub(super) entry: &'a Entry,
}

fn seen<'a>(key: &'a Key, entry: &'a Entry, revision: u64) -> Option<Seen<'a>> {
    let (revision, held) = entry.at(revision)?;
    Some(Seen {
        key,
        revision,
        held,
        entry,
    })
}

fn nothing(revision: u64) -> Version {
    Version {
        revision,
        held: None,
    }
}

fn key_of<'a>(bound: Bound<&'a Position>) -> Bound<&'a [u8]> {
    let key = |position: &'a Position| match position {
        Position::Key(key) => key.as_ref(),
        Position::Columns { .. } => &[],
    };
    bound.map(key)
}

/// Whether nothing can lie between two positions: a map refuses such bounds.
fn is_empty(bounds: (Bound<&Position>, Bound<&Position>)) -> bool {
    match bounds {
        (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
        (Bound::Included(from), Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}
