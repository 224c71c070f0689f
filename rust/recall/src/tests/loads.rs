//! Loads, evictions and deliveries in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use remora_kernels::Kernels;

use super::model::{
    MODEL, Question, RULES, Row, Rows, Store, TENANT, conversation, key, places, recall, vector,
};
use crate::{Later, Op, Profile, Progress, Recall, Scope, StoredDocuments, Weights};

const USERS: [&str; 2] = ["ann", "bob"];
const WORDS: [&str; 5] = ["river", "boat?", "market", "lantern yesterday", "garden"];
const SPEAKERS: [&str; 3] = ["", "Ada", "Grace"];

/// One step of a history. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Put {
        user: usize,
        uid: u64,
        sequence: u64,
        word: usize,
        speaker: usize,
        values: Option<[i8; 2]>,
    },
    Remove {
        user: usize,
        uid: u64,
        sequences: Vec<u64>,
    },
    RemoveAll {
        user: usize,
        uid: u64,
    },
    Drop {
        uid: u64,
    },
    Embed {
        user: usize,
        uid: u64,
        sequence: u64,
        stale: bool,
        values: [i8; 2],
    },
    Begin {
        user: usize,
        uid: u64,
    },
    BeginUser {
        user: usize,
    },
    /// The store gets what was delivered so far; until then it can be read without that.
    Apply,
    /// The store is read for the load: what it has by now, or what it had when it was applied to, and what it lacks.
    Read {
        load: usize,
        lagging: bool,
    },
    /// A load takes what was read through a sequence, and then reads the store anew.
    FillChunk {
        load: usize,
        through: u64,
    },
    Finish {
        load: usize,
    },
    Abandon {
        load: usize,
    },
    Evict {
        user: usize,
        uid: u64,
    },
    Search {
        user: usize,
        uid: Option<u64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let user = || 0..USERS.len();
    let uid = || 1u64..4;
    let values = || [-2i8..3, -2i8..3];
    prop_oneof![
        6 => (user(), uid(), 1u64..9, (0..WORDS.len(), 0..SPEAKERS.len()), prop::option::of(values()))
            .prop_map(|(user, uid, sequence, (word, speaker), values)| Step::Put { user, uid, sequence, word, speaker, values }),
        2 => (user(), uid(), prop::collection::vec(1u64..9, 0..4))
            .prop_map(|(user, uid, sequences)| Step::Remove { user, uid, sequences }),
        1 => (user(), uid()).prop_map(|(user, uid)| Step::RemoveAll { user, uid }),
        1 => uid().prop_map(|uid| Step::Drop { uid }),
        4 => (user(), uid(), 1u64..9, any::<bool>(), values())
            .prop_map(|(user, uid, sequence, stale, values)| Step::Embed { user, uid, sequence, stale, values }),
        3 => (user(), uid()).prop_map(|(user, uid)| Step::Begin { user, uid }),
        2 => user().prop_map(|user| Step::BeginUser { user }),
        2 => Just(Step::Apply),
        4 => (0usize..8, any::<bool>()).prop_map(|(load, lagging)| Step::Read { load, lagging }),
        4 => (0usize..8, 1u64..9).prop_map(|(load, through)| Step::FillChunk { load, through }),
        4 => (0usize..8).prop_map(|load| Step::Finish { load }),
        1 => (0usize..8).prop_map(|load| Step::Abandon { load }),
        2 => (user(), uid()).prop_map(|(user, uid)| Step::Evict { user, uid }),
        2 => (user(), prop::option::of(uid())).prop_map(|(user, uid)| Step::Search { user, uid }),
    ]
}

/// A load under way.
#[derive(Debug)]
struct Load {
    user: &'static str,
    /// The part; `None` for all of the user.
    uid: Option<u64>,
    /// The parts that must be filled, and the sequence through which each is loaded; of a user's load, once they are known.
    loaded: Option<BTreeMap<u64, u64>>,
    /// What the store held of these parts when it was read, and what it lacked.
    read: Option<BTreeMap<u64, (Rows, Later)>>,
}

