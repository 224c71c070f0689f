//! Names that occur many times in one conversation, held once.

use std::collections::HashMap;
use std::sync::Arc;

/// Users or roles, numbered as they first occur.
#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
    bytes: usize,
}

impl Names {
    /// The number of a name, a new one where it is new.
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.find(name) {
            return number;
        }
        let name: Arc<str> = name.into();
        let number = self.names.len() as u32;
        self.bytes += name.len() + size_of::<(Arc<str>, u32)>() + 2 * size_of::<Arc<str>>();
        self.names.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        number
    }

    /// The number of a name that occurred.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The name of a number that was given.
    pub(super) fn name(&self, number: u32) -> Arc<str> {
        Arc::clone(&self.names[number as usize])
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
