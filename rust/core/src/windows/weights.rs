//! What the messages of a window weigh, which is known without their bodies.

use super::messages::Messages;

/// The messages of a window as a reader sees them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// The uid of the conversation; 0 if there is none.
    pub uid: u64,
    /// They show everything up to this revision at least.
    pub revision: u64,
    /// Ascending, without those of the roles that are apart.
    pub sequences: Vec<u64>,
    /// The token count of each.
    pub tokens: Vec<i32>,
    /// The newest message of a role that is apart; 0 if there is none.
    pub newest_apart: u64,
    /// Whether one of the messages may call a tool or answer a call. Those that were loaded may.
    pub may_use_tools: bool,
}

/// The weights of a user's messages from the first sequence of a window on, and of the one with the second; `uid` and
/// `revision` are left to the caller.
pub(super) fn of(
    messages: &Messages,
    user: &str,
    (first, other): (u64, u64),
    apart: &[String],
    published: u64,
) -> Weights {
    let mut weights = Weights::default();
    let Some(user) = messages.users.find(user) else {
        return weights;
    };
    let apart: Vec<u32> = apart
        .iter()
        .filter_map(|role| messages.roles.find(role))
        .collect();
    let before = messages.visible(other, other.saturating_add(1), published);
    let window = messages.visible(first, u64::MAX, published);
    for entry in before.filter(|entry| entry.sequence < first).chain(window) {
        if entry.user != user {
            continue;
        }
        if apart.contains(&entry.role) {
            weights.newest_apart = entry.sequence;
            continue;
        }
        weights.sequences.push(entry.sequence);
        weights.tokens.push(entry.token_count);
        weights.may_use_tools |= entry.may_use_tools;
    }
    weights
}