impl Load {
    fn fill(&self, recall: &Recall, through: Option<u64>) {
        let parts = self.loaded.iter().flatten();
        for ((uid, loaded), (rows, later)) in parts.zip(self.read.iter().flat_map(BTreeMap::values))
        {
            let stored = Store::chunk(rows, *loaded, through);
            recall.fill_part(
                TENANT,
                self.user,
                *uid,
                &conversation(*uid),
                stored,
                later.clone(),
            );
        }
    }
}

/// A recall and the store that it follows.
struct World {
    recall: Recall,
    store: Store,
    /// An older state of the store, and what came after it: whose (`None`: everybody's) part of which conversation.
    applied: Store,
    unapplied: Vec<(u64, Option<String>, u64, Op)>,
    revision: u64,
    loads: Vec<Load>,
}

impl World {
    fn new() -> Self {
        Self {
            recall: recall(),
            store: Store::default(),
            applied: Store::default(),
            unapplied: Vec::new(),
            revision: 0,
            loads: Vec::new(),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Put {
                user,
                uid,
                sequence,
                word,
                speaker,
                values,
            } => {
                let row = Row {
                    name: SPEAKERS[speaker].to_owned(),
                    time: sequence as i64 * 2 * 3_600_000_000,
                    session_id: ["", "one"][speaker % 2].to_owned(),
                    ..Row::new(sequence, 0, WORDS[word])
                };
                self.put(USERS[user], uid, row, values);
            }
            Step::Remove {
                user,
                uid,
                sequences,
            } => self.remove(USERS[user], uid, &sequences),
            Step::RemoveAll { user, uid } => self.remove_all(USERS[user], uid),
            Step::Drop { uid } => self.drop_conversation(uid),
            Step::Embed {
                user,
                uid,
                sequence,
                stale,
                values,
            } => {
                self.embed(USERS[user], uid, sequence, stale, values);
            }
            Step::Begin { user, uid } => self.begin(USERS[user], uid),
            Step::BeginUser { user } => self.begin_user(USERS[user]),
            Step::Apply => {
                self.applied = self.store.clone();
                self.unapplied.clear();
            }
            Step::Read { load, lagging } => self.read(load, lagging),
            Step::FillChunk { load, through } => self.fill_chunk(load, through),
            Step::Finish { load } => self.finish(load),
            Step::Abandon { load } => self.abandon(load),
            Step::Evict { user, uid } => drop(self.recall.take_out(TENANT, USERS[user], uid)),
            Step::Search { user, uid } => self.search(USERS[user], uid),
        }
    }

    fn next_revision(&mut self) -> u64 {
        self.revision += 1;
        self.revision
    }

    fn deliver(&mut self, user: &str, uid: u64, op: Op) {
        let whose = Some(user.to_owned());
        self.unapplied.push((self.revision, whose, uid, op.clone()));
        self.recall
            .deliver(key(user, uid), &conversation(uid), op, self.revision);
    }

    fn put(&mut self, user: &str, uid: u64, mut row: Row, values: Option<[i8; 2]>) {
        let revision = self.next_revision();
        row.revision = revision;
        let values = values.map(|values| values.map(f32::from));
        if let Some(values) = values {
            row = row.embedded(MODEL, &values);
            row.own_vector = true;
        }
        let op = Op::Put {
            encoded: row.encoded(),
            vector: values.map(|values| vector(MODEL, &values)),
        };
        self.deliver(user, uid, op);
        self.store.put(user, uid, row);
    }

    fn remove(&mut self, user: &str, uid: u64, sequences: &[u64]) {
        self.next_revision();
        let places = sequences.into();
        self.deliver(user, uid, Op::Remove { sequences: places });
        if let Some(rows) = self.store.parts.get_mut(&(user.to_owned(), uid)) {
            rows.retain(|sequence, _| !sequences.contains(sequence));
        }
    }

    fn remove_all(&mut self, user: &str, uid: u64) {
        self.next_revision();
        self.deliver(user, uid, Op::RemoveAll);
        self.store.parts.remove(&(user.to_owned(), uid));
    }

    fn drop_conversation(&mut self, uid: u64) {
        let revision = self.next_revision();
        self.recall.drop_conversation(TENANT, uid, revision);
        self.unapplied.push((revision, None, uid, Op::RemoveAll));
        self.store.parts.retain(|(_, other), _| *other != uid);
    }

