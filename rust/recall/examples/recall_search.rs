//! Prints the median and the 95th percentile of the time of one search of one user's messages, by profile:
//! `cargo run --release --package remora-recall --example recall_search [messages] [parts]`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use prost::Message as _;
use remora_index::VectorError;
use remora_kernels::Kernels;
use remora_late::Pieces;
use remora_recall::{
    Filter, Later, Profile, Recall, Scope, Search, StoredDocument, StoredDocuments, Vector, Weights,
};
use remora_wire::{Message, Timestamp};

const DIM: usize = 384;
const MODEL: &str = "model";
const BUDGET: Duration = Duration::from_secs(1);
const QUERY: &str = "When did my word12 and word305 meet at word7777 in May 1970?";
const RULES: Weights = Weights {
    cosine: 1.0,
    late: 0.0,
    bm25: 0.2,
    exact: 0.8,
    identifier: 0.6,
    answer: 0.3,
    next: 0.1,
    speaker: 0.3,
    temporal: 0.2,
    date: 0.3,
    named: 0.15,
    passage: 0.2,
    session: 0.3,
    nearby: 0.15,
    newer: 1.0,
    recency: 0.0,
};

const LATE: Weights = Weights {
    cosine: 0.5,
    late: 0.5,
    bm25: 0.1,
    ..RULES
};
/// Word pieces of a question and of a message that say something by themselves.
const PIECES: (u64, u64) = (8, 14);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let messages = arguments.next().map_or(Ok(50_000), |count| count.parse())?;
    let parts: u64 = arguments.next().map_or(Ok(500), |count| count.parse())?;
    let recall = Recall::new(Kernels::best(), usize::MAX);
    let start = Instant::now();
    fill(&recall, messages, parts);
    println!(
        "{messages} messages in {parts} parts, {} MB, filled in {:.2} s",
        recall.statistics().bytes >> 20,
        start.elapsed().as_secs_f64()
    );
    for (name, profile, weights) in [
        ("lexical", Profile::Lexical, Weights::default()),
        ("vector", Profile::Vector, Weights::default()),
        ("hybrid", Profile::Hybrid, Weights::default()),
        ("hybrid with rules", Profile::Hybrid, RULES),
        ("hybrid_late", Profile::HybridLate, LATE),
    ] {
        let (median, tail) = measure(&recall, profile, weights)?;
        println!("{name:>18} {median:>8.3} ms, p95 {tail:>8.3} ms");
    }
    Ok(())
}

fn fill(recall: &Recall, messages: u64, parts: u64) {
    let uids: Vec<u64> = (1..=parts).collect();
    recall.begin_user("t", "u");
    for (uid, _) in recall.declare_parts("t", "u", &uids) {
        let sequences = (1..=messages).filter(|sequence| sequence % parts + 1 == uid);
        recall.fill_part(
            "t",
            "u",
            uid,
            "c",
            StoredDocuments {
                documents: sequences.map(document).collect(),
                through: None,
            },
            Later::default(),
        );
    }
    recall.finish_user("t", "u");
}

fn measure(recall: &Recall, profile: Profile, weights: Weights) -> Result<(f64, f64), VectorError> {
    let vector: Vec<f32> = vector(u64::MAX).collect();
    let pieces = pieces(u64::MAX, PIECES.0);
    let search = Search {
        tenant: "t",
        scope: Scope::User { user: "u" },
        text: QUERY,
        doubtful: &[],
        source: None,
        vector: Some(&vector),
        pieces: &pieces,
        model: MODEL,
        profile,
        k: 10,
        threshold: None,
        weights,
        filter: Filter::default(),
        exclude: &[],
        around: 0,
        without_roles: &[],
        seen: &[],
        half_life: None,
        published: 0,
    };
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < BUDGET {
        let start = Instant::now();
        black_box(recall.search(black_box(&search))?);
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let milliseconds = |percent: usize| times[times.len() * percent / 100].as_secs_f64() * 1e3;
    Ok((milliseconds(50), milliseconds(95)))
}

fn document(sequence: u64) -> StoredDocument {
    let words = |place| format!("word{} ", mixed(sequence, place) % (1 << (place % 14 + 1)));
    let message = Message {
        role: ["user", "assistant"][(sequence % 2) as usize].to_owned(),
        text: (0..20).map(words).collect(),
        sequence,
        revision: sequence,
        create_time: Some(Timestamp::from_micros(sequence as i64 * 60_000_000)),
        ..Message::default()
    };
    StoredDocument {
        encoded: message.encode_to_vec().into(),
        vectors: vec![Vector {
            model: MODEL.to_owned(),
            values: vector(sequence).flat_map(f32::to_le_bytes).collect(),
            pieces: pieces(sequence, PIECES.1).to_bytes().into(),
        }],
        own_vector: false,
    }
}

/// A vector without a pattern, in -1..1.
fn vector(seed: u64) -> impl Iterator<Item = f32> {
    (0..DIM as u64).map(move |place| (mixed(seed, place) >> 40) as f32 / (1 << 23) as f32 - 1.0)
}

/// Word pieces without a pattern.
fn pieces(seed: u64, count: u64) -> Pieces {
    let code = |piece| std::array::from_fn(|at| (mixed(seed + piece, at as u64) >> 58) as i8 - 32);
    Pieces::new((0..count).map(|piece| (mixed(seed, piece) as u16 % 8192, code(piece))))
}

/// A multiplicative hash of a seed and a place.
fn mixed(seed: u64, place: u64) -> u64 {
    let mixed = (seed << 32 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
