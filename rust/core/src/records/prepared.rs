//! Changes as memory applies them. What stays there is copied before the journal's lock is taken: a part of a record
//! would keep all of it in memory.

use std::sync::Arc;

use super::change::{Address, Change, Put, Removed};
use super::entry::{Content, Held};
use super::kinds::Kind;

/// Where a record is, within its tenant.
#[derive(Debug)]
pub(super) struct Spot {
    pub(super) kind: Arc<Kind>,
    /// As it was named; see `Kind::uid`.
    pub(super) uid: u64,
    pub(super) partition: Arc<[u8]>,
    pub(super) key: Arc<[u8]>,
}

#[derive(Debug)]
pub(super) enum Step {
    Put {
        spot: Spot,
        held: Held,
        replaces: bool,
    },
    Remove(Spot),
    Expire {
        spot: Spot,
        record_revision: u64,
        expire_time: Option<i64>,
    },
    RemovePartition(Spot),
    RemovePrefix(Spot),
    Erase {
        kinds: Vec<Arc<Kind>>,
        user: String,
    },
    Create,
    End {
        uid: u64,
    },
}

/// A change that can be applied.
#[derive(Debug)]
pub(crate) struct Prepared(pub(super) Step);

impl Prepared {
    /// Prepares the change that stands at `ordinal` in its record.
    pub(crate) fn new(change: Change, ordinal: usize) -> Self {
        Self(match change {
            Change::Put(put) => prepare_put(put, ordinal),
            Change::Remove {
                kind,
                uid,
                partition,
                removed,
            } => {
                let spot = |key: &[u8]| Spot {
                    kind,
                    uid,
                    partition: partition.as_ref().into(),
                    key: key.into(),
                };
                match removed {
                    Removed::Record { key } => Step::Remove(spot(&key)),
                    Removed::Partition => Step::RemovePartition(spot(&[])),
                    Removed::Prefix => Step::RemovePrefix(spot(&[])),
                }
            }
            Change::Erase { kinds, user } => Step::Erase { kinds, user },
            Change::Expire {
                kind,
                address,
                record_revision,
                expire_time,
            } => Step::Expire {
                spot: spot(kind, &address),
                record_revision,
                expire_time,
            },
            Change::Create => Step::Create,
            Change::End { uid } => Step::End { uid },
        })
    }
}

/// What a change means to the searches among vectors and among items.
#[derive(Debug)]
pub(crate) enum Searched {
    Put {
        kind: Arc<Kind>,
        partition: Arc<[u8]>,
        key: Arc<[u8]>,
        body: Arc<[u8]>,
        expire_time: Option<i64>,
    },
    Remove {
        kind: Arc<Kind>,
        partition: Arc<[u8]>,
        key: Arc<[u8]>,
    },
    RemovePartition {
        kind: Arc<Kind>,
        partition: Arc<[u8]>,
    },
    RemovePrefix {
        kind: Arc<Kind>,
        prefix: Arc<[u8]>,
    },
    Erase {
        kind: Arc<Kind>,
        user: String,
    },
}

impl Searched {
    /// Of what the change is.
    pub(crate) fn kind(&self) -> &Kind {
        match self {
            Self::Put { kind, .. }
            | Self::Remove { kind, .. }
            | Self::RemovePartition { kind, .. }
            | Self::RemovePrefix { kind, .. }
            | Self::Erase { kind, .. } => kind,
        }
    }
}

impl Prepared {
    /// What the change means to the searches; nothing if it concerns other kinds.
    pub(crate) fn searched(&self) -> Vec<Searched> {
        let one = match &self.0 {
            Step::Put { spot, held, .. } if spot.kind.is_followed() => Searched::Put {
                kind: Arc::clone(&spot.kind),
                partition: Arc::clone(&spot.partition),
                key: Arc::clone(&spot.key),
                body: held.body.clone().unwrap_or_default(),
                expire_time: held.expire_time,
            },
            Step::Remove(spot) if spot.kind.is_followed() => Searched::Remove {
                kind: Arc::clone(&spot.kind),
                partition: Arc::clone(&spot.partition),
                key: Arc::clone(&spot.key),
            },
            Step::RemovePartition(spot) if spot.kind.is_followed() => Searched::RemovePartition {
                kind: Arc::clone(&spot.kind),
                partition: Arc::clone(&spot.partition),
            },
            Step::RemovePrefix(spot) if spot.kind.is_followed() => Searched::RemovePrefix {
                kind: Arc::clone(&spot.kind),
                prefix: Arc::clone(&spot.partition),
            },
            Step::Erase { kinds, user } => {
                let searched = kinds.iter().filter(|kind| kind.is_followed());
                let erased = |kind: &Arc<Kind>| Searched::Erase {
                    kind: Arc::clone(kind),
                    user: user.clone(),
                };
                return searched.map(erased).collect();
            }
            _ => return Vec::new(),
        };
        vec![one]
    }
}

fn prepare_put(put: Put, ordinal: usize) -> Step {
    let content = Content {
        ordinal: ordinal as u32,
        user: put.user.into(),
        upload_id: put.upload_id.into(),
        columns: put.columns,
    };
    Step::Put {
        spot: spot(put.kind, &put.address),
        held: Held {
            content: Arc::new(content),
            expire_time: put.expire_time,
            body: Some(put.body.as_ref().into()),
        },
        replaces: put.replaces,
    }
}

fn spot(kind: Arc<Kind>, address: &Address) -> Spot {
    Spot {
        kind,
        uid: address.uid,
        partition: address.partition.as_ref().into(),
        key: address.key.as_ref().into(),
    }
}