    fn embed(&mut self, user: &str, uid: u64, sequence: u64, stale: bool, values: [i8; 2]) {
        self.next_revision();
        let values = values.map(f32::from);
        let row = self
            .store
            .parts
            .get_mut(&(user.to_owned(), uid))
            .and_then(|rows| rows.get_mut(&sequence));
        let of = row.as_ref().map_or(0, |row| row.revision) - u64::from(stale && row.is_some());
        if let Some(row) = row.filter(|_| !stale) {
            row.vectors.insert(MODEL.to_owned(), values.to_vec());
        }
        let op = Op::Embed {
            sequence,
            message_revision: of,
            vector: vector(MODEL, &values),
        };
        self.deliver(user, uid, op);
    }

    fn begin(&mut self, user: &'static str, uid: u64) {
        if let Some(progress) = self.recall.begin_part(TENANT, user, uid) {
            self.loads.push(Load {
                user,
                uid: Some(uid),
                loaded: Some(BTreeMap::from([(uid, progress.loaded)])),
                read: None,
            });
        }
    }

    fn begin_user(&mut self, user: &'static str) {
        if self.recall.begin_user(TENANT, user) {
            self.loads.push(Load {
                user,
                uid: None,
                loaded: None,
                read: None,
            });
        }
    }

    /// Reads the store for a load, where that was not read since the last chunk.
    fn read(&mut self, number: usize, lagging: bool) {
        let count = self.loads.len().max(1);
        let Some(load) = self
            .loads
            .get_mut(number % count)
            .filter(|load| load.read.is_none())
        else {
            return;
        };
        let (store, unapplied) = match lagging {
            true => (&self.applied, self.unapplied.as_slice()),
            false => (&self.store, [].as_slice()),
        };
        let is_of = |whose: &Option<String>| whose.as_deref().is_none_or(|user| user == load.user);
        let changed = unapplied.iter().filter(|(_, whose, ..)| is_of(whose));
        let recall = &self.recall;
        let parts = load.loaded.get_or_insert_with(|| {
            let mut uids: BTreeSet<_> = store.uids(load.user).into_iter().collect();
            uids.extend(changed.clone().map(|(_, _, uid, _)| uid));
            let uids: Vec<_> = uids.into_iter().collect();
            let declared = recall.declare_parts(TENANT, load.user, &uids);
            declared.into_iter().collect()
        });
        let later = |uid| {
            let mut later = Later::default();
            for (revision, _, _, op) in changed.clone().filter(|(_, _, other, _)| *other == uid) {
                later.push(*revision, op.clone());
            }
            later
        };
        let read = parts.keys();
        load.read = Some(
            read.map(|uid| (*uid, (store.rows(load.user, *uid), later(*uid))))
                .collect(),
        );
    }

    fn fill_chunk(&mut self, number: usize, through: u64) {
        let count = self.loads.len().max(1);
        let Some(load) = self
            .loads
            .get_mut(number % count)
            .filter(|load| load.read.is_some())
        else {
            return;
        };
        load.fill(&self.recall, Some(through));
        load.read = None;
        for loaded in load.loaded.iter_mut().flat_map(BTreeMap::values_mut) {
            *loaded = through.max(*loaded);
        }
    }

    fn finish(&mut self, number: usize) {
        let count = self.loads.len().max(1);
        if self
            .loads
            .get(number % count)
            .is_none_or(|load| load.read.is_none())
        {
            return;
        }
        let load = self.loads.swap_remove(number % count);
        load.fill(&self.recall, None);
        if load.uid.is_none() {
            self.recall.finish_user(TENANT, load.user);
        }
    }

    fn abandon(&mut self, number: usize) {
        let count = self.loads.len().max(1);
        if number % count >= self.loads.len() {
            return;
        }
        let load = self.loads.swap_remove(number % count);
        for uid in load.loaded.unwrap_or_default().into_keys() {
            self.recall.abandon(TENANT, load.user, Some(uid));
        }
        if load.uid.is_none() {
            self.recall.abandon(TENANT, load.user, None);
        }
    }

