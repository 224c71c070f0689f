//! What the tests compare with: a store in plain maps.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use remora_kernels::{CODE, Kernels};
use remora_late::Pieces;
use remora_wire as wire;

use crate::{
    Filter, Found, Later, PartKey, Profile, Recall, Scope, Search, StoredDocument, StoredDocuments,
    Vector, Weights,
};

pub(super) const TENANT: &str = "acme";
pub(super) const MODEL: &str = "mini";

/// A recall that evicts nothing.
pub(super) fn recall() -> Recall {
    Recall::with_grace(Kernels::best(), usize::MAX, Duration::ZERO)
}

pub(super) fn key(user: &str, uid: u64) -> PartKey<'_> {
    PartKey {
        tenant: TENANT,
        user,
        uid,
    }
}

/// A message as the tests write it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Row {
    pub(super) sequence: u64,
    pub(super) revision: u64,
    pub(super) text: String,
    pub(super) role: String,
    pub(super) name: String,
    pub(super) session_id: String,
    pub(super) time: i64,
    /// When the server stored it; `time` where it is not set.
    pub(super) received: Option<i64>,
    pub(super) attributes: BTreeMap<String, wire::Scalar>,
    pub(super) vectors: BTreeMap<String, Vec<f32>>,
    pub(super) own_vector: bool,
}

impl Row {
    pub(super) fn new(sequence: u64, revision: u64, text: &str) -> Self {
        Self {
            sequence,
            revision,
            text: text.to_owned(),
            role: "user".to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn embedded(mut self, model: &str, values: &[f32]) -> Self {
        self.vectors.insert(model.to_owned(), values.to_vec());
        self
    }

    pub(super) fn encoded(&self) -> Bytes {
        let message = wire::Message {
            role: self.role.clone(),
            name: self.name.clone(),
            text: self.text.clone(),
            attributes: self.attributes.clone(),
            session_id: self.session_id.clone(),
            sequence: self.sequence,
            revision: self.revision,
            sent_time: self
                .received
                .map(|_| wire::Timestamp::from_micros(self.time)),
            create_time: Some(wire::Timestamp::from_micros(
                self.received.unwrap_or(self.time),
            )),
            ..wire::Message::default()
        };
        message.encode_to_vec().into()
    }

    pub(super) fn stored(&self) -> StoredDocument {
        let vectors = self.vectors.iter();
        StoredDocument {
            encoded: self.encoded(),
            vectors: vectors
                .map(|(model, values)| vector(model, values))
                .collect(),
            own_vector: self.own_vector,
        }
    }
}

pub(super) fn vector(model: &str, values: &[f32]) -> Vector {
    Vector {
        model: model.to_owned(),
        values: values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect(),
        pieces: pieces(values).to_bytes().into(),
    }
}

/// The word pieces of the text that a vector stands for: one for each value that is not 0, none if the first is 0. Ids
/// and codes follow from values and places.
pub(super) fn pieces(values: &[f32]) -> Pieces {
    let pieces = (0..).zip(values).filter(|(_, value)| **value != 0.0);
    let piece = |(place, value): (usize, &f32)| {
        let mut code = [5; CODE];
        code[place] = 100;
        code[CODE - 1] = (value * 10.0) as i8;
        (place as u16 + u16::from(*value < 0.0), code)
    };
    Pieces::new(pieces.filter(|_| values[0] != 0.0).map(piece))
}

pub(super) fn conversation(uid: u64) -> String {
    format!("conversation {uid}")
}

/// The rows of one part.
pub(super) type Rows = BTreeMap<u64, Row>;

/// A store: the rows of every part by (user, uid).
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    pub(super) parts: BTreeMap<(String, u64), Rows>,
}

impl Store {
    pub(super) fn put(&mut self, user: &str, uid: u64, row: Row) {
        let rows = self.parts.entry((user.to_owned(), uid)).or_default();
        rows.insert(row.sequence, row);
    }

    pub(super) fn rows(&self, user: &str, uid: u64) -> Rows {
        let rows = self.parts.get(&(user.to_owned(), uid));
        rows.cloned().unwrap_or_default()
    }

    /// The uids of the parts in which a user has rows.
    pub(super) fn uids(&self, user: &str) -> Vec<u64> {
        let parts = self.parts.iter();
        parts
            .filter(|((owner, _), rows)| owner == user && !rows.is_empty())
            .map(|((_, uid), _)| *uid)
            .collect()
    }

