//! What is counted of calls.

use super::*;
use crate::meter::BOUNDS;

/// The counts of a method by its path; `None` if it was not called.
fn calls_of(running: &Running, path: &str) -> Option<Calls> {
    let calls = running.transport.calls();
    calls.into_iter().find(|calls| calls.path == path)
}

fn ended(running: &Running, path: &str) -> Vec<(usize, u64)> {
    let calls = calls_of(running, path);
    let counts = calls.map(|calls| calls.ended).unwrap_or_default();
    let counts = counts.into_iter().enumerate();
    counts.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn calls_are_counted_by_method_and_code() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    runtime.block_on(async {
        for _ in 0..3 {
            client.send(post(ECHO), framed(b"a")).await;
        }
        client.send(post(POOLED), framed(b"a")).await;
        client
            .send(with(ECHO, &[("authorization", "no")]), framed(b""))
            .await;
        client
            .send(with(ECHO, &[("grpc-timeout", "1")]), framed(b""))
            .await;
        client.send(post("/t.T/No"), framed(b"")).await;
        client.send(post("/t.T/NeverHeardOf"), framed(b"")).await;
    });

    assert_eq!(ended(&running, ECHO), [(0, 3), (13, 1), (16, 1)]);
    assert_eq!(ended(&running, POOLED), [(0, 1)]);
    assert_eq!(ended(&running, ""), [(12, 2)]);
    assert_eq!(calls_of(&running, GATED), None);
}

#[test]
fn each_call_is_in_one_bucket() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    runtime.block_on(client.send(post(ECHO), framed(b"a")));

    let calls = calls_of(&running, ECHO).unwrap();
    assert_eq!(calls.buckets.len(), BOUNDS.len() + 1);
    assert_eq!(calls.buckets.iter().sum::<u64>(), 1);
    assert!(calls.taken > Duration::ZERO);
    assert_eq!(calls.open, 0);
}
