//! Segments against a plain model of the same documents, and BM25 against its formula.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::{Analyzer, Document, Parameters, Query, Segment, Statistics, Term};

const SLOTS: u32 = 12;

fn segment<'a>(documents: impl IntoIterator<Item = (&'a u32, &'a Document)>) -> Segment {
    let mut segment = Segment::new();
    for (slot, document) in documents {
        segment.upsert(*slot, document);
    }
    segment
}

fn scores(segments: &[Segment], terms: &[Term], parameters: Parameters) -> Vec<f32> {
    let mut statistics = Statistics::new(terms.to_vec());
    segments
        .iter()
        .for_each(|segment| segment.count_into(&mut statistics));
    let query = Query::new(&statistics, parameters);
    let mut out = vec![0.0; SLOTS as usize];
    segments
        .iter()
        .for_each(|segment| segment.score_into(&query, &mut out));
    out
}

/// BM25 by its formula in double precision, one document at a time.
fn formula(
    documents: &BTreeMap<u32, Document>,
    terms: &[Term],
    parameters: Parameters,
) -> Vec<f64> {
    let Parameters { k1, b } = parameters;
    let n = documents.len() as f64;
    let average = documents
        .values()
        .map(|document| f64::from(document.length()))
        .sum::<f64>()
        / n;
    let count = |document: &Document, term| {
        document
            .terms()
            .iter()
            .find(|(other, _)| *other == term)
            .map_or(0.0, |(_, count)| f64::from(*count))
    };
    let mut out = vec![0.0; SLOTS as usize];
    for &term in terms.iter().collect::<std::collections::BTreeSet<_>>() {
        let df = documents
            .values()
            .filter(|document| count(document, term) > 0.0)
            .count() as f64;
        let idf = (1.0 + (n - df + 0.5) / (df + 0.5)).ln();
        for (slot, document) in documents {
            let (tf, length) = (count(document, term), f64::from(document.length()));
            if tf > 0.0 {
                out[*slot as usize] +=
                    idf * tf * (k1 + 1.0) / (tf + k1 * (1.0 - b + b * length / average));
            }
        }
    }
    out
}

fn any_term() -> impl Strategy<Value = Term> {
    (0u64..9).prop_map(Term)
}

fn any_document() -> impl Strategy<Value = Document> {
    prop::collection::vec(any_term(), 0..14).prop_map(Document::new)
}

fn any_query() -> impl Strategy<Value = Vec<Term>> {
    prop::collection::vec((0u64..11).prop_map(Term), 0..6)
}

fn any_parameters() -> impl Strategy<Value = Parameters> {
    (0.0..3.0, 0.0..=1.0).prop_map(|(k1, b)| Parameters { k1, b })
}

/// Changes to one segment: a document to put in a slot, or none to empty it.
fn any_changes() -> impl Strategy<Value = Vec<(u32, Option<Document>)>> {
    prop::collection::vec(
        (0..SLOTS, prop::option::weighted(0.7, any_document())),
        0..60,
    )
}

