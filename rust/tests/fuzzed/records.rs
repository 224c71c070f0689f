//! Any bytes as records: each is refused or applied, never both, never with a panic.

use std::time::Duration;

use _native::core::{Committed, Core, Settings};
use _native::windows::Selection;

use super::input::Input;

const PATIENCE: Option<Duration> = Some(Duration::from_millis(100));

/// Commits the records that the bytes hold, each behind its length in two bytes.
pub(crate) fn check(bytes: &[u8]) {
    let core = Core::open(None, &Settings::default()).expect("a journal in memory");
    let mut input = Input(bytes);
    let mut accepted = 0;
    while !input.is_empty() {
        let length = input.below(1 << 16);
        let record = input.bytes(length).to_vec();
        if let Ok(Committed::New(revision)) = core.commit(record.into(), PATIENCE) {
            accepted += 1;
            assert_eq!(revision, accepted);
        }
        assert_eq!(core.journal().published(), accepted);
    }
    read(&core);
    core.mark_applied(accepted);
    read(&core);
}

/// Reads the conversations whose names are one letter, which a fuzzer finds soon.
fn read(core: &Core) {
    let published = || core.journal().published();
    for id in ["a", "b", "c"] {
        for tenant in ["", "a"] {
            let _ = core.windows().published_head(tenant, id, published);
            let _ = core
                .windows()
                .list_messages(tenant, id, &everything(), published);
        }
    }
    let _ = core.recall().statistics();
}

fn everything() -> Selection {
    Selection {
        user: "a".to_owned(),
        roles: Vec::new(),
        after_time: None,
        before_time: None,
        after_sequence: None,
        before_sequence: None,
        newest: true,
        limit: usize::MAX,
        max_bytes: usize::MAX,
    }
}
