//! Changes that wait for a part: accepted in order, taken in when a reader comes.

use std::collections::VecDeque;

use bytes::Bytes;

/// One change of a part.
#[derive(Debug, Clone)]
pub enum Op {
    /// A vector is added or replaced: its key and its encoded stored form.
    Put { key: Bytes, body: Bytes },
    /// The vector with this key goes.
    Remove { key: Bytes },
    /// All vectors go.
    RemoveAll,
}

impl Op {
    /// The memory held while it waits, in bytes.
    fn bytes(&self) -> usize {
        let heap = match self {
            Self::Put { key, body } => key.len() + body.len(),
            Self::Remove { key } => key.len(),
            Self::RemoveAll => 0,
        };
        size_of::<(u64, Self)>() + heap
    }
}

/// Changes with their revisions, in order.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    ops: VecDeque<(u64, Op)>,
    bytes: usize,
}

impl Inbox {
    /// Adds a change whose revision is at least that of the last.
    pub(crate) fn push(&mut self, revision: u64, op: Op) {
        self.bytes += op.bytes();
        self.ops.push_back((revision, op));
    }

    /// Whether changes up to a revision wait.
    pub(crate) fn has_up_to(&self, revision: u64) -> bool {
        self.ops
            .front()
            .is_some_and(|(first, _)| *first <= revision)
    }

    /// Takes the changes up to a revision.
    pub(crate) fn take_up_to(&mut self, revision: u64) -> Vec<Op> {
        let count = self.ops.partition_point(|(other, _)| *other <= revision);
        let ops: Vec<_> = self.ops.drain(..count).map(|(_, op)| op).collect();
        self.bytes -= ops.iter().map(Op::bytes).sum::<usize>();
        ops
    }

    /// The memory that the changes hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
