//! Recall's share of a change.

use crate::recall::{Recall, ThreadKey, Vector};
use crate::windows::{Change, ChangeKind, Run};

/// Delivers the changes of one conversation that concern recall.
pub(super) fn deliver(recall: &Recall, tenant: &str, run: Run, revision: u64) {
    for change in run.changes {
        deliver_one(recall, tenant, &run.conversation_id, change, revision);
    }
}

fn deliver_one(
    recall: &Recall,
    tenant: &str,
    conversation_id: &str,
    change: Change,
    revision: u64,
) {
    let uid = change.uid;
    match change.kind {
        ChangeKind::Put(_) | ChangeKind::Head(_) => {}
        ChangeKind::Delete => recall.drop_conversation(tenant, uid, revision),
        ChangeKind::Message(message) => {
            let key = thread(tenant, &message.user, uid);
            let encoded = message.stored.encoded();
            let vector = message
                .embedding
                .map(|(model, values)| Vector::new(model, values));
            recall.put(key, conversation_id, encoded, vector, revision);
        }
        ChangeKind::Remove { user, sequences } => {
            recall.remove(thread(tenant, &user, uid), &sequences, revision);
        }
        ChangeKind::RemoveAll { user } => recall.remove_all(thread(tenant, &user, uid), revision),
        ChangeKind::Embed(embed) => recall.embed(
            thread(tenant, &embed.user, uid),
            embed.sequence,
            embed.message_revision,
            Vector {
                pieces: embed.pieces,
                ..Vector::new(embed.model, embed.values)
            },
            revision,
        ),
    }
}

fn thread<'a>(tenant: &'a str, user: &'a str, uid: u64) -> ThreadKey<'a> {
    ThreadKey { tenant, user, uid }
}
