//! Changes that wait for a part: accepted in order, applied when a reader comes.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::values::Vector;

/// One change of a part.
#[derive(Debug, Clone)]
pub enum Op {
    /// A message is added or replaced: its encoded stored form and its caller's vector.
    Put {
        encoded: Bytes,
        vector: Option<Vector>,
    },
    /// The messages at these sequences go.
    Remove { sequences: Box<[u64]> },
    /// All messages go.
    RemoveAll,
    /// The message at `sequence` gets a vector, if it is still of `message_revision`.
    Embed {
        sequence: u64,
        message_revision: u64,
        vector: Vector,
    },
}

impl Op {
    /// The memory held while it waits, in bytes.
    fn bytes(&self) -> usize {
        let heap = match self {
            Self::Put { encoded, vector } => {
                encoded.len() + vector.as_ref().map_or(0, vector_bytes)
            }
            Self::Remove { sequences } => size_of_val::<[u64]>(sequences),
            Self::RemoveAll => 0,
            Self::Embed { vector, .. } => vector_bytes(vector),
        };
        size_of::<(u64, Self)>() + heap
    }
}

fn vector_bytes(vector: &Vector) -> usize {
    vector.model.len() + vector.values.len() + vector.pieces.len()
}

/// Changes with their revisions, in order.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    ops: VecDeque<(u64, Op)>,
}

impl Inbox {
    /// Adds a change whose revision is at least that of the last; returns the bytes that it holds.
    pub(crate) fn push(&mut self, revision: u64, op: Op) -> usize {
        let bytes = op.bytes();
        self.ops.push_back((revision, op));
        bytes
    }

    /// Takes the changes up to `revision`, with the bytes that they held.
    pub(crate) fn take_up_to(&mut self, revision: u64) -> (Vec<(u64, Op)>, usize) {
        let count = self.ops.partition_point(|(other, _)| *other <= revision);
        let ops: Vec<_> = self.ops.drain(..count).collect();
        let bytes = ops.iter().map(|(_, op)| op.bytes()).sum();
        (ops, bytes)
    }
}

/// Changes of a part that the store does not hold yet, in the order of their revisions.
#[derive(Debug, Default, Clone)]
pub struct Later(Vec<(u64, Op)>);

impl Later {
    pub fn push(&mut self, revision: u64, op: Op) {
        self.0.push((revision, op));
    }

    pub(crate) fn into_ops(self) -> impl Iterator<Item = (u64, Op)> {
        self.0.into_iter()
    }
}
