//! Cuts text into folded words and pairs of characters, in one pass and bounded memory per word.
//!
//! In ASCII, a word is a run of letters and digits, so that "can't", "3.5", "ORD-1234" and "2023-05-07" are searched by
//! their parts. UAX #29 agrees for other scripts but for the punctuation that it keeps inside words, which is a gap
//! here as well: the apostrophe of Ukrainian or Hebrew is typed in three ways that then still meet.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::compose;

use super::characters::{Role, Script, fold, is_ignored, role, spelled_out};

/// A word's bytes beyond this many are skipped; enough for a SHA-512 in hexadecimal.
pub(super) const LONGEST_WORD: usize = 128;

/// A character of a run without spaces, with its marks, has at most this many bytes before the next mark is dropped.
const LONGEST_CHARACTER: usize = 24;

/// What the scanner has found.
pub(super) enum Piece<'a> {
    /// A word of letters and digits; `accented` if it was written with letters outside ASCII that fold into it.
    Word {
        text: &'a mut String,
        accented: bool,
    },
    /// Two neighbours in a run without spaces, or the run's only character.
    Pair(&'a str),
}

/// Calls `emit` for each piece of the text, in order.
pub(super) fn scan(text: &str, emit: impl FnMut(Piece<'_>)) {
    let mut scanner = Scanner {
        word: String::new(),
        accented: false,
        run: Run::default(),
        emit,
    };
    let mut rest = text;
    while !rest.is_empty() {
        let (ascii, tail) = rest.split_at(length_while(rest, |byte| byte.is_ascii()));
        ascii.bytes().for_each(|byte| scanner.push_ascii(byte));
        let (other, next) = tail.split_at(length_while(tail, |byte| !byte.is_ascii()));
        scanner.push_other(other);
        rest = next;
    }
    scanner.finish_piece();
}

fn length_while(text: &str, keep: impl Fn(u8) -> bool) -> usize {
    text.bytes()
        .position(|byte| !keep(byte))
        .unwrap_or(text.len())
}

struct Scanner<F> {
    word: String,
    accented: bool,
    run: Run,
    emit: F,
}

impl<F: FnMut(Piece<'_>)> Scanner<F> {
    fn push_ascii(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() {
            self.finish_run();
            self.extend_word(char::from(byte.to_ascii_lowercase()));
        } else {
            self.finish_piece();
        }
    }

    /// Takes a stretch without ASCII. Normalising it apart from its neighbours changes no word: an accent that could
    /// join an ASCII letter would be folded away, and `push` notes that it was there.
    fn push_other(&mut self, stretch: &str) {
        for character in stretch
            .chars()
            .map(trademark_to_gap)
            .nfkc()
            .flat_map(char::to_lowercase)
        {
            match spelled_out(character) {
                Some(letters) => letters
                    .chars()
                    .for_each(|letter| self.push_folded(letter, true)),
                None => self.push(character),
            }
        }
    }

    fn push(&mut self, character: char) {
        if is_ignored(character) {
            self.push_ignored(character);
        } else {
            let folded = fold(character);
            self.push_folded(folded, folded != character);
        }
    }

    /// Notes an accent that stands apart from its ASCII letter.
    #[cold]
    fn push_ignored(&mut self, character: char) {
        let letter = self.word.chars().next_back();
        self.accented |= letter.is_some_and(|letter| compose(letter, character).is_some());
    }

    fn push_folded(&mut self, character: char, accented: bool) {
        match role(character) {
            Role::Letter => {
                self.finish_run();
                self.accented |= accented;
                self.extend_word(character);
            }
            Role::Paired(script) => {
                self.finish_word();
                self.extend_run(character, script);
            }
            Role::Mark if self.word.is_empty() => self.run.add_mark(character),
            Role::Mark => self.extend_word(character),
            Role::Gap => self.finish_piece(),
        }
    }

    fn extend_word(&mut self, character: char) {
        if self.word.len() + character.len_utf8() <= LONGEST_WORD {
            self.word.push(character);
        }
    }

    fn extend_run(&mut self, character: char, script: Script) {
        let script = self.run.script_of(character, script);
        if self.run.script != Some(script) {
            self.finish_run();
        }
        if self.run.is_pair() {
            (self.emit)(Piece::Pair(&self.run.text));
            self.run.forget_first();
        }
        self.run.add(character, script);
    }

    fn finish_piece(&mut self) {
        self.finish_word();
        self.finish_run();
    }

    fn finish_word(&mut self) {
        if !self.word.is_empty() {
            (self.emit)(Piece::Word {
                text: &mut self.word,
                accented: self.accented,
            });
            self.word.clear();
        }
        self.accented = false;
    }

    fn finish_run(&mut self) {
        if self.run.script.take().is_some() {
            (self.emit)(Piece::Pair(&self.run.text));
            self.run.text.clear();
        }
    }
}

/// Lengthens the vowel before it, in hiragana as in katakana.
const LONG_VOWEL: char = 'ー';

/// Keeps "Name™" from becoming "nametm" in NFKC.
fn trademark_to_gap(character: char) -> char {
    match character {
        '™' | '℠' => ' ',
        other => other,
    }
}

/// The last two characters, with their marks, of a run in one script; or its only one so far.
#[derive(Default)]
struct Run {
    script: Option<Script>,
    text: String,
    /// Where the last character starts in `text`.
    last: usize,
}

impl Run {
    fn script_of(&self, character: char, script: Script) -> Script {
        match self.script {
            Some(Script::Hiragana) if character == LONG_VOWEL => Script::Hiragana,
            _ => script,
        }
    }

    fn is_pair(&self) -> bool {
        !self.text.is_empty() && self.last > 0
    }

    fn forget_first(&mut self) {
        self.text.drain(..self.last);
    }

    fn add(&mut self, character: char, script: Script) {
        self.script = Some(script);
        self.last = self.text.len();
        self.text.push(character);
    }

    fn add_mark(&mut self, mark: char) {
        let length = self.text.len() - self.last.min(self.text.len());
        if length > 0 && length + mark.len_utf8() <= LONGEST_CHARACTER {
            self.text.push(mark);
        }
    }
}
