//! Which namespaces are listed.

use crate::namespaces::encoded_leading;

/// Stands for any one label.
const ANY: &str = "*";

/// Which labels a namespace has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// It begins with these.
    Prefix(Vec<String>),
    /// It ends with these.
    Suffix(Vec<String>),
}

/// Which namespaces are listed: after the first `skip`, at most `limit`.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// All of these hold.
    pub matches: &'a [Match],
    /// Only so many labels of each, and each such list once.
    pub max_depth: Option<usize>,
    pub skip: usize,
    pub limit: usize,
    /// A namespace whose items all have expired is not there.
    pub now: i64,
}

impl Listing<'_> {
    /// What the encoding of each namespace begins with.
    pub(crate) fn leading(&self) -> Vec<u8> {
        let fixed = self.matches.iter().map(|each| match each {
            Match::Prefix(labels) => {
                let labels = labels.iter().map(String::as_str);
                encoded_leading(labels.take_while(|label| *label != ANY))
            }
            Match::Suffix(_) => Vec::new(),
        });
        fixed.max_by_key(Vec::len).unwrap_or_default()
    }

    pub(crate) fn takes(&self, labels: &[String]) -> bool {
        self.matches.iter().all(|each| each.holds(labels))
    }
}

impl Match {
    fn holds(&self, labels: &[String]) -> bool {
        match self {
            Self::Prefix(pattern) => {
                pattern.len() <= labels.len() && fits(pattern, &labels[..pattern.len()])
            }
            Self::Suffix(pattern) => {
                let begin = labels.len().checked_sub(pattern.len());
                begin.is_some_and(|begin| fits(pattern, &labels[begin..]))
            }
        }
    }
}

fn fits(pattern: &[String], labels: &[String]) -> bool {
    let mut pairs = pattern.iter().zip(labels);
    pairs.all(|(wanted, label)| wanted == ANY || wanted == label)
}
