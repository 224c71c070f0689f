//! Pages of records: which a reader selects.

use std::ops::Bound;
use std::sync::Arc;

use bytes::BufMut;
use remora_supervision::failpoints::{self, Point};
use remora_wire as wire;

use super::entry::{Content, Held};
use super::order::Position;
use super::partition::{Cold, Partition, Seen};
use super::value::Value;

/// Columns, by their index, and what they must hold.
pub type Filters = Vec<(usize, Value)>;

/// Which records a page holds. Positions are exclusive.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// 0: of keys; else a further one of the kind.
    pub order: usize,
    /// Whether the page begins at the end of the order and goes back.
    pub newest: bool,
    pub after: Option<Position>,
    pub before: Option<Position>,
    pub filters: Filters,
    /// Only the last so many of all that pass.
    pub last: Option<usize>,
    /// How many are skipped, from where the page begins.
    pub skip: usize,
    pub limit: usize,
    /// Bytes of the page's entries at most, those in memory counted; the first selected is never left out.
    pub max_bytes: usize,
    /// What expired by then is not there; microseconds since 1970, UTC.
    pub now: i64,
}

/// A record as it is handed out.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub key: Arc<[u8]>,
    pub revision: u64,
    pub held: Held,
}

/// The selected records, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The page shows everything up to this revision.
    pub revision: u64,
    pub records: Vec<Found>,
    /// Whether more pass on the far side.
    pub more: bool,
}

impl Page {
    /// Whether every record has its body, in memory and in one part.
    pub fn is_held(&self) -> bool {
        self.records
            .iter()
            .all(|record| record.held.body.is_some() && record.held.content.upload_id.is_empty())
    }

    /// Bytes of the bodies in memory as entries.
    pub fn encoded_len(&self) -> usize {
        wire::entries_len(self.bodies())
    }

    /// Writes the bodies in memory as field 1 of a reply.
    pub fn encode(&self, buffer: impl BufMut) {
        wire::put_entries(self.bodies(), buffer);
    }

    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.records
            .iter()
            .filter_map(|record| record.held.body.as_deref())
    }
}

impl Held {
    /// Whether a reader sees it at a time.
    pub(super) fn is_alive(&self, now: i64) -> bool {
        self.expire_time.is_none_or(|expire_time| expire_time > now)
    }
}

impl Content {
    fn passes(&self, filters: &Filters) -> bool {
        let mut filters = filters.iter();
        filters.all(|(column, value)| self.columns[*column] == *value)
    }
}

impl Seen<'_> {
    pub(super) fn found(&self, tick: u64) -> Found {
        self.entry.use_at(tick);
        Found {
            key: Arc::clone(self.key),
            revision: self.revision,
            held: self.held.clone(),
        }
    }
}

/// How many a reader selects.
pub(super) fn count(
    partition: &Partition,
    filters: &Filters,
    now: i64,
    published: u64,
) -> Result<usize, Cold> {
    if !partition.is_whole(published) {
        return Err(Cold { after: None });
    }
    let all = (Bound::Unbounded, Bound::Unbounded);
    let passing = partition.walk(0, all, published, |content| content.passes(filters));
    Ok(passing.filter(|seen| seen.held.is_alive(now)).count())
}

/// The page of a selection as a reader sees it; `revision` is left to the caller.
pub(super) fn select(
    partition: &Partition,
    selection: &Selection,
    published: u64,
    tick: u64,
) -> Result<Page, Cold> {
    failpoints::hit(Point::RecordsListing);
    let start = Start::of(partition, selection, published)?;
    let end = selection.before.as_ref();
    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
    let passes = |content: &Content| content.passes(&selection.filters);
    let passing = partition
        .walk(selection.order, (start.bound, end), published, passes)
        .filter(|seen| seen.held.is_alive(selection.now));
    let (picked, more) = if let Some(last) = selection.last {
        let mut tail: Vec<_> = passing.rev().take(last).collect();
        start.require_unless(tail.len() == last)?;
        tail.reverse();
        fitting(tail.into_iter(), selection)
    } else if selection.newest {
        let (mut picked, more) = fitting(passing.rev(), selection);
        start.require_unless(more)?;
        picked.reverse();
        (picked, more)
    } else {
        start.require_unless(false)?;
        fitting(passing, selection)
    };
    let records = picked.iter().map(|seen| seen.found(tick));
    Ok(Page {
        revision: 0,
        records: records.collect(),
        more,
    })
}

/// Where what is in memory of a selection begins.
struct Start<'a> {
    bound: Bound<&'a Position>,
    /// Where that is not where the selection begins.
    short: Option<&'a Position>,
}

impl<'a> Start<'a> {
    fn of(
        partition: &'a Partition,
        selection: &'a Selection,
        published: u64,
    ) -> Result<Self, Cold> {
        let after = selection.after.as_ref();
        let first = partition.complete_from(selection.order);
        let is_held = partition.is_whole(published)
            || first.is_some_and(|first| after.is_some_and(|after| first <= after));
        if is_held {
            return Ok(Self {
                bound: after.map_or(Bound::Unbounded, Bound::Excluded),
                short: None,
            });
        }
        let first = first.ok_or(Cold { after: None })?;
        Ok(Self {
            bound: Bound::Included(first),
            short: Some(first),
        })
    }

    /// Fails if the beginning of the selection is needed and not in memory.
    fn require_unless(&self, is_full: bool) -> Result<(), Cold> {
        match self.short {
            Some(first) if !is_full => Err(Cold {
                after: Some(first.clone()),
            }),
            _ => Ok(()),
        }
    }
}

/// The first that fit behind those that are skipped, and whether others follow.
fn fitting<'a>(
    passing: impl Iterator<Item = Seen<'a>>,
    selection: &Selection,
) -> (Vec<Seen<'a>>, bool) {
    let limits = wire::Limits {
        items: selection.limit,
        bytes: selection.max_bytes,
    };
    limits.fitting(passing.skip(selection.skip), |seen| {
        seen.held.body.as_deref()
    })
}
