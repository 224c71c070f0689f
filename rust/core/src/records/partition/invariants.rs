//! What holds between the parts of a partition, whatever happened to it.

use super::{PLACE_BYTES, Partition};
use crate::records::entry::Entry;

impl Partition {
    /// Panics if counters or orders are not those of the entries.
    pub(in crate::records) fn check(&self) {
        let entries = || self.entries.values();
        for expiry in self.unapplied_expiries() {
            let held = self.entries.get(expiry.key);
            let held = held.and_then(|entry| {
                entry
                    .versions()
                    .find(|version| version.revision == expiry.revision)
            });
            if let Some(held) = held.and_then(|version| version.held.as_ref()) {
                assert_eq!(held.expire_time, expiry.expire_time);
            }
        }
        let bodies: usize = entries().map(Entry::body_bytes).sum();
        assert_eq!(self.size.bodies, bodies);
        let orders = self.orders.count();
        let keys = self.entries.iter();
        let keys = keys.map(|(key, entry)| PLACE_BYTES + key.len() + entry.key_bytes(orders));
        let empty = Self::new(self.name.clone(), false, 0).size.keys;
        assert_eq!(self.size.keys, empty + keys.sum::<usize>());
        let versions = entries().flat_map(Entry::versions);
        let held = versions.filter(|version| version.held.is_some()).count();
        assert_eq!(self.orders.entries(), orders * held);
    }
}
