//! The items of a tenant: what is stored of each, and what searches look at.

use std::cmp::Ordering;

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::RwLock;
use prost::Message as _;
use remora_filter::Expression;
use remora_kernels::Kernels;
use remora_parts as parts;
use remora_wire as wire;

use crate::change::{Op, Put};
use crate::listing::Listing;
use crate::namespaces::{self, Namespaces, labels};
use crate::nearest::{self, Query};
use crate::paths::Paths;
use crate::tables::{Spot, Tables};
use crate::{Hit, Labels, Place, Search};

/// The rows of a tenant, in any order.
pub(crate) struct Content {
    kernels: &'static Kernels,
    rows: Vec<Row>,
    numbers: HashMap<Place, u32>,
    namespaces: Namespaces,
    tables: Tables,
    /// Searches make columns for new paths.
    paths: RwLock<Paths>,
    row_bytes: usize,
}

/// One item.
#[derive(Debug)]
struct Row {
    namespace: Bytes,
    key: Bytes,
    body: Bytes,
    /// A part of the body.
    value: Bytes,
    user: Box<str>,
    revision: u64,
    create_time: i64,
    update_time: i64,
    expire_time: Option<i64>,
    /// The namespace's number, and where in its list the row stands.
    number: namespaces::Number,
    place: u32,
    vectors: Vec<Spot>,
}

impl Row {
    fn is_there(&self, now: i64) -> bool {
        self.expire_time.is_none_or(|time| time > now)
    }

    fn at(&self) -> (&Bytes, &Bytes) {
        (&self.namespace, &self.key)
    }

    fn bytes(&self) -> usize {
        // Its number is held beside its place once more; a map is two thirds full.
        let number = size_of::<(Place, u32)>() * 3 / 2;
        let held = self.namespace.len() + self.key.len() + self.body.len() + self.user.len();
        size_of::<Self>() + number + held + self.vectors.capacity() * size_of::<Spot>()
    }
}

impl parts::Content for Content {
    type Change = Op;

    fn apply(&mut self, op: Op) {
        match op {
            Op::Put(put) => self.put(put),
            Op::Remove { namespace, key } => self.remove(&(namespace, key)),
            Op::RemoveNamespace { namespace } => {
                let gone = self.places(self.namespaces.rows_of(&namespace));
                self.remove_all(&gone);
            }
            Op::RemovePrefix { prefix } => {
                let gone = self.places(&self.within(&prefix));
                self.remove_all(&gone);
            }
            Op::RemoveUser { user } => {
                let of_user = |row: &u32| *self.rows[*row as usize].user == *user;
                let rows: Vec<_> = (0..self.rows.len() as u32).filter(of_user).collect();
                let gone = self.places(&rows);
                self.remove_all(&gone);
            }
            Op::Expire {
                namespace,
                key,
                revision,
                expire_time,
            } => self.expire(&(namespace, key), revision, expire_time),
        }
    }

    fn bytes(&self) -> usize {
        self.row_bytes + self.namespaces.bytes() + self.tables.bytes() + self.paths.read().bytes()
    }
}

impl Content {
    pub(crate) fn new(kernels: &'static Kernels) -> Self {
        Self {
            kernels,
            rows: Vec::new(),
            numbers: HashMap::new(),
            namespaces: Namespaces::default(),
            tables: Tables::default(),
            paths: RwLock::default(),
            row_bytes: 0,
        }
    }

