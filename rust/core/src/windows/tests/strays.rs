//! Bodies before the window: of messages that are replaced there, or put out of order.

use bytes::Bytes;
use remora_fingerprint::Fingerprints;

use crate::windows::Bounds;
use crate::windows::messages::{Messages, NewMessage};

const BOUNDS: Bounds = Bounds {
    total_bytes: usize::MAX,
    body_bytes: usize::MAX,
    bodies: 2,
    gaps: 16,
};

fn put(messages: &mut Messages, sequence: u64, revision: u64) {
    let message = NewMessage {
        sequence,
        id: Fingerprints::default().of(["ann", &sequence.to_string()]),
        user: "ann",
        role: "user",
        create_time: 0,
        sent_time: 0,
        token_count: 0,
        may_use_tools: false,
        body: Some(Bytes::from_static(b"body")),
    };
    messages.put(message, revision);
}

fn with_bodies(messages: &Messages) -> Vec<u64> {
    let live = messages.live();
    let held = live.filter(|entry| entry.body.is_some());
    held.map(|entry| entry.sequence).collect()
}

/// Four messages, of which the newer two have their bodies.
fn four_messages() -> Messages {
    let mut messages = Messages::default();
    for sequence in [10, 20, 30, 40] {
        put(&mut messages, sequence, 1);
    }
    messages.settle(1, 1, &BOUNDS);
    assert_eq!(with_bodies(&messages), [30, 40]);
    messages
}

#[test]
fn a_message_that_is_replaced_before_the_window_leaves_its_body_once_it_is_applied() {
    let mut messages = four_messages();

    put(&mut messages, 10, 2);
    messages.settle(1, 2, &BOUNDS);
    assert_eq!(with_bodies(&messages), [10, 30, 40]);

    messages.settle(2, 2, &BOUNDS);
    assert_eq!(with_bodies(&messages), [30, 40]);
}

#[test]
fn a_message_that_is_put_before_the_window_takes_its_place_there() {
    let mut messages = four_messages();

    put(&mut messages, 15, 2);
    messages.settle(1, 2, &BOUNDS);
    assert_eq!(with_bodies(&messages), [15, 30, 40]);

    messages.settle(2, 2, &BOUNDS);
    assert_eq!(with_bodies(&messages), [30, 40]);
    let sequences: Vec<_> = messages.live().map(|entry| entry.sequence).collect();
    assert_eq!(sequences, [10, 15, 20, 30, 40]);
}
