//! The model: every state of the conversations, by revision.

use std::collections::BTreeMap;

use bytes::Bytes;
use remora_wire::Between;

use crate::windows::{Head, LoadedMessage, Page, Selection};

#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) revision: u64,
    pub(super) user: String,
    pub(super) id: String,
    pub(super) role: String,
    pub(super) create_time: i64,
    pub(super) sent_time: i64,
    pub(super) token_count: i32,
    pub(super) uses_tools: bool,
    pub(super) body: Bytes,
}

#[derive(Clone, Debug)]
pub(super) struct Conversation {
    pub(super) head: Head,
    pub(super) messages: BTreeMap<u64, Message>,
}

/// The conversations that exist, by number.
pub(super) type State = BTreeMap<usize, Conversation>;

/// `states[r]` is what revision r left.
#[derive(Debug)]
pub(super) struct History {
    pub(super) states: Vec<State>,
    pub(super) published: u64,
    pub(super) applied: u64,
}

impl History {
    pub(super) fn new() -> Self {
        Self {
            states: vec![State::new()],
            published: 0,
            applied: 0,
        }
    }

    pub(super) fn last(&self) -> u64 {
        self.states.len() as u64 - 1
    }

    pub(super) fn at(&self, revision: u64) -> &State {
        &self.states[revision as usize]
    }

    pub(super) fn accepted(&self) -> &State {
        self.at(self.last())
    }
}

impl Conversation {
    pub(super) fn of<'a>(&'a self, user: &'a str) -> impl Iterator<Item = (&'a u64, &'a Message)> {
        self.messages.iter().filter(move |(_, m)| m.user == user)
    }

    pub(super) fn find(&self, user: &str, id: &str) -> Option<u64> {
        let mut found = self.of(user).filter(|(_, m)| m.id == id);
        found.next().map(|(sequence, _)| *sequence)
    }

    pub(super) fn rows(&self) -> Vec<LoadedMessage<'_>> {
        let rows = self.messages.iter().map(|(sequence, m)| LoadedMessage {
            sequence: *sequence,
            revision: m.revision,
            user: &m.user,
            id: &m.id,
            role: &m.role,
            create_time: m.create_time,
            sent_time: m.sent_time,
            token_count: m.token_count,
        });
        rows.collect()
    }

    /// The page of a selection, as if everything were in memory.
    pub(super) fn list(&self, selection: &Selection) -> Page {
        let mut passing: Vec<_> = self
            .of(&selection.user)
            .filter(|(sequence, m)| passes(selection, **sequence, m))
            .collect();
        let more = passing.len() > selection.limit;
        if more && selection.newest {
            passing.drain(..passing.len() - selection.limit);
        }
        passing.truncate(selection.limit);
        Page {
            uid: self.head.uid,
            count: passing.len(),
            first_sequence: passing.first().map_or(0, |(sequence, _)| **sequence),
            last_sequence: passing.last().map_or(0, |(sequence, _)| **sequence),
            tokens: passing.iter().map(|(_, m)| i64::from(m.token_count)).sum(),
            more,
            bodies: passing.iter().map(|(_, m)| m.body.clone()).collect(),
            ..Page::default()
        }
    }
}

fn passes(selection: &Selection, sequence: u64, message: &Message) -> bool {
    (selection.roles.is_empty() || selection.roles.contains(&message.role))
        && within(selection.sent, message.sent_time)
        && within(selection.received, message.create_time)
        && selection
            .after_sequence
            .is_none_or(|after| sequence > after)
        && selection
            .before_sequence
            .is_none_or(|before| sequence < before)
        && (sequence >= selection.window.0 || sequence == selection.window.1)
}

fn within(bounds: Between, time: i64) -> bool {
    bounds.after.is_none_or(|after| time > after)
        && bounds.before.is_none_or(|before| time < before)
}