    /// Whatever is complete is found as in a fresh build; what is not says so.
    fn search(&self, user: &str, uid: Option<u64>) {
        let scope = uid.map_or(Scope::User { user }, |uid| Scope::Part { user, uid });
        let fresh = self.store.fresh();
        let profiles = [
            Profile::Hybrid,
            Profile::HybridLate,
            Profile::Vector,
            Profile::Lexical,
        ];
        let plain =
            profiles.map(|profile| Question::new(profile, "boat garden", Some(&[1.0, 0.5])));
        let ruled = [(Profile::Hybrid, 0.0), (Profile::HybridLate, 0.5)].map(|(profile, late)| {
            let mut question =
                Question::new(profile, "When did Ada see my boat?", Some(&[1.0, 0.5]));
            question.weights = Weights { late, ..RULES };
            question
        });
        for question in plain.into_iter().chain(ruled) {
            let found = question.ask(&self.recall, scope);
            let expected = question.ask(&fresh, scope);
            if found.complete {
                assert_eq!(found.hits, expected.hits);
                assert_eq!(found.pending, expected.pending);
            }
        }
    }

    fn end(mut self) {
        while !self.loads.is_empty() {
            self.read(0, true);
            self.finish(0);
        }
        for user in USERS {
            self.store.load(&self.recall, user);
            self.search(user, None);
            let question = Question::new(Profile::Hybrid, "", Some(&[1.0, 0.0]));
            assert!(question.ask(&self.recall, Scope::User { user }).complete);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn any_history_ranks_as_a_fresh_build(steps in prop::collection::vec(step(), 0..80)) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.end();
    }
}

const ANN: Scope<'static> = Scope::User { user: "ann" };

fn all() -> Question {
    Question::new(Profile::Hybrid, "", Some(&[1.0, 0.0]))
}

#[test]
fn changes_that_came_while_the_store_was_read_are_applied_on_top() {
    let recall = recall();
    let old = Row::new(1, 1, "old");
    let gone = Row::new(2, 2, "gone");
    assert!(recall.begin_part(TENANT, "ann", 1).is_some());
    recall.put(key("ann", 1), "c", Row::new(1, 3, "new").encoded(), None, 3);
    recall.remove(key("ann", 1), &[2], 4);
    recall.put(
        key("ann", 1),
        "c",
        Row::new(3, 5, "more").encoded(),
        None,
        5,
    );

    let stored = StoredDocuments {
        documents: vec![old.stored(), gone.stored()],
        through: None,
    };
    recall.fill_part(TENANT, "ann", 1, "c", stored, Later::default());

    let found = all().ask(
        &recall,
        Scope::Part {
            user: "ann",
            uid: 1,
        },
    );
    assert_eq!(places(&found), [(1, 1), (1, 3)]);
    assert_eq!(found.hits[0].encoded, Row::new(1, 3, "new").encoded());
    assert!(found.complete);
}

/// What a store has of one part, in two rows.
fn two_rows() -> Rows {
    Rows::from([1, 2].map(|sequence| (sequence, Row::new(sequence, sequence, "stored"))))
}

const PART: Scope<'static> = Scope::Part {
    user: "ann",
    uid: 1,
};

/// Loads the first of two rows, and ends there.
fn load_one_of_two(recall: &Recall) {
    assert!(recall.begin_part(TENANT, "ann", 1).is_some());
    let chunk = Store::chunk(&two_rows(), 0, Some(1));
    recall.fill_part(TENANT, "ann", 1, "c", chunk, Later::default());
    recall.abandon(TENANT, "ann", Some(1));
}

#[test]
fn a_load_that_ended_early_is_gone_on_with_and_misses_no_change() {
    let recall = recall();
    load_one_of_two(&recall);
    assert!(!all().ask(&recall, PART).complete);
    recall.remove(key("ann", 1), &[1], 3);
    recall.put(key("ann", 1), "c", Row::new(2, 4, "new").encoded(), None, 4);

    let progress = recall.begin_part(TENANT, "ann", 1);
    let rest = Store::chunk(&two_rows(), 1, None);
    recall.fill_part(TENANT, "ann", 1, "c", rest, Later::default());

    let begun = Progress {
        since: 0,
        loaded: 1,
    };
    assert_eq!(
        progress,
        Some(begun),
        "what the store must hold is what it had to at first"
    );
    let found = all().ask(&recall, PART);
    assert_eq!(places(&found), [(1, 2)]);
    assert_eq!(found.hits[0].encoded, Row::new(2, 4, "new").encoded());
    assert!(found.complete);
}

