//! Random histories: what windows show is what the model held at the accepted and at the published revision.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use remora_wire::Between;

use super::history::{Conversation, History, Message, State};
use crate::windows::*;

const TENANT: &str = "acme";
const CONVERSATIONS: usize = 2;
const USERS: [&str; 2] = ["ann", "bob"];
const ROLES: [&str; 3] = ["user", "assistant", "tool"];
const BOUNDS: Bounds = Bounds {
    total_bytes: 1,
    body_bytes: 400,
    bodies: 4,
    gaps: 1,
};

#[derive(Clone, Debug)]
enum Step {
    /// A record of changes to one conversation, planned from what is accepted.
    Write(usize, Vec<Edit>),
    /// A record that is not planned: the conversation need not be resident.
    Clear(usize, usize),
    Publish(u64),
    Apply(u64),
    /// Everything that may be evicted is.
    Cool,
    List(usize, Box<Selection>),
}

#[derive(Clone, Debug)]
enum Edit {
    Append {
        user: usize,
        role: usize,
        len: usize,
    },
    Replace {
        pick: usize,
        role: usize,
        len: usize,
    },
    Remove {
        picks: Vec<usize>,
    },
    RemoveAll {
        user: usize,
    },
    Row,
    Delete,
}

fn edits() -> impl Strategy<Value = Edit> {
    let append = || (0..2_usize, 0..3_usize, 0..80_usize);
    prop_oneof![
        24 => append().prop_map(|(user, role, len)| Edit::Append { user, role, len }),
        8 => (0..99_usize, 0..3_usize, 0..200_usize)
            .prop_map(|(pick, role, len)| Edit::Replace { pick, role, len }),
        6 => prop::collection::vec(0..99_usize, 1..6).prop_map(|picks| Edit::Remove { picks }),
        1 => (0..2_usize).prop_map(|user| Edit::RemoveAll { user }),
        1 => Just(Edit::Row),
        1 => Just(Edit::Delete),
    ]
}

fn spans() -> impl Strategy<Value = Between> {
    let bound = || prop::option::of((0..30_i64).prop_map(|at| at * 1_000));
    (bound(), bound()).prop_map(Between::from)
}

fn selections() -> impl Strategy<Value = Selection> {
    let bound = || prop::option::of(0..30_u64);
    let roles = prop::sample::subsequence(ROLES.to_vec(), 0..=3);
    let sequences = (bound(), bound());
    // A message before the window, or none, as most windows have.
    let windows = prop_oneof![
        3 => Just((0, 0)),
        1 => (0..30_u64).prop_map(|first| (first, 0)),
        1 => (2..30_u64, 1..30_u64).prop_map(|(first, other)| (first, other % first)),
    ];
    (
        0..2_usize,
        roles,
        (spans(), spans()),
        sequences,
        windows,
        any::<bool>(),
        0..12_usize,
    )
        .prop_map(
            |(user, roles, (sent, received), sequences, window, newest, limit)| Selection {
                user: USERS[user].to_owned(),
                roles: roles.into_iter().map(str::to_owned).collect(),
                sent,
                received,
                after_sequence: sequences.0,
                before_sequence: sequences.1,
                window,
                newest,
                limit,
                max_bytes: usize::MAX,
            },
        )
}

