//! A naive search in f64, by the textbook and by the rules as they are defined.

use std::collections::{BTreeMap, BTreeSet};

use fancy_regex::Regex;
use remora_lexical::Analyzer;

use super::model::{MODEL, Row, pieces};
use crate::{Names, Weights};

/// A row of a scope with the scores that a naive search in f64 gives it.
#[derive(Debug, Clone)]
pub(super) struct Naive {
    pub(super) uid: u64,
    pub(super) row: Row,
    pub(super) cosine: Option<f64>,
    /// What word pieces make of the cosine.
    pub(super) late: Option<f64>,
    pub(super) bm25: f64,
    /// How much of the weight of the question's words it has.
    pub(super) coverage: f64,
}

/// What a message of average length scores that has all words of the question once.
pub(super) fn ideal(documents: &[Vec<String>], query: &BTreeMap<String, f64>) -> f64 {
    let weigh = |(term, share): (&String, &f64)| share * idf(documents, term);
    query.iter().map(weigh).sum()
}

/// BM25 over the best, or over half of the ideal where that is more, to the power of 1.5.
pub(super) fn relative(bm25: f64, best: f64, ideal: f64) -> f64 {
    let divisor = best.max(ideal / 2.0);
    if divisor > 0.0 {
        (bm25 / divisor).powf(1.5)
    } else {
        0.0
    }
}

/// How far words are trusted in a small scope: a quarter of the question's weight is too little and half is enough, or, of
/// what chance explains, 1 less is too little and all of it enough.
pub(super) fn trust(rows: &[Naive], whole: f64) -> f64 {
    let share = rows.iter().map(|row| row.coverage).fold(0.0, f64::max);
    let excess = share * whole - (rows.len().max(1) as f64).ln();
    (4.0 * share - 1.0).max(excess + 1.0).clamp(0.0, 1.0)
}

/// The share of what all words of a question give that chance leaves.
fn sureness(documents: usize, whole: f64) -> f64 {
    let excess = whole - (documents.max(1) as f64).ln();
    0.25 + 0.75 * (excess / 20.0).clamp(0.0, 1.0)
}

/// The words of a text, each with the share of its weight that it has: those of names 0.6.
pub(super) fn words_asked(text: &str, without_names: &str) -> BTreeMap<String, f64> {
    let analyzer = Analyzer::new();
    let plain = analyzer.words(without_names);
    let share = |word: &String| if plain.contains(word) { 1.0 } else { 0.6 };
    let words = analyzer.words(text).into_iter();
    words.map(|word| (word.clone(), share(&word))).collect()
}

/// The words of the rows' texts.
pub(super) fn documents(rows: &[(u64, Row)]) -> Vec<Vec<String>> {
    let analyzer = Analyzer::new();
    rows.iter()
        .map(|(_, row)| analyzer.words(&row.text))
        .collect()
}

impl Naive {
    /// Whether it has text or a vector.
    pub(super) fn can_be_found(&self) -> bool {
        !self.row.text.is_empty() || self.cosine.is_some()
    }
}

/// Scores every row of a scope by the textbook.
pub(super) fn naive(rows: &[(u64, Row)], text: &str, vector: Option<&[f32]>) -> Vec<Naive> {
    naive_of(rows, &words_asked(text, text), vector)
}

/// The same for words of which each has a share of its weight.
pub(super) fn naive_of(
    rows: &[(u64, Row)],
    query: &BTreeMap<String, f64>,
    vector: Option<&[f32]>,
) -> Vec<Naive> {
    let documents = documents(rows);
    let score = |place: usize| {
        let of_one = |(term, share): (&String, &f64)| share * bm25(&documents, place, term);
        query.iter().map(of_one).sum()
    };
    let whole = ideal(&documents, query);
    let coverage = |place: usize| {
        let has = |(term, share): (&String, &f64)| match documents[place].contains(term) {
            true => share * idf(&documents, term),
            false => 0.0,
        };
        query.iter().map(has).sum::<f64>() / whole.max(f64::MIN_POSITIVE)
    };
    let cosines: Vec<_> = rows
        .iter()
        .map(|(_, row)| cosine(vector?, row.vectors.get(MODEL)?))
        .collect();
    let late = late(rows, vector, &cosines);
    (0..rows.len())
        .map(|place| Naive {
            uid: rows[place].0,
            row: rows[place].1.clone(),
            cosine: cosines[place],
            late: late[place],
            bm25: score(place),
            coverage: coverage(place),
        })
        .collect()
}

