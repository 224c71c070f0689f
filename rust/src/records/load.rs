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
    /// `None` where it was not asked for.
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