fn steps() -> impl Strategy<Value = Step> {
    let conversation = || 0..CONVERSATIONS;
    prop_oneof![
        8 => (conversation(), prop::collection::vec(edits(), 1..9))
            .prop_map(|(conversation, edits)| Step::Write(conversation, edits)),
        1 => (conversation(), 0..2_usize).prop_map(|(conversation, user)| Step::Clear(conversation, user)),
        4 => (0..4_u64).prop_map(Step::Publish),
        3 => (0..4_u64).prop_map(Step::Apply),
        2 => Just(Step::Cool),
        4 => (conversation(), selections().prop_map(Box::new))
            .prop_map(|(conversation, selection)| Step::List(conversation, selection)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn windows_show_what_was_accepted_and_what_is_published(steps in prop::collection::vec(steps(), 1..50)) {
        let mut harness = Harness::new();
        for step in &steps {
            harness.run(step);
            harness.check();
        }
    }
}

struct Harness {
    windows: Windows,
    history: History,
}

fn name(conversation: usize) -> String {
    format!("conversation-{conversation}")
}

impl Harness {
    fn new() -> Self {
        Self {
            windows: Windows::new(BOUNDS, 0),
            history: History::new(),
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write(conversation, edits) => self.write(*conversation, edits),
            Step::Clear(conversation, user) => {
                if self.history.accepted().contains_key(conversation) {
                    self.commit(*conversation, &[Edit::RemoveAll { user: *user }]);
                }
            }
            Step::Publish(count) => {
                let published = self.history.published + count;
                self.history.published = published.min(self.history.last());
            }
            Step::Apply(count) => {
                let applied = self.history.applied + count;
                self.history.applied = applied.min(self.history.published);
                self.mark_applied();
            }
            Step::Cool => self.cool(),
            Step::List(conversation, selection) => {
                self.ensure(*conversation);
                self.check_page(*conversation, selection);
                self.check_weights(*conversation, selection);
            }
        }
    }

    fn mark_applied(&self) {
        let History {
            applied, published, ..
        } = self.history;
        self.windows.mark_applied(applied, published);
        if applied == self.history.last() {
            (0..CONVERSATIONS).for_each(|conversation| self.check_bounds(conversation));
        }
    }

    /// What the database has not is in memory.
    fn check_unapplied(&self, conversation: usize) {
        let Ok(Some(resident)) = self.windows.resident(TENANT, &name(conversation)) else {
            return;
        };
        let state = resident.read();
        let messages = state
            .accepted()
            .into_iter()
            .flat_map(|(_, messages)| messages.live());
        let mut unapplied = messages.filter(|entry| entry.added > self.history.applied);
        assert!(unapplied.all(|entry| entry.body.is_some()));
    }

    /// Once everything is applied, no conversation holds more bodies than it may.
    fn check_bounds(&self, conversation: usize) {
        let key = self.windows.key(TENANT, &name(conversation));
        let resident = self.windows.shard(key).lock().residents.get(&key).cloned();
        let Some(resident) = resident else {
            return;
        };
        let state = resident.read();
        let messages = state
            .accepted()
            .into_iter()
            .flat_map(|(_, messages)| messages.live());
        let bodies: Vec<_> = messages.filter_map(|entry| entry.body.as_ref()).collect();
        assert!(bodies.len() <= BOUNDS.bodies);
        assert!(bodies.iter().map(|body| body.len()).sum::<usize>() <= BOUNDS.body_bytes);
    }

    fn cool(&self) {
        let filler = StoredConversation::default();
        let loaded = self.windows.load(TENANT, "filler", u64::MAX, filler, &[]);
        assert!(self.windows.admit(loaded.unwrap()));
        for _ in 0..=RECENT_USES {
            self.windows.residency(TENANT, "filler");
        }
        self.mark_applied();
        for conversation in 0..CONVERSATIONS {
            let key = self.windows.key(TENANT, &name(conversation));
            let shard = self.windows.shard(key).lock();
            if let Some(left) = shard.residents.get(&key) {
                assert!(left.touched.load(Ordering::Relaxed) > self.history.applied);
            }
        }
    }

    /// Loads a conversation that is cold, as it was applied; once everything is applied that succeeds.
    fn ensure(&mut self, conversation: usize) {
        if self.windows.residency(TENANT, &name(conversation)) != Residency::Cold
            || self.load(conversation)
        {
            return;
        }
        self.history.published = self.history.last();
        self.history.applied = self.history.last();
        self.mark_applied();
        assert!(self.load(conversation));
    }

    fn load(&self, conversation: usize) -> bool {
        let applied = self.history.applied;
        let found = self.history.at(applied).get(&conversation);
        let head = found.map(|found| found.head.clone());
        let rows = found.map(Conversation::rows).unwrap_or_default();
        let bodies = found.iter().flat_map(|found| found.messages.values());
        let bodies: Vec<_> = bodies.map(|m| m.body.clone()).collect();
        let newest = bodies[bodies.len().saturating_sub(3)..].to_vec();
        let name = name(conversation);
        let stored = StoredConversation {
            head,
            messages: &rows,
            bodies: newest,
        };
        let loaded = self.windows.load(TENANT, &name, applied, stored, &[]);
        self.windows.admit(loaded.unwrap())
    }

    fn write(&mut self, conversation: usize, edits: &[Edit]) {
        self.ensure(conversation);
        self.commit(conversation, edits);
    }

    /// Applies a record to the model and to the windows.
    fn commit(&mut self, conversation: usize, edits: &[Edit]) {
        let revision = self.history.last() + 1;
        let mut state = self.history.accepted().clone();
        let mut recorder = Recorder {
            fingerprints: self.windows.fingerprints(),
            conversation,
            revision,
            changes: Vec::new(),
        };
        for edit in edits {
            recorder.edit(&mut state, edit);
        }
        recorder.finish(&mut state);
        let run = Run {
            key: self.windows.key(TENANT, &name(conversation)),
            conversation_id: name(conversation),
            changes: recorder.changes,
        };
        self.history.states.push(state);
        self.windows.apply(&run, revision, self.history.published);
    }

    fn check_published(&self, conversation: usize) {
        for user in USERS {
            self.check_page(conversation, &everything_of(user));
        }
    }

    /// The weights are those of the messages that a list has, and tools are never overlooked.
    fn check_weights(&self, conversation: usize, selection: &Selection) {
        let published = self.history.published;
        let (user, window) = (selection.user.as_str(), selection.window);
        let apart = [ROLES[2].to_owned()];
        let name = name(conversation);
        let weights = self
            .windows
            .weigh(TENANT, &name, user, window, &apart, || published);
        let weights = weights.unwrap();
        let seen = self.history.at(published).get(&conversation);
        let listed: Vec<_> = seen
            .iter()
            .flat_map(|seen| seen.of(user))
            .filter(|(sequence, _)| **sequence >= window.0 || **sequence == window.1)
            .collect();
        let (kept_apart, counted): (Vec<_>, Vec<_>) = listed
            .into_iter()
            .partition(|(_, m)| apart.contains(&m.role));
        let uses_tools = counted.iter().any(|(_, m)| m.uses_tools);
        assert!(weights.may_use_tools || !uses_tools);
        let expected = Weights {
            uid: seen.map_or(0, |seen| seen.head.uid),
            revision: published,
            sequences: counted.iter().map(|(sequence, _)| **sequence).collect(),
            tokens: counted.iter().map(|(_, m)| m.token_count).collect(),
            newest_apart: kept_apart.last().map_or(0, |(sequence, _)| **sequence),
            may_use_tools: weights.may_use_tools,
        };
        assert_eq!(weights, expected);
    }

    fn check_page(&self, conversation: usize, selection: &Selection) {
        let published = self.history.published;
        let listed = self
            .windows
            .list_messages(TENANT, &name(conversation), selection, || published);
        let seen = self.history.at(published).get(&conversation);
        let expected = seen.map(|seen| seen.list(selection)).unwrap_or_default();
        self.compare(listed.unwrap(), expected);
    }

    /// A page is what the model says, but for bodies that are left to the database, which has them.
    fn compare(&self, listed: Page, expected: Page) {
        assert_eq!(listed.revision, self.history.published);
        assert!(listed.missing_revision <= self.history.published);
        assert!(listed.missing.is_sorted());
        assert_eq!(listed.bodies, expected.bodies[listed.missing.len()..]);
        let shown = Page {
            revision: 0,
            missing: Vec::new(),
            missing_revision: 0,
            bodies: expected.bodies.clone(),
            ..listed
        };
        assert_eq!(shown, expected);
    }

    /// Every resident conversation shows what it should, and all memory is counted.
    fn check(&self) {
        for conversation in 0..CONVERSATIONS {
            if self.windows.residency(TENANT, &name(conversation)) != Residency::Cold {
                self.check_heads(conversation);
                self.check_accepted(conversation);
                self.check_published(conversation);
                self.check_unapplied(conversation);
            }
        }
        let shards = self.windows.shards.iter();
        let counted = shards.map(|shard| {
            let residents = &shard.lock().residents;
            residents
                .values()
                .map(|c| c.bytes.load(Ordering::Relaxed))
                .sum::<usize>()
        });
        assert_eq!(self.windows.bytes(), counted.sum::<usize>());
    }

    fn check_heads(&self, conversation: usize) {
        let name = name(conversation);
        let head = |state: &State| state.get(&conversation).map(|found| found.head.clone());
        let accepted = self.windows.accepted_head(TENANT, &name).unwrap();
        assert_eq!(accepted.as_deref().cloned(), head(self.history.accepted()));
        let published = self.history.published;
        let seen = self
            .windows
            .published_head(TENANT, &name, || published)
            .unwrap();
        assert_eq!(seen.as_deref().cloned(), head(self.history.at(published)));
    }

    fn check_accepted(&self, conversation: usize) {
        let name = name(conversation);
        let none = BTreeMap::new();
        let found = self.history.accepted().get(&conversation);
        let messages = found.map_or(&none, |found| &found.messages);
        let all: Vec<u64> = messages.keys().copied().collect();
        assert_eq!(
            self.windows.live_sequences(TENANT, &name, None).unwrap(),
            all
        );
        let oldest = self.windows.oldest_messages(TENANT, &name, 3).unwrap();
        let expected = messages
            .iter()
            .take(3)
            .map(|(sequence, m)| (*sequence, m.user.as_str().into()));
        assert_eq!(oldest, expected.collect::<Vec<_>>());
        for user in USERS {
            let live = self
                .windows
                .live_sequences(TENANT, &name, Some(user))
                .unwrap();
            let expected = found.map(|found| found.of(user).map(|(sequence, _)| *sequence));
            let expected: Vec<u64> = expected.into_iter().flatten().collect();
            assert_eq!(live, expected);
            let ids: Vec<String> = (1..30).map(|n| format!("m{n}")).collect();
            let places = self
                .windows
                .find_messages(TENANT, &name, user, &ids)
                .unwrap();
            let place = |id| {
                let sequence = found?.find(user, id)?;
                Some((sequence, messages[&sequence].create_time))
            };
            assert_eq!(places, ids.iter().map(|id| place(id)).collect::<Vec<_>>());
        }
    }
}

/// Applies edits to the model and writes down the changes that a record of them holds.
struct Recorder<'a> {
    fingerprints: &'a Fingerprints,
    conversation: usize,
    revision: u64,
    changes: Vec<Change>,
}

impl Recorder<'_> {
    fn edit(&mut self, state: &mut State, edit: &Edit) {
        let found = state.entry(self.conversation);
        let revision = self.revision;
        let mut created = false;
        let conversation = found.or_insert_with(|| {
            created = true;
            new_conversation(revision)
        });
        if created {
            self.push(conversation.head.uid, ChangeKind::Put(row()));
        }
        let uid = conversation.head.uid;
        match edit {
            Edit::Append { user, role, len } => {
                conversation.head.last_sequence += 1;
                let sequence = conversation.head.last_sequence;
                let id = format!("m{sequence}");
                self.put(
                    conversation,
                    sequence,
                    USERS[*user],
                    &id,
                    ROLES[*role],
                    *len,
                );
            }
            Edit::Replace { pick, role, len } => {
                if let Some(sequence) = picked(conversation, *pick) {
                    let Message { user, id, .. } = conversation.messages[&sequence].clone();
                    self.put(conversation, sequence, &user, &id, ROLES[*role], *len);
                }
            }
            Edit::Remove { picks } => {
                let picks = picks.iter().filter_map(|pick| picked(conversation, *pick));
                let sequences: Vec<u64> = picks.collect();
                conversation
                    .messages
                    .retain(|sequence, _| !sequences.contains(sequence));
                let user = String::new();
                self.push(uid, ChangeKind::Remove { user, sequences });
            }
            Edit::RemoveAll { user } => {
                let user = USERS[*user].to_owned();
                conversation
                    .messages
                    .retain(|_, message| message.user != user);
                self.push(uid, ChangeKind::RemoveAll { user });
            }
            Edit::Row => {
                conversation.head.revision = revision;
                self.push(uid, ChangeKind::Put(row()));
            }
            // One that is created by the same record would have its uid.
            Edit::Delete if uid == revision => {}
            Edit::Delete => {
                state.remove(&self.conversation);
                self.push(uid, ChangeKind::Delete);
            }
        }
    }

    fn put(
        &mut self,
        conversation: &mut Conversation,
        at: u64,
        user: &str,
        id: &str,
        role: &str,
        len: usize,
    ) {
        let mut body = format!("{}/{}/{at}/", self.conversation, self.revision).into_bytes();
        body.resize(body.len() + len, b'.');
        let body = Bytes::from(body);
        let kind = ChangeKind::Message(Box::new(PutMessage {
            user: user.to_owned(),
            id: self.fingerprints.of([user, id]),
            role: role.to_owned(),
            sequence: at,
            create_time: at as i64 * 1_000,
            sent_time: sent_time(at),
            token_count: at as i32,
            uses_tools: len.is_multiple_of(8),
            stored: Stored::Sealed(body.clone()),
            embedding: None,
        }));
        self.push(conversation.head.uid, kind);
        let message = Message {
            revision: self.revision,
            user: user.to_owned(),
            id: id.to_owned(),
            role: role.to_owned(),
            create_time: at as i64 * 1_000,
            sent_time: sent_time(at),
            token_count: at as i32,
            uses_tools: len.is_multiple_of(8),
            body,
        };
        conversation.messages.insert(at, message);
    }

    /// Ends the record with the conversation's counters.
    fn finish(&mut self, state: &mut State) {
        let Some(conversation) = state.get_mut(&self.conversation) else {
            return;
        };
        let head = &mut conversation.head;
        head.message_count = conversation.messages.len() as i64;
        head.update_time = self.revision as i64;
        head.revision = self.revision;
        let counters = Counters {
            last_sequence: head.last_sequence,
            message_count: head.message_count,
            last_time: head.last_time,
            update_time: head.update_time,
        };
        let uid = head.uid;
        self.push(uid, ChangeKind::Head(counters));
    }

    fn push(&mut self, uid: u64, kind: ChangeKind) {
        self.changes.push(Change { uid, kind });
    }
}

