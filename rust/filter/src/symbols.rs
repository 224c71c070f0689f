//! Short strings that many documents share, as small numbers.

use std::sync::Arc;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The number of a string in its table.
pub type Symbol = u32;

/// Strings under numbers, each counted as often as it is held and forgotten, text and all, when it no longer is.
#[derive(Debug, Default)]
pub struct Symbols {
    numbers: HashMap<Arc<str>, Symbol, FxBuildHasher>,
    entries: Vec<Entry>,
    free: Vec<Symbol>,
    text_bytes: usize,
}

#[derive(Debug)]
struct Entry {
    text: Arc<str>,
    holders: usize,
}

impl Symbols {
    /// The number of `text`, held once more.
    pub fn hold(&mut self, text: &str) -> Symbol {
        let symbol = match self.numbers.get(text) {
            Some(symbol) => *symbol,
            None => self.add(text.into()),
        };
        self.entries[symbol as usize].holders += 1;
        symbol
    }

    /// Gives one hold of the symbol back.
    pub fn release(&mut self, symbol: Symbol) {
        let entry = &mut self.entries[symbol as usize];
        entry.holders -= 1;
        if entry.holders == 0 {
            self.text_bytes -= entry.text.len();
            self.numbers.remove(&entry.text);
            entry.text = Arc::default();
            self.free.push(symbol);
        }
    }

    /// The number of `text`, where something holds it.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.numbers.get(text).copied()
    }

    /// The text of a symbol that something holds.
    pub fn text(&self, symbol: Symbol) -> &str {
        &self.entries[symbol as usize].text
    }

    /// The strings that are held.
    pub fn held(&self) -> impl Iterator<Item = (Symbol, &str)> {
        self.numbers.iter().map(|(text, symbol)| (*symbol, &**text))
    }

    /// One more than the highest number in use.
    pub fn bound(&self) -> usize {
        self.entries.len()
    }

    /// An estimate of the memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.numbers.allocation_size()
            + self.entries.capacity() * size_of::<Entry>()
            + self.text_bytes
    }

    fn add(&mut self, text: Arc<str>) -> Symbol {
        self.text_bytes += text.len();
        let entry = Entry {
            text: Arc::clone(&text),
            holders: 0,
        };
        let symbol = match self.free.pop() {
            Some(symbol) => {
                self.entries[symbol as usize] = entry;
                symbol
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as Symbol
            }
        };
        self.numbers.insert(text, symbol);
        symbol
    }
}
