//! What is counted of calls.

use super::refusals::gated;
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
fn calls_that_no_thread_has_taken_count_as_waiting() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let counted = |open, waiting| {
        let calls = calls_of(&running, GATED);
        calls.is_some_and(|calls| (calls.open, calls.waiting) == (open, waiting))
    };
    runtime.block_on(async {
        let calls = [(); WORKERS + 3].map(|()| tokio::spawn(gated(client.requests.clone())));
        until(|| counted(WORKERS + 3, 3)).await;
        running.stage.open();
        for call in calls {
            assert_eq!(call.await.unwrap(), Some(0));
        }
    });

    assert!(counted(0, 0));
}

#[test]
fn a_stream_waits_for_a_thread_as_other_calls_do() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let waiting = || calls_of(&running, ENDLESS).map(|calls| calls.waiting);
    runtime.block_on(async {
        let gates = [(); WORKERS].map(|()| tokio::spawn(gated(client.requests.clone())));
        until(|| running.stage.tried.load(Ordering::SeqCst) == 2 * WORKERS).await;
        let requests = client.requests.clone();
        let stream = tokio::spawn(async { Client { requests }.call(ENDLESS, b"").await.code });
        until(|| waiting() == Some(1)).await;
        stream.abort();
        until(|| waiting() == Some(0)).await;
        running.stage.open();
        for call in gates {
            assert_eq!(call.await.unwrap(), Some(0));
        }
    });
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