type NaivePieces = BTreeMap<usize, (u16, Vec<f64>)>;

/// The pieces of `model::pieces`, read from their bytes.
fn naive_pieces(vector: &[f32]) -> NaivePieces {
    let bytes = pieces(vector).to_bytes();
    let (ids, codes) = bytes.split_at(bytes.len() / 130 * 2);
    let codes = codes
        .chunks(128)
        .map(|code| code.iter().map(|value| f64::from(*value as i8)).collect());
    let ids = ids.chunks(2).map(|id| u16::from_le_bytes([id[0], id[1]]));
    ids.zip(codes).enumerate().collect()
}

/// Coverage by the definition, moved to the scale of the cosines; the cosine where there are no pieces.
fn late(rows: &[(u64, Row)], vector: Option<&[f32]>, cosines: &[Option<f64>]) -> Vec<Option<f64>> {
    let Some(question) = vector.map(naive_pieces).filter(|pieces| !pieces.is_empty()) else {
        return cosines.to_vec();
    };
    let texts: Vec<Option<NaivePieces>> = rows
        .iter()
        .zip(cosines)
        .map(|((_, row), cosine)| {
            let pieces = naive_pieces(row.vectors.get(MODEL).filter(|_| cosine.is_some())?);
            (!pieces.is_empty()).then_some(pieces)
        })
        .collect();
    let n = texts.iter().flatten().count() as f64;
    let idf = |id: u16| {
        let holds = |text: &&NaivePieces| text.values().any(|(other, _)| *other == id);
        let df = texts.iter().flatten().filter(holds).count() as f64;
        (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
    };
    let coverage = |text: &NaivePieces| {
        let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
        let best = |code: &[f64]| {
            let dots = text.values().map(|(_, other)| dot(code, other));
            dots.fold(f64::NEG_INFINITY, f64::max)
        };
        let weighted = question.values().map(|(id, code)| idf(*id) * best(code));
        let weights: f64 = question.values().map(|(id, _)| idf(*id)).sum();
        weighted.sum::<f64>() / weights / 127.0 / 127.0
    };
    let covered: Vec<_> = texts
        .iter()
        .map(|text| text.as_ref().map(coverage))
        .collect();
    let excess = covered.iter().zip(cosines);
    let excess = excess.filter_map(|(covered, cosine)| Some((*covered)? - (*cosine)?));
    let offset = excess.sum::<f64>() / n;
    let moved = covered.iter().zip(cosines);
    moved
        .map(|(covered, cosine)| covered.map(|covered| covered - offset).or(*cosine))
        .collect()
}

fn bm25(documents: &[Vec<String>], place: usize, term: &String) -> f64 {
    let (k1, b) = (0.9, 0.75);
    let n = documents.len() as f64;
    let total: usize = documents.iter().map(Vec::len).sum();
    let average = (total as f64 / n).max(f64::MIN_POSITIVE);
    let tf = documents[place].iter().filter(|word| *word == term).count() as f64;
    let norm = k1 * (1.0 - b + b * documents[place].len() as f64 / average);
    if tf == 0.0 {
        return 0.0;
    }
    idf(documents, term) * tf * (k1 + 1.0) / (tf + norm)
}

fn idf(documents: &[Vec<String>], term: &String) -> f64 {
    let n = documents.len() as f64;
    let having = documents.iter().filter(|words| words.contains(term));
    let df = having.count() as f64;
    (1.0 + (n - df + 0.5) / (df + 0.5)).ln()
}

fn cosine(left: &[f32], right: &[f32]) -> Option<f64> {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| f64::from(*a) * f64::from(*b))
            .sum()
    };
    let usable = left.len() == right.len() && dot(right, right) > 0.0;
    usable.then(|| dot(left, right) / (dot(left, left) * dot(right, right)).sqrt())
}

/// What a question is about, as its author knows it.
#[derive(Debug, Clone, Default)]
pub(super) struct Intent {
    /// Speakers that it names.
    pub(super) named: BTreeSet<&'static str>,
    /// Whether it speaks of "I".
    pub(super) first_person: bool,
    /// Whether it asks when.
    pub(super) when: bool,
    /// Whether it asks for a name.
    pub(super) name: bool,
    /// The date that it names: year, month, day.
    pub(super) date: Option<(i64, u32, Option<u32>)>,
}