#[test]
fn what_is_loaded_in_part_counts_and_leaves_when_memory_is_short() {
    let recall = Recall::with_grace(Kernels::best(), 1, Duration::ZERO);
    load_one_of_two(&recall);
    assert!(recall.bytes_of(TENANT, PART) > 0);

    // Who was used last stays in any case.
    recall.begin_user(TENANT, "bob");
    recall.finish_user(TENANT, "bob");

    assert_eq!(recall.statistics().parts, 0);
    let progress = recall.begin_part(TENANT, "ann", 1);
    assert!(progress.is_some_and(|progress| progress.loaded == 0));
}

#[test]
fn a_users_load_goes_on_with_parts_that_are_loaded_in_part() {
    let recall = recall();
    load_one_of_two(&recall);

    assert!(recall.begin_user(TENANT, "ann"));
    assert_eq!(recall.declare_parts(TENANT, "ann", &[1]), [(1, 1)]);
    let rest = Store::chunk(&two_rows(), 1, None);
    recall.fill_part(TENANT, "ann", 1, "c", rest, Later::default());
    recall.finish_user(TENANT, "ann");

    assert_eq!(places(&all().ask(&recall, ANN)), [(1, 1), (1, 2)]);
}

#[test]
fn a_search_sees_nothing_that_is_not_published() {
    let recall = Store::default().fresh();
    recall.begin_user(TENANT, "ann");
    recall.finish_user(TENANT, "ann");
    recall.put(key("ann", 1), "c", Row::new(1, 1, "a").encoded(), None, 1);
    recall.put(key("ann", 1), "c", Row::new(2, 2, "b").encoded(), None, 2);

    assert_eq!(places(&all().ask_at(&recall, ANN, 1)), [(1, 1)]);
    assert_eq!(places(&all().ask_at(&recall, ANN, 2)), [(1, 1), (1, 2)]);
}

#[test]
fn what_is_not_in_memory_is_not_kept_and_says_so() {
    let recall = recall();

    recall.put(key("ann", 1), "c", Row::new(1, 1, "a").encoded(), None, 1);

    assert_eq!(recall.statistics().parts, 0);
    assert_eq!(recall.revision(), 1);
    assert!(!all().ask(&recall, ANN).complete);
}

#[test]
fn a_failed_load_leaves_nothing_behind() {
    let recall = recall();
    assert!(recall.begin_user(TENANT, "ann"));
    recall.put(key("ann", 1), "c", Row::new(1, 1, "a").encoded(), None, 1);
    assert_eq!(
        recall.declare_parts(TENANT, "ann", &[1, 2]),
        [(1, 0), (2, 0)]
    );

    recall.abandon(TENANT, "ann", Some(1));
    recall.abandon(TENANT, "ann", Some(2));
    recall.abandon(TENANT, "ann", None);

    assert_eq!(recall.statistics().parts, 0);
    assert_eq!(recall.statistics().bytes, 0);
    assert!(!all().ask(&recall, ANN).complete);
}

/// Loads users of one part each, in order; the first has the uid 1.
fn load_users(recall: &Recall, users: &[&str]) {
    for (uid, user) in (1..).zip(users) {
        let mut store = Store::default();
        let text = "words ".repeat(200);
        store.put(user, uid, Row::new(1, 1, &text));
        store.load(recall, user);
    }
}

/// A recall that has room for two such users.
fn recall_for_two() -> Recall {
    let recall = recall();
    load_users(&recall, &["ann"]);
    let one = recall.statistics().bytes;
    Recall::with_grace(Kernels::best(), 2 * one + one / 2, Duration::ZERO)
}

#[test]
fn the_user_who_was_used_last_stays() {
    let recall = recall_for_two();
    load_users(&recall, &["ann", "bob"]);
    all().ask(&recall, ANN);

    load_users(&recall, &["cid"]);

    let is_whole = |user| all().ask(&recall, Scope::User { user }).complete;
    assert_eq!(["ann", "bob", "cid"].map(is_whole), [true, false, true]);
}

