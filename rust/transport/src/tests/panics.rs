//! Panics below calls: each ends its own call, and the room that it took is free again.

use super::*;

/// More calls than there are slots.
const CALLS: usize = 20;

#[test]
fn a_panic_below_a_call_is_answered_and_takes_no_place_with_it() {
    for path in [PANICS, PANICS_POOLED] {
        let running = Running::new(Options {
            room: 2,
            open_calls: 4,
            ..Options::default()
        });
        let (runtime, client) = running.client();
        runtime.block_on(async {
            for _ in 0..CALLS {
                assert_eq!(client.call(path, b"").await.code, Some(Code::INTERNAL.0));
            }
            for path in [ECHO, POOLED] {
                assert_eq!(client.call(path, b"").await.code, Some(0));
            }
        });
    }
}

#[test]
fn a_panic_while_a_caller_is_told_is_answered_and_not_remembered() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let headers = [("authorization", "panics")];
    runtime.block_on(async {
        for _ in 0..2 {
            let ended = client.send(with(ECHO, &headers), framed(b"")).await;
            assert_eq!(ended.code, Some(Code::INTERNAL.0));
        }
        assert_eq!(client.call(ECHO, b"").await.code, Some(0));
    });

    assert_eq!(running.stage.identified.load(Ordering::SeqCst), 3);
}

#[test]
fn a_panic_below_a_stream_ends_it_behind_what_came_and_closes_its_source() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let ended = runtime.block_on(client.call(PANICS_IN_STREAM, b""));

    assert_eq!(ended.data, framed(b"first"));
    assert_eq!(ended.code, Some(Code::INTERNAL.0));
    eventually(|| running.stage.is_closed.load(Ordering::SeqCst));
    assert_eq!(runtime.block_on(client.call(POOLED, b"")).code, Some(0));
}