proptest! {
    #[test]
    fn any_way_to_the_same_documents_leads_to_the_same_segment(changes in any_changes()) {
        let mut model = BTreeMap::new();
        let mut changed = Segment::new();
        for (slot, document) in changes {
            match document {
                Some(document) => {
                    changed.upsert(slot, &document);
                    model.insert(slot, document);
                }
                None => prop_assert_eq!(changed.remove(slot), model.remove(&slot).is_some()),
            }
        }

        prop_assert_eq!(&changed, &segment(model.iter().rev()));
        prop_assert_eq!(changed.len(), model.len());
        prop_assert_eq!(changed.is_empty(), model.is_empty());
        prop_assert_eq!(changed.total_length(), model.values().map(|document| u64::from(document.length())).sum::<u64>());
        for term in (0..9).map(Term) {
            let with_term = model.values().filter(|document| document.terms().iter().any(|(other, _)| *other == term));
            prop_assert_eq!(changed.df(term) as usize, with_term.count());
        }
    }

    #[test]
    fn scores_are_the_formula_s(
        documents in prop::collection::btree_map(0..SLOTS, any_document(), 1..12),
        terms in any_query(),
        parameters in any_parameters(),
    ) {
        let actual = scores(&[segment(&documents)], &terms, parameters);

        for (actual, expected) in actual.iter().zip(formula(&documents, &terms, parameters)) {
            prop_assert!((f64::from(*actual) - expected).abs() <= 1e-5 * expected.max(1.0), "{actual} {expected}");
        }
    }

    #[test]
    fn scores_are_the_same_to_the_bit_however_documents_are_divided(
        documents in prop::collection::btree_map(0..SLOTS, (any_document(), 0..4usize), 1..12),
        terms in any_query(),
    ) {
        let mut divided = vec![Segment::new(); 4];
        let mut whole = Segment::new();
        for (slot, (document, part)) in &documents {
            divided[*part].upsert(*slot, document);
            whole.upsert(*slot, document);
        }
        let reversed: Vec<_> = terms.iter().rev().copied().collect();

        let expected = scores(&[whole], &terms, Parameters::default());

        prop_assert_eq!(scores(&divided, &reversed, Parameters::default()), expected);
    }

    #[test]
    fn the_best_match_has_all_the_words(extra in 1u64..50) {
        let documents = BTreeMap::from([
            (0, Document::new(vec![Term(1), Term(2), Term(3)])),
            (1, Document::new(vec![Term(1), Term(2), Term(extra + 3)])),
        ]);
        let scores = scores(&[segment(&documents)], &[Term(1), Term(2), Term(3)], Parameters::default());
        prop_assert!(scores[0] > scores[1] && scores[1] > 0.0);
    }
}

#[test]
fn an_empty_scope_scores_nothing() {
    let statistics = Statistics::new(vec![Term(1)]);

    let query = Query::new(&statistics, Parameters::default());

    assert!(query.is_empty());
    assert_eq!(
        (statistics.documents(), statistics.average_length()),
        (0, 0.0)
    );
    assert_eq!(
        scores(&[Segment::new()], &[Term(1)], Parameters::default()),
        vec![0.0; SLOTS as usize]
    );
}

#[test]
fn documents_without_terms_count_as_documents() {
    let documents = BTreeMap::from([
        (0, Document::new(vec![])),
        (1, Document::new(vec![Term(1)])),
    ]);

    let actual = scores(&[segment(&documents)], &[Term(1)], Parameters::default());

    assert!(
        (f64::from(actual[1]) - formula(&documents, &[Term(1)], Parameters::default())[1]).abs()
            < 1e-6
    );
}

#[test]
fn a_slot_beyond_the_scores_is_left_out() {
    let mut segment = Segment::new();
    segment.upsert(u32::MAX, &Document::new(vec![Term(1)]));
    segment.upsert(0, &Document::new(vec![Term(1)]));

    let actual = scores(&[segment], &[Term(1)], Parameters::default());

    assert!(actual[0] > 0.0);
}

#[test]
fn scores_add_to_what_is_there() {
    let segment = segment(&BTreeMap::from([(0, Document::new(vec![Term(1)]))]));
    let mut statistics = Statistics::new(vec![Term(1)]);
    segment.count_into(&mut statistics);
    let query = Query::new(&statistics, Parameters::default());
    let mut out = [10.0, 10.0];

    segment.score_into(&query, &mut out);

    assert!(out[0] > 10.0 && out[1] == 10.0);
}

#[test]
fn a_very_long_document_keeps_its_exact_length() {
    let long = Document::new((0..100_000).map(|term| Term(term % 5_000)).collect());
    let documents = BTreeMap::from([(0, long), (1, Document::new(vec![Term(1)]))]);

    let actual = scores(&[segment(&documents)], &[Term(1)], Parameters::default());

    for (actual, expected) in
        actual
            .iter()
            .zip(formula(&documents, &[Term(1)], Parameters::default()))
    {
        assert!((f64::from(*actual) - expected).abs() < 1e-6);
    }
}

#[test]
fn memory_is_counted_and_given_back_with_the_documents() {
    let analyzer = Analyzer::new();
    let mut segment = Segment::new();
    let empty = segment.bytes();
    for slot in 0..1_000 {
        segment.upsert(
            slot,
            &analyzer.document(&format!("message {slot} about tea number {}", slot % 7)),
        );
    }
    let full = segment.bytes();

    (0..1_000).for_each(|slot| assert!(segment.remove(slot)));

    assert!(full > empty + 1_000 * 5 * 16);
    assert!(segment.bytes() < full / 2);
}
