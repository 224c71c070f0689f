//! The share of a change that recall and the search among vectors have.

use bytes::Bytes;
use remora_recall::{Op, PartKey, Recall, Vector};
use remora_vectors::{self as vectors, Name, Vectors};

use crate::records::Searched;
use crate::windows::{Change, ChangeKind, Run};

/// What a change means to recall.
pub(super) enum Followed {
    Nothing,
    /// All parts of the conversation lose everything.
    Dropped,
    /// A user's part of the conversation changes.
    Part {
        user: String,
        op: Op,
    },
}

impl Followed {
    pub(super) fn of(change: ChangeKind) -> Self {
        let (user, op) = match change {
            ChangeKind::Put(_) | ChangeKind::Head(_) => return Self::Nothing,
            ChangeKind::Delete => return Self::Dropped,
            ChangeKind::Message(message) => {
                let encoded = message.stored.encoded();
                let vector = message
                    .embedding
                    .map(|(model, values)| Vector::new(model, values));
                (message.user, Op::Put { encoded, vector })
            }
            ChangeKind::Remove { user, sequences } => {
                let sequences = sequences.into();
                (user, Op::Remove { sequences })
            }
            ChangeKind::RemoveAll { user } => (user, Op::RemoveAll),
            ChangeKind::Embed(embed) => {
                let vector = Vector {
                    pieces: embed.pieces,
                    ..Vector::new(embed.model, embed.values)
                };
                let op = Op::Embed {
                    sequence: embed.sequence,
                    message_revision: embed.message_revision,
                    vector,
                };
                (embed.user, op)
            }
        };
        Self::Part { user, op }
    }
}

/// Delivers the changes of one conversation that concern recall.
pub(super) fn deliver(recall: &Recall, tenant: &str, run: Run, revision: u64) {
    for Change { uid, kind } in run.changes {
        match Followed::of(kind) {
            Followed::Nothing => {}
            Followed::Dropped => recall.drop_conversation(tenant, uid, revision),
            Followed::Part { user, op } => {
                let key = PartKey {
                    tenant,
                    user: &user,
                    uid,
                };
                recall.deliver(key, &run.conversation_id, op, revision);
            }
        }
    }
}

/// Delivers a change that concerns the search among vectors.
pub(super) fn deliver_searched(vectors: &Vectors, tenant: &str, change: Searched, revision: u64) {
    let deliver = |kind, partition: &[u8], op| {
        let name = Name {
            kind,
            tenant,
            partition,
        };
        vectors.deliver(&name, op, revision);
    };
    match change {
        Searched::Put {
            kind,
            partition,
            key,
            body,
        } => {
            let (key, body) = (Bytes::from_owner(key), Bytes::from_owner(body));
            deliver(kind, &partition, vectors::Op::Put { key, body });
        }
        Searched::Remove {
            kind,
            partition,
            key,
        } => {
            let key = Bytes::from_owner(key);
            deliver(kind, &partition, vectors::Op::Remove { key });
        }
        Searched::RemovePartition { kind, partition } => {
            deliver(kind, &partition, vectors::Op::RemoveAll);
        }
        Searched::RemovePrefix { kind, prefix } => {
            let prefix = Name {
                kind,
                tenant,
                partition: &prefix,
            };
            vectors.deliver_prefix(&prefix, revision);
        }
        Searched::Erase { kind, user } => vectors.deliver_user(kind, tenant, &user, revision),
    }
}