#[test]
fn the_user_who_was_used_last_stays_whole_beyond_the_budget() {
    let recall = Recall::with_grace(Kernels::best(), 1, Duration::ZERO);

    load_users(&recall, &["ann", "bob"]);
    all().ask(&recall, Scope::User { user: "bob" });

    let is_whole = |user| all().ask(&recall, Scope::User { user }).complete;
    assert_eq!(["bob", "ann"].map(is_whole), [true, false]);
}

#[test]
fn what_was_just_used_stays_beyond_the_budget() {
    let recall = Recall::with_grace(Kernels::best(), 1, Duration::from_secs(3600));

    load_users(&recall, &["ann", "bob"]);

    assert!(all().ask(&recall, ANN).complete);
    assert!(all().ask(&recall, Scope::User { user: "bob" }).complete);
}

#[test]
fn appends_that_nobody_reads_do_not_fill_the_memory() {
    let recall = Recall::with_grace(Kernels::best(), 64 << 10, Duration::ZERO);
    load_users(&recall, &["ann"]);
    let text = "words ".repeat(1000);

    for revision in 2..200 {
        recall.put(
            key("ann", 1),
            "c",
            Row::new(revision, revision, &text).encoded(),
            None,
            revision,
        );
    }

    assert!(recall.statistics().bytes < 128 << 10);
    assert!(!all().ask(&recall, ANN).complete);
}

#[test]
fn parts_of_conversations_that_are_gone_are_forgotten() {
    let recall = recall();
    load_users(&recall, &["ann"]);
    recall.drop_conversation(TENANT, 1, 9);
    assert_eq!(places(&all().ask_at(&recall, ANN, 8)), [(1, 1)]);
    assert_eq!(recall.statistics().parts, 1);

    assert_eq!(places(&all().ask_at(&recall, ANN, 9)), []);

    assert_eq!(recall.statistics().parts, 0);
    assert!(all().ask(&recall, ANN).complete);
}

#[test]
fn memory_is_given_back_with_the_parts() {
    let recall = recall();
    load_users(&recall, &["ann"]);
    for revision in 2..50 {
        recall.put(
            key("ann", 1),
            "c",
            Row::new(revision, revision, "a boat").encoded(),
            None,
            revision,
        );
    }
    all().ask(&recall, ANN);
    let before = recall.statistics().bytes;

    drop(recall.take_out(TENANT, "ann", 1));

    let after = recall.statistics().bytes;
    assert!(before > 10_000 && after < 1_000, "{before} then {after}");
}

#[test]
fn searches_and_deliveries_at_the_same_time_agree_in_the_end() {
    let recall = recall();
    recall.begin_user(TENANT, "ann");
    recall.finish_user(TENANT, "ann");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for revision in 1..=2000 {
                let row = Row::new(revision, revision, "a boat");
                recall.put(
                    key("ann", 1 + revision % 3),
                    "c",
                    row.encoded(),
                    None,
                    revision,
                );
            }
        });
        for _ in 0..3 {
            scope.spawn(|| {
                let mut seen = 0;
                while seen < 1000 {
                    let published = recall.revision();
                    let found = all().ask_at(&recall, ANN, published).hits.len() as u64;
                    assert!(found >= seen.min(1000) && found >= published.min(1000));
                    seen = found;
                }
            });
        }
    });

    let mut question = all();
    question.k = 5000;
    assert_eq!(question.ask(&recall, ANN).hits.len(), 2000);
}

#[test]
fn a_user_who_is_held_stays_until_the_release() {
    let recall = Recall::with_grace(Kernels::best(), 1, Duration::ZERO);
    assert!(!recall.hold_user(TENANT, "ann"), "not in memory yet");
    recall.begin_user(TENANT, "ann");
    recall.finish_user(TENANT, "ann");
    assert!(recall.hold_user(TENANT, "ann"));
    recall.put(key("ann", 1), "c", Row::new(1, 1, "a").encoded(), None, 1);

    // Who was used last stays in any case.
    recall.begin_user(TENANT, "bob");
    recall.finish_user(TENANT, "bob");
    assert_eq!(recall.statistics().parts, 1);
    recall.release_user(TENANT, "ann");

    assert_eq!(recall.statistics().parts, 0);
}
