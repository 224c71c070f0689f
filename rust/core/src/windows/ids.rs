//! Where in a conversation the message with an id is.

use hashbrown::HashTable;
use remora_fingerprint::Fingerprint;

/// The sequences of messages by half of the fingerprint of user and id; who asks knows the other half.
#[derive(Default)]
pub(super) struct Ids {
    slots: HashTable<Slot>,
}

struct Slot {
    half: u64,
    sequence: u64,
}

impl Ids {
    /// The sequence of the message with this id. `is_it` says whether the message at a sequence has it.
    pub(super) fn find(&self, id: Fingerprint, is_it: impl Fn(u64) -> bool) -> Option<u64> {
        let half = id.half();
        let slot = self
            .slots
            .find(half, |slot| slot.half == half && is_it(slot.sequence));
        slot.map(|slot| slot.sequence)
    }

    /// Adds a message that is not there yet.
    pub(super) fn insert(&mut self, id: Fingerprint, sequence: u64) {
        let half = id.half();
        let slot = Slot { half, sequence };
        self.slots.insert_unique(half, slot, |slot| slot.half);
    }

    pub(super) fn remove(&mut self, id: Fingerprint, sequence: u64) {
        let found = self
            .slots
            .find_entry(id.half(), |slot| slot.sequence == sequence);
        if let Ok(slot) = found {
            slot.remove();
        }
    }

    /// An estimate of the memory held.
    pub(super) fn bytes(&self) -> usize {
        self.slots.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use remora_fingerprint::Fingerprints;

    #[test]
    fn ids_are_told_apart_by_what_the_caller_knows() {
        let id = Fingerprints::default().of(["sarah", "m1"]);
        let mut ids = Ids::default();
        ids.insert(id, 7);
        ids.insert(id, 9);

        assert_eq!(ids.find(id, |sequence| sequence == 9), Some(9));
        assert_eq!(ids.find(id, |_| false), None);
        ids.remove(id, 9);
        assert_eq!(ids.find(id, |_| true), Some(7));
    }
}
