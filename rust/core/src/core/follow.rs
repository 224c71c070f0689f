//! Recall's share of a change.

use remora_recall::{Op, PartKey, Recall, Vector};

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
