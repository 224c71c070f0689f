//! The words of the texts of a part's rows.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use remora_lexical::{Analyzer, Document, Parameters, Query, Segment, Statistics};
use remora_wire as wire;

/// By row, the words of its text.
pub(crate) struct Words {
    analyzer: Arc<Analyzer>,
    segment: Segment,
}

impl Words {
    pub(crate) fn new(analyzer: Arc<Analyzer>) -> Self {
        Self {
            analyzer,
            segment: Segment::new(),
        }
    }

    /// The same of no rows.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(Arc::clone(&self.analyzer))
    }

    /// The memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.segment.bytes()
    }

    pub(crate) fn put(&mut self, row: usize, body: &Bytes) {
        let text = text(body);
        let document = Document::new(self.analyzer.analyze(&text));
        self.segment.upsert(row as u32, &document);
    }

    pub(crate) fn remove(&mut self, row: usize) {
        self.segment.remove(row as u32);
    }

    /// By row, how much of the words of a query it has, from 0 to 1: its BM25, divided by what a text of average length
    /// gets that has each of them once. Words that no text has count as the rarest.
    pub(crate) fn shares(&self, query: &str, rows: usize) -> Vec<f32> {
        let mut statistics = Statistics::new(self.analyzer.analyze(query));
        self.segment.count_into(&mut statistics);
        let ideal = statistics.ideal(|_| 1.0) as f32;
        let mut scores = vec![0.0; rows];
        let query = Query::new(&statistics, Parameters::default());
        self.segment.score_into(&query, &mut scores);
        if ideal > 0.0 {
            scores
                .iter_mut()
                .for_each(|score| *score = (*score / ideal).min(1.0));
        }
        scores
    }
}

/// The text of a stored body; empty if that has none.
fn text(body: &Bytes) -> String {
    wire::VectorText::decode(body.clone())
        .unwrap_or_default()
        .text
}