/// The hybrid score of every row with all rules, in the order of the rows, which are those of a scope by (uid, sequence).
pub(super) fn ruled(
    rows: &[(u64, Row)],
    text: &str,
    vector: Option<&[f32]>,
    weights: &Weights,
    intent: &Intent,
) -> Vec<f64> {
    let speakers: BTreeSet<&str> = rows.iter().map(|(_, row)| speaker(row)).collect();
    let stripped = Names::of(speakers.iter().copied()).strip(text);
    let words = if weights.speaker == 0.0 {
        text
    } else {
        &stripped
    };
    let asked = words_asked(text, words);
    let scored = naive_of(rows, &asked, vector);
    let ideal = ideal(&documents(rows), &asked);
    let best = scored.iter().map(|row| row.bm25).fold(0.0, f64::max);
    let trust = vector.map_or(1.0, |_| trust(&scored, ideal));
    let sureness = sureness(rows.len(), ideal);
    let bm25 = if vector.is_some() { weights.bm25 } else { 1.0 };
    let base: Vec<f64> = scored
        .iter()
        .map(|row| {
            weights.cosine * row.cosine.unwrap_or(0.0)
                + bm25 * relative(row.bm25, best, ideal) * trust
                + weights.exact * row.coverage.powi(8) * sureness
        })
        .collect();
    let sessions = sessions(rows);
    let mut scores = base.clone();
    for place in 0..rows.len().saturating_sub(1) {
        if sessions[place] == sessions[place + 1] {
            scores[place] += weights.next * base[place + 1];
            if rows[place].1.text.contains('?') {
                scores[place + 1] += weights.answer * base[place];
            }
        }
    }
    for (score, (_, row)) in scores.iter_mut().zip(rows) {
        *score += rules_of_one(row, &speakers, weights, intent);
    }
    let neighbours = neighbours(&sessions, rows);
    let passages = passages(rows, &neighbours, words);
    for (score, passage) in scores.iter_mut().zip(passages) {
        *score += weights.passage * passage * trust;
    }
    let nearby: Vec<f64> = neighbours
        .iter()
        .map(|around| {
            let best = around.iter().map(|other| scores[*other]);
            best.reduce(f64::max).unwrap_or(0.0)
        })
        .collect();
    let bests = session_bests(&sessions, &scores);
    let all = scores.iter().zip(bests).zip(nearby);
    all.map(|((score, best), nearby)| score + weights.session * best + weights.nearby * nearby)
        .collect()
}

/// For each row the best of the scores up to 16 before and after it among those of its session.
fn session_bests(sessions: &[String], scores: &[f64]) -> Vec<f64> {
    let best = |place: usize| {
        let own = (0..scores.len()).filter(|other| sessions[*other] == sessions[place]);
        let own: Vec<usize> = own.collect();
        let at = own.iter().position(|other| *other == place);
        let near = own
            .iter()
            .enumerate()
            .filter(|(other, _)| at.is_some_and(|at| at.abs_diff(*other) <= 16));
        near.map(|(_, other)| scores[*other])
            .fold(f64::NEG_INFINITY, f64::max)
    };
    (0..scores.len()).map(best).collect()
}

/// The neighbours of each row: up to two on each side, of its conversation and session.
fn neighbours(sessions: &[String], rows: &[(u64, Row)]) -> Vec<Vec<usize>> {
    let near = |place: usize, other: usize| {
        (1..=2).contains(&place.abs_diff(other))
            && rows[place].0 == rows[other].0
            && sessions[place] == sessions[other]
    };
    (0..rows.len())
        .map(|place| {
            (0..rows.len())
                .filter(|other| near(place, *other))
                .collect()
        })
        .collect()
}

/// BM25 of each row's passage as a share.
fn passages(rows: &[(u64, Row)], neighbours: &[Vec<usize>], text: &str) -> Vec<f64> {
    let analyzer = Analyzer::new();
    let words = |place: &usize| analyzer.words(&rows[*place].1.text);
    let passages: Vec<Vec<String>> = (0..rows.len())
        .map(|place| {
            neighbours[place]
                .iter()
                .chain([&place])
                .flat_map(words)
                .collect()
        })
        .collect();
    let query = words_asked(text, text);
    let score = |place| query.keys().map(|term| bm25(&passages, place, term)).sum();
    let scores: Vec<f64> = (0..rows.len()).map(score).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    let ideal = ideal(&passages, &query);
    let share = |score: f64| relative(score, best, ideal);
    scores.into_iter().map(share).collect()
}

