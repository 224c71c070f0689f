//! The words of a text with what stands between them, for rules that read phrases.

/// A run of letters, digits and underscores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    /// Where it starts in its text, in bytes.
    pub(crate) start: usize,
    /// What stands between the word before, or the start of the text, and this one.
    pub(crate) gap: &'a str,
}

impl Word<'_> {
    /// Whether the word follows the one before after one blank.
    pub(crate) fn follows(&self) -> bool {
        self.gap == " "
    }

    /// Where it ends in its text, in bytes.
    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The words of a text, in order.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut end = 0;
    for run in text.split(|character: char| !is_word_character(character)) {
        if !run.is_empty() {
            let start = run.as_ptr().addr() - text.as_ptr().addr();
            let gap = &text[end..start];
            words.push(Word {
                text: run,
                start,
                gap,
            });
            end = start + run.len();
        }
    }
    words
}

fn is_word_character(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether the words begin with the phrase, its words parted by one blank each.
pub(crate) fn begin_with(words: &[Word<'_>], phrase: &[&str]) -> bool {
    words.len() >= phrase.len()
        && words
            .iter()
            .zip(phrase)
            .all(|(word, other)| word.text == *other)
        && words[1..phrase.len()].iter().all(Word::follows)
}
