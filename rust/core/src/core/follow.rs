//! Delivers the parts of a change that concern recall and the searches among vectors and items.

use bytes::Bytes;
use remora_items::{self as items, Items};
use remora_recall::{Op, PartKey, Recall, Vector};
use remora_vectors::{self as vectors, Name, Vectors};

use crate::records::{Kind, Searched};
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

/// Delivers a change that concerns the search among vectors, or among items.
pub(super) fn deliver_searched(
    (vectors, items): (&Vectors, &Items),
    tenant: &str,
    change: Searched,
    revision: u64,
) {
    if change.kind().holds_items {
        let kind = change.kind().number;
        items.deliver(kind, tenant, item_op(change, revision), revision);
    } else {
        deliver_vectors(vectors, tenant, change, revision);
    }
}

fn item_op(change: Searched, revision: u64) -> items::Op {
    match change {
        Searched::Put {
            partition,
            key,
            body,
            expire_time,
            ..
        } => items::Op::Put(items::Put {
            namespace: Bytes::from_owner(partition),
            key: Bytes::from_owner(key),
            body: Bytes::from_owner(body),
            revision,
            expire_time,
        }),
        Searched::Remove { partition, key, .. } => items::Op::Remove {
            namespace: Bytes::from_owner(partition),
            key: Bytes::from_owner(key),
        },
        Searched::RemovePartition { partition, .. } => items::Op::RemoveNamespace {
            namespace: Bytes::from_owner(partition),
        },
        Searched::RemovePrefix { prefix, .. } => items::Op::RemovePrefix {
            prefix: Bytes::from_owner(prefix),
        },
        Searched::Erase { user, .. } => items::Op::RemoveUser { user },
    }
}

fn deliver_vectors(vectors: &Vectors, tenant: &str, change: Searched, revision: u64) {
    let deliver = |kind: &Kind, partition: &[u8], op| {
        let name = Name {
            kind: kind.number,
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
            ..
        } => {
            let (key, body) = (Bytes::from_owner(key), Bytes::from_owner(body));
            deliver(&kind, &partition, vectors::Op::Put { key, body });
        }
        Searched::Remove {
            kind,
            partition,
            key,
        } => {
            let key = Bytes::from_owner(key);
            deliver(&kind, &partition, vectors::Op::Remove { key });
        }
        Searched::RemovePartition { kind, partition } => {
            deliver(&kind, &partition, vectors::Op::RemoveAll);
        }
        Searched::RemovePrefix { kind, prefix } => {
            let prefix = Name {
                kind: kind.number,
                tenant,
                partition: &prefix,
            };
            vectors.deliver_prefix(&prefix, revision);
        }
        Searched::Erase { kind, user } => {
            vectors.deliver_user(kind.number, tenant, &user, revision);
        }
    }
}