    /// Adds or replaces an item.
    fn put(&mut self, put: Put) {
        let place = (put.namespace.clone(), put.key.clone());
        self.remove(&place);
        // A body that cannot be decoded as an item has no value and is found by its namespace alone.
        let stored = wire::StoreItemIndex::decode(put.body.clone()).unwrap_or_default();
        let at = self.rows.len() as u32;
        let (number, in_list) = self.namespaces.add(&put.namespace, at);
        let vectors = stored.vectors.into_iter();
        let row = Row {
            namespace: put.namespace,
            key: put.key,
            body: put.body,
            value: stored.value,
            user: stored.user_id.into(),
            revision: put.revision,
            create_time: stored.create_time.map_or(0, wire::Timestamp::micros),
            update_time: stored.update_time.map_or(0, wire::Timestamp::micros),
            expire_time: put.expire_time,
            number,
            place: in_list,
            vectors: vectors
                .map(|vector| self.tables.add(at, vector.model, vector.values))
                .collect(),
        };
        self.paths.get_mut().put(at as usize, &row.value);
        self.row_bytes += row.bytes();
        self.numbers.insert(place, at);
        self.rows.push(row);
    }

    fn remove(&mut self, place: &Place) {
        let Some(number) = self.numbers.remove(place) else {
            return;
        };
        let at = number as usize;
        self.forget(at);
        let gone = self.rows.swap_remove(at);
        self.row_bytes -= gone.bytes();
        let last = self.rows.len();
        if at < last {
            self.paths.get_mut().shift(last, at);
            let moved = &self.rows[at];
            let place = (moved.namespace.clone(), moved.key.clone());
            self.numbers.insert(place, number);
            self.namespaces.renumber(moved.number, moved.place, number);
            for spot in &moved.vectors {
                self.tables.reassign(*spot, number);
            }
        }
    }

    /// Takes what searches look at besides the row itself.
    fn forget(&mut self, at: usize) {
        self.paths.get_mut().remove(at);
        while let Some(spot) = self.rows[at].vectors.pop() {
            if let Some((row, before)) = self.tables.remove(spot) {
                let spots = &mut self.rows[row as usize].vectors;
                let moved = spots.iter_mut().find(|each| **each == before);
                moved.into_iter().for_each(|moved| *moved = spot);
            }
        }
        let row = &self.rows[at];
        let (number, place) = (row.number, row.place);
        if let Some(moved) = self.namespaces.remove(&row.namespace, number, place) {
            self.rows[moved as usize].place = place;
        }
    }

    fn places(&self, rows: &[u32]) -> Vec<Place> {
        let rows = rows.iter().map(|row| &self.rows[*row as usize]);
        rows.map(|row| (row.namespace.clone(), row.key.clone()))
            .collect()
    }

    fn remove_all(&mut self, places: &[Place]) {
        places.iter().for_each(|place| self.remove(place));
    }

    fn expire(&mut self, place: &Place, revision: u64, expire_time: Option<i64>) {
        if let Some(number) = self.numbers.get(place) {
            let row = &mut self.rows[*number as usize];
            if row.revision == revision {
                row.expire_time = expire_time;
            }
        }
    }

    /// The rows of all namespaces that begin so.
    fn within(&self, prefix: &[u8]) -> Vec<u32> {
        let namespaces = self.namespaces.beginning_with(prefix);
        namespaces.flat_map(|(_, rows)| rows).copied().collect()
    }

    pub(crate) fn search(&self, search: &Search<'_>) -> Vec<Hit> {
        let mut rows = self.within(search.prefix);
        rows.retain(|row| self.rows[*row as usize].is_there(search.now));
        if let Some(filter) = search.filter {
            let passing = self.passing(filter);
            rows.retain(|row| passing[*row as usize]);
        }
        let found = match search.query {
            None => self.newest(rows, search),
            Some(query) => self.nearest(&rows, query, search),
        };
        found.into_iter().map(|found| self.hit(found)).collect()
    }

    fn passing(&self, filter: &Expression) -> Vec<bool> {
        let known = self.paths.read();
        if known.know(filter) {
            return known.passing(filter, self.rows.len());
        }
        drop(known);
        let mut paths = self.paths.write();
        // Where this panics, all paths are forgotten: columns of half of the rows would not follow them.
        let mut learnt = std::mem::take(&mut *paths);
        learnt.learn(filter, self.rows.iter().map(|row| &row.value));
        *paths = learnt;
        paths.passing(filter, self.rows.len())
    }

