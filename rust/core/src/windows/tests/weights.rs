//! Whether a window may hold tools: known of what was written, unknown of what was loaded.

use bytes::Bytes;
use remora_fingerprint::Fingerprints;

use crate::windows::messages::{Messages, NewMessage};
use crate::windows::weights;

fn message(sequence: u64, may_use_tools: bool) -> NewMessage<'static> {
    NewMessage {
        sequence,
        id: Fingerprints::default().of(["ann", &sequence.to_string()]),
        user: "ann",
        role: "user",
        create_time: 0,
        sent_time: 0,
        token_count: 1,
        may_use_tools,
        body: Some(Bytes::from_static(b"body")),
    }
}

#[test]
fn only_tools_in_the_window_count() {
    let mut messages = Messages::default();
    for (sequence, may_use_tools) in [(1, true), (2, false), (3, false)] {
        messages.put(message(sequence, may_use_tools), 1);
    }
    let may_use_tools = |first| weights::of(&messages, "ann", (first, 0), &[], 1).may_use_tools;
    assert!(may_use_tools(1));
    assert!(!may_use_tools(2));
}