fn rules_of_one(row: &Row, speakers: &BTreeSet<&str>, weights: &Weights, intent: &Intent) -> f64 {
    let named: Vec<_> = intent
        .named
        .iter()
        .filter(|name| speakers.contains(*name))
        .collect();
    let meant = if named.is_empty() {
        intent.first_person && row.role == "user"
    } else {
        named.len() < speakers.len() && named.contains(&&speaker(row))
    };
    let timed = intent.when
        && times()
            .is_match(&row.text)
            .expect("the expression is sound");
    let named = intent.name
        && names()
            .is_match(&row.text)
            .expect("the expression is sound");
    let date = intent.date.map_or(0.0, |date| date_value(date, row.time));
    weights.speaker * f64::from(u8::from(meant))
        + weights.temporal * f64::from(u8::from(timed))
        + weights.date * date
        + weights.named * f64::from(u8::from(named))
}

/// Who speaks.
pub(super) fn speaker(row: &Row) -> &'static str {
    let speaker = if row.name.is_empty() {
        &row.role
    } else {
        &row.name
    };
    let known = ["Ada", "Grace", "user", "assistant"];
    known
        .into_iter()
        .find(|name| name == speaker)
        .expect("a known speaker")
}

fn sessions(rows: &[(u64, Row)]) -> Vec<String> {
    let mut names = Vec::new();
    let mut run = 0;
    for (place, (uid, row)) in rows.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| &rows[before]);
        let goes_on = before.is_some_and(|(other, before)| {
            let hours = (row.time - before.time).abs() as f64 / 3.6e9;
            other == uid && before.session_id.is_empty() && hours <= 4.0
        });
        run += usize::from(!goes_on);
        names.push(match row.session_id.as_str() {
            "" => format!("{uid} run {run}"),
            id => format!("{uid} session {id}"),
        });
    }
    names
}

/// The expression by which messages name something.
fn names() -> Regex {
    Regex::new(r"[\p{Ll},;] \p{Lu}\p{Ll}").expect("the expression is sound")
}

/// The expression by which messages speak of a time.
pub(crate) fn times() -> Regex {
    const DAYS: &str = "monday|tuesday|wednesday|thursday|friday|saturday|sunday";
    const SEASONS: &str = "summer|winter|spring|fall";
    let expression = format!(
        r"(?i)\b(yesterday|today|tonight|tomorrow|ago|last (?:night|week|weekend|month|year|{SEASONS}|{DAYS}|mon|tues?|wed|thurs?|fri|sat|sun)|next (?:week|weekend|month|year|{SEASONS}|{DAYS})|this (?:week|weekend|month|year|morning|afternoon|evening|{SEASONS}|past)|past (?:week|weekend|month|year)|(?:a|one|two|three|few|couple(?: of)?|\d+) (?:days?|weeks?|months?|years?)|since|recently|just|{DAYS}|weekend|january|february|march|april|june|july|august|september|october|november|december|(?:19|20)\d\d|earlier|the other day|soon|birthday|anniversary)\b"
    );
    Regex::new(&expression).expect("the expression is sound")
}

fn date_value((year, month, day): (i64, u32, Option<u32>), time: i64) -> f64 {
    let sent = time.div_euclid(86_400_000_000);
    let (sent_year, sent_month, _) = calendar(sent);
    match day {
        Some(day) => match sent - days(year, month, day) {
            -1..=1 => 1.0,
            2..=10 => 0.5,
            _ => 0.0,
        },
        None if (sent_year, sent_month) == (year, month) => 1.0,
        None => match sent - days(year, month, 1) - length(year, month) {
            0..=9 => 0.5,
            _ => 0.0,
        },
    }
}

/// The date of a day since 1970, by counting.
pub(crate) fn calendar(mut day: i64) -> (i64, u32, u32) {
    let (mut year, mut month) = (1970, 1);
    while day >= length(year, month) {
        day -= length(year, month);
        (year, month) = if month == 12 {
            (year + 1, 1)
        } else {
            (year, month + 1)
        };
    }
    (year, month, day as u32 + 1)
}

fn days(year: i64, month: u32, day: u32) -> i64 {
    let before = (1970..year).flat_map(|year| (1..=12).map(move |month| (year, month)));
    let months = before.chain((1..month).map(|month| (year, month)));
    months.map(|(year, month)| length(year, month)).sum::<i64>() + i64::from(day) - 1
}

fn length(year: i64, month: u32) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