/// Not in the order of sequences, as callers' clocks are.
fn sent_time(at: u64) -> i64 {
    (at * 7 % 30) as i64 * 1_000
}

fn picked(conversation: &Conversation, pick: usize) -> Option<u64> {
    let count = conversation.messages.len();
    let sequence = conversation.messages.keys().nth(pick.checked_rem(count)?)?;
    Some(*sequence)
}

fn everything_of(user: &str) -> Selection {
    Selection {
        user: user.to_owned(),
        roles: Vec::new(),
        sent: Between::default(),
        received: Between::default(),
        after_sequence: None,
        before_sequence: None,
        window: (0, 0),
        newest: true,
        limit: usize::MAX,
        max_bytes: usize::MAX,
    }
}

fn row() -> PutRow {
    PutRow {
        user: USERS[0].to_owned(),
        body: Bytes::from_static(b"row"),
        create_time: 5,
    }
}

fn new_conversation(uid: u64) -> Conversation {
    let head = Head {
        uid,
        user_id: USERS[0].into(),
        body: Bytes::from_static(b"row"),
        create_time: 5,
        last_sequence: 0,
        message_count: 0,
        last_time: 0,
        update_time: 5,
        revision: uid,
    };
    Conversation {
        head,
        messages: BTreeMap::new(),
    }
}
