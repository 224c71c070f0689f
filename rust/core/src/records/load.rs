//! Loading: records that come back from the database.

use std::sync::Arc;

use super::entry::Content;
use super::order::Position;

/// A record as the database holds it.
#[derive(Debug)]
pub struct LoadedRecord {
    pub key: Arc<[u8]>,
    pub revision: u64,
    pub content: Content,
    pub expire_time: Option<i64>,
    /// `None` if it was not asked for.
    pub body: Option<Arc<[u8]>>,
}

/// What of a partition was loaded.
#[derive(Clone, Debug)]
pub enum Extent {
    /// Some of it.
    Keys,
    /// All of it.
    Whole,
    /// Of an order all from a position on, to its end or up to another position.
    Range {
        order: usize,
        from: Position,
        to: Option<Position>,
    },
}

/// What the database answered.
#[derive(Debug)]
pub struct Loaded {
    pub records: Vec<LoadedRecord>,
    /// Keys that were asked for and are not there.
    pub absent: Vec<Arc<[u8]>>,
    pub extent: Extent,
    /// The database had all up to this revision when it was asked, perhaps more.
    pub as_of: u64,
}

/// Records of a part: what holds a lock for about 200 microseconds.
const PART: usize = 128;

impl Loaded {
    /// The same in parts of a bounded size. The last says what the records are all of.
    pub(super) fn into_parts(self) -> impl Iterator<Item = Self> {
        let as_of = self.as_of;
        let mut records = self.records.into_iter();
        let mut rest = Some((self.absent, self.extent));
        std::iter::from_fn(move || {
            let part: Vec<_> = records.by_ref().take(PART).collect();
            let (absent, extent) = match records.len() {
                0 => rest.take()?,
                _ => (Vec::new(), Extent::Keys),
            };
            Some(Self {
                records: part,
                absent,
                extent,
                as_of,
            })
        })
    }
}