    fn newest(&self, rows: Vec<u32>, search: &Search<'_>) -> Vec<(u32, Option<f64>)> {
        let newer_first = |one: &u32, other: &u32| {
            let (one, other) = (&self.rows[*one as usize], &self.rows[*other as usize]);
            let by_time = other.update_time.cmp(&one.update_time);
            by_time.then_with(|| one.at().cmp(&other.at()))
        };
        let chosen = first(rows, search, newer_first);
        chosen.into_iter().map(|row| (row, None)).collect()
    }

    fn nearest(&self, rows: &[u32], query: &Query, search: &Search<'_>) -> Vec<(u32, Option<f64>)> {
        let Some((number, table)) = self.tables.find(&query.model, query.vector.dim()) else {
            return Vec::new();
        };
        let spots = rows
            .iter()
            .flat_map(|row| &self.rows[*row as usize].vectors);
        let of_table = spots.filter(|spot| spot.table == number);
        let mut slots: Vec<_> = of_table.map(|spot| spot.slot).collect();
        slots.sort_unstable();
        let count = search.skip.saturating_add(search.limit);
        let scores = nearest::best(self.kernels, table, query, &slots, count);
        let nearer_first = |one: &(u32, f64), other: &(u32, f64)| {
            let by_score = other.1.total_cmp(&one.1);
            let at = |row: u32| self.rows[row as usize].at();
            by_score.then_with(|| at(one.0).cmp(&at(other.0)))
        };
        let chosen = first(scores, search, nearer_first).into_iter();
        chosen.map(|(row, score)| (row, Some(score))).collect()
    }

    fn hit(&self, (row, score): (u32, Option<f64>)) -> Hit {
        let row = &self.rows[row as usize];
        Hit {
            score,
            namespace: row.namespace.clone(),
            key: row.key.clone(),
            body: row.body.clone(),
            revision: row.revision,
            expire_time: row.expire_time,
        }
    }

    pub(crate) fn namespaces(&self, listing: &Listing<'_>) -> (Vec<Labels>, bool) {
        let leading = listing.leading();
        let is_there = |rows: &[u32]| {
            let mut rows = rows.iter();
            rows.any(|row| self.rows[*row as usize].is_there(listing.now))
        };
        let there = self.namespaces.beginning_with(&leading);
        let there = there.filter(|(_, rows)| is_there(rows));
        let mut found: Vec<_> = there
            .map(|(namespace, _)| labels(namespace))
            .filter(|labels| listing.takes(labels))
            .map(|mut labels| {
                labels.truncate(listing.max_depth.unwrap_or(usize::MAX));
                labels
            })
            .collect();
        // Shortened, they are in order still.
        found.dedup();
        let more = found.len() > listing.skip.saturating_add(listing.limit);
        let page = found.into_iter().skip(listing.skip).take(listing.limit);
        (page.collect(), more)
    }

    /// When the items at some places were created; `None` where none is.
    pub(crate) fn created(&self, places: &[Place], now: i64) -> Vec<Option<i64>> {
        let row = |place| self.numbers.get(place).map(|row| &self.rows[*row as usize]);
        let there = |place| row(place).filter(|row| row.is_there(now));
        let created = places
            .iter()
            .map(|place| there(place).map(|row| row.create_time));
        created.collect()
    }

    pub(crate) fn expired(&self, now: i64) -> Vec<Place> {
        let gone = self.rows.iter().filter(|row| !row.is_there(now));
        gone.map(|row| (row.namespace.clone(), row.key.clone()))
            .collect()
    }
}

/// The first elements of an order, without those that a search skips.
fn first<T>(mut all: Vec<T>, search: &Search<'_>, order: impl Fn(&T, &T) -> Ordering) -> Vec<T> {
    let end = search.skip.saturating_add(search.limit);
    if end < all.len() {
        all.select_nth_unstable_by(end, &order);
        all.truncate(end);
    }
    all.sort_unstable_by(&order);
    all.drain(..search.skip.min(all.len()));
    all
}
