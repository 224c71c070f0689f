//! Recall against a store in plain maps and naive searches of it.

mod corrections;
mod filters;
mod loads;
mod model;
pub(super) mod naive;
mod phrases;
mod rules;
mod scores;

use bytes::Bytes;
use model::conversation;

use super::{Op, PartKey, Recall, Vector};

/// The changes that writes deliver.
impl Recall {
    fn put(
        &self,
        key: PartKey<'_>,
        conversation_id: &str,
        encoded: Bytes,
        vector: Option<Vector>,
        revision: u64,
    ) {
        let op = Op::Put { encoded, vector };
        self.deliver(key, conversation_id, op, revision);
    }

    fn remove(&self, key: PartKey<'_>, sequences: &[u64], revision: u64) {
        let sequences = sequences.into();
        self.deliver(
            key,
            &conversation(key.uid),
            Op::Remove { sequences },
            revision,
        );
    }
}