    pub(super) fn users(&self) -> BTreeSet<String> {
        self.parts.keys().map(|(user, _)| user.clone()).collect()
    }

    /// What the store holds of a part behind one sequence, through another.
    pub(super) fn chunk(rows: &Rows, after: u64, through: Option<u64>) -> StoredDocuments {
        let is_in = |sequence: u64| after < sequence && through.is_none_or(|last| sequence <= last);
        let rows = rows.values().filter(|row| is_in(row.sequence));
        StoredDocuments {
            documents: rows.map(Row::stored).collect(),
            through,
        }
    }

    /// Loads whatever of the user is not in `recall`.
    pub(super) fn load(&self, recall: &Recall, user: &str) {
        if !recall.begin_user(TENANT, user) {
            return;
        }
        for (uid, loaded) in recall.declare_parts(TENANT, user, &self.uids(user)) {
            let documents = Self::chunk(&self.rows(user, uid), loaded, None);
            let later = Later::default();
            recall.fill_part(TENANT, user, uid, &conversation(uid), documents, later);
        }
        recall.finish_user(TENANT, user);
    }

    /// A recall that holds the store and has never held anything else.
    pub(super) fn fresh(&self) -> Recall {
        let recall = recall();
        for user in self.users() {
            self.load(&recall, &user);
        }
        recall
    }
}

/// What to ask; everything else by default.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) text: String,
    pub(super) doubtful: Vec<String>,
    pub(super) source: Option<(u64, u64)>,
    pub(super) vector: Option<Vec<f32>>,
    pub(super) pieces: Pieces,
    pub(super) profile: Profile,
    pub(super) k: usize,
    pub(super) threshold: Option<f64>,
    pub(super) weights: Weights,
    pub(super) filter: Filter,
    pub(super) exclude: Vec<(u64, u64)>,
    pub(super) around: usize,
    pub(super) without_roles: Vec<String>,
    pub(super) seen: Vec<(u64, u64)>,
    pub(super) half_life: Option<f64>,
}

impl Question {
    pub(super) fn new(profile: Profile, text: &str, vector: Option<&[f32]>) -> Self {
        Self {
            text: text.to_owned(),
            doubtful: Vec::new(),
            source: None,
            vector: vector.map(<[f32]>::to_vec),
            pieces: vector.map(pieces).unwrap_or_default(),
            profile,
            k: 1000,
            threshold: None,
            weights: Weights::default(),
            filter: Filter::default(),
            exclude: Vec::new(),
            around: 0,
            without_roles: Vec::new(),
            seen: Vec::new(),
            half_life: None,
        }
    }

    pub(super) fn ask(&self, recall: &Recall, scope: Scope<'_>) -> Found {
        self.ask_at(recall, scope, u64::MAX)
    }

    pub(super) fn ask_at(&self, recall: &Recall, scope: Scope<'_>, published: u64) -> Found {
        let search = Search {
            tenant: TENANT,
            scope,
            text: &self.text,
            doubtful: &self.doubtful,
            source: self.source,
            vector: self.vector.as_deref(),
            pieces: &self.pieces,
            model: MODEL,
            profile: self.profile,
            k: self.k,
            threshold: self.threshold,
            weights: self.weights,
            filter: self.filter.clone(),
            exclude: &self.exclude,
            around: self.around,
            without_roles: &self.without_roles,
            seen: &self.seen,
            half_life: self.half_life,
            published,
        };
        recall.search(&search).expect("the query has a direction")
    }
}

/// The weights of all rules, as they were chosen beside a cosine of 1.
pub(super) const RULES: Weights = Weights {
    cosine: 1.0,
    late: 0.0,
    bm25: 0.3,
    exact: 0.2,
    identifier: 0.6,
    answer: 0.3,
    next: 0.1,
    speaker: 0.3,
    temporal: 0.2,
    date: 0.3,
    named: 0.1,
    passage: 0.2,
    session: 0.3,
    nearby: 0.1,
    newer: 0.0,
    recency: 0.3,
};

/// The places of the hits, best first.
pub(super) fn places(found: &Found) -> Vec<(u64, u64)> {
    found
        .hits
        .iter()
        .map(|hit| (hit.uid, hit.sequence))
        .collect()
}
