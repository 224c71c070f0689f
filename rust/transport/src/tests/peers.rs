//! What one peer holds, and what others get meanwhile.

use h2::client::ResponseFuture;

use super::*;
use crate::message::PREFIX_BYTES;

const MIB: usize = 1 << 20;
/// The last parts of the addresses that peers come from.
const HOG: u8 = 2;
const OTHER: u8 = 3;
/// How many threads answer: each may have begun a reply when there is no more room.
const THREADS: usize = 2;

/// A client whose replies find no window.
fn unread() -> h2::client::Builder {
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(0);
    builder
}

fn usual() -> h2::client::Builder {
    h2::client::Builder::new()
}

/// Bounds that only tests meet, of which none ends by itself.
fn patient() -> Options {
    Options {
        stall_timeout: PATIENCE,
        full_stall_timeout: PATIENCE,
        default_timeout: PATIENCE,
        request_timeout: PATIENCE,
        ..Options::default()
    }
}

/// Calls that are made and stay where they are while this is kept.
struct Begun {
    _client: Client,
    responses: Vec<ResponseFuture>,
    _streams: Vec<h2::SendStream<Bytes>>,
}

impl Begun {
    /// Calls with these bytes of a request, which ends there or does not.
    async fn new(client: Client, path: &str, count: usize, body: Bytes, ends: bool) -> Self {
        let (mut responses, mut streams) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut requests = client.requests.clone().ready().await.unwrap();
            let (response, mut stream) = requests.send_request(post(path), false).unwrap();
            stream.send_data(body.clone(), ends).unwrap();
            responses.push(response);
            streams.push(stream);
        }
        Self {
            _client: client,
            responses,
            _streams: streams,
        }
    }

    /// How the last call ends.
    async fn last(&mut self) -> Ended {
        ended(self.responses.pop().unwrap()).await.unwrap()
    }
}

fn replies_held(running: &Running) -> usize {
    running.transport.shared.budgets.replies.held()
}

#[test]
fn readers_that_do_not_read_hold_no_more_than_their_part_and_hinder_nobody() {
    const READERS: usize = 20;
    const CALLS: usize = 90;
    for path in [LARGE, LARGE_POOLED] {
        let running = Running::new(Options {
            reply_bytes: 256 * MIB,
            room: READERS * CALLS,
            ..patient()
        });
        runtime().block_on(async {
            let mut readers = Vec::new();
            for _ in 0..READERS {
                let client = running.client_from(HOG, &unread()).await;
                readers.push(Begun::new(client, path, CALLS, framed(b""), true).await);
            }
            until(|| replies_held(&running) >= READERS * LARGE_BYTES).await;
            for address in [OTHER, HOG] {
                let honest = running.client_from(address, &usual()).await;
                for _ in 0..100 {
                    assert_eq!(honest.call(ECHO, b"").await.code, Some(0));
                    assert_eq!(honest.call(path, b"").await.code, Some(0));
                }
            }
            // Those that hold something wait when all together hold an eighth of what is free.
            let held = replies_held(&running) / LARGE_BYTES;
            assert!(held <= 256 / 9 + READERS + THREADS, "{held}");
            drop(readers);
        });
    }
}

#[test]
fn a_peer_that_holds_as_much_as_it_may_is_refused_and_others_are_not() {
    let running = Running::new(Options {
        reply_bytes: 8 * MIB,
        ..patient()
    });
    runtime().block_on(async {
        let mut readers = Vec::new();
        while replies_held(&running) < 4 * MIB {
            let before = replies_held(&running);
            let client = running.client_from(HOG, &unread()).await;
            readers.push(Begun::new(client, LARGE, 1, framed(b""), true).await);
            until(|| replies_held(&running) > before).await;
        }
        let same = running.client_from(HOG, &usual()).await;
        let other = running.client_from(OTHER, &usual()).await;

        assert_eq!(same.call(ECHO, b"").await.code, Some(PEER_FULL.0));
        assert_eq!(other.call(LARGE, b"").await.code, Some(0));

        readers.pop();
        until(|| replies_held(&running) < 4 * MIB).await;
        assert_eq!(same.call(ECHO, b"").await.code, Some(0));
    });
}

#[test]
fn connections_that_keep_their_peer_from_being_answered_are_closed() {
    let running = Running::new(Options {
        reply_bytes: 8 * MIB,
        full_stall_timeout: Duration::from_secs(1),
        ..patient()
    });
    runtime().block_on(async {
        let same = running.client_from(HOG, &usual()).await;
        let mut readers = Vec::new();
        for _ in 0..20 {
            let client = running.client_from(HOG, &unread()).await;
            readers.push(Begun::new(client, LARGE, 1, framed(b""), true).await);
        }
        while same.call(LARGE, b"").await.code != Some(0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // The one that reads was not closed.
        assert_eq!(same.call(LARGE, b"").await.code, Some(0));
    });
}

#[test]
fn a_reply_that_is_left_where_it_is_ends_its_call() {
    let running = Running::new(Options {
        stall_timeout: Duration::from_millis(50),
        ..patient()
    });
    runtime().block_on(async {
        let client = running.client_from(HOG, &unread()).await;
        let _unread = Begun::new(client, LARGE, 3, framed(b""), true).await;

        until(|| running.answered() == 3 && replies_held(&running) == 0).await;
    });
}

#[test]
fn a_peer_has_no_more_open_calls_than_are_left_to_others() {
    let running = Running::new(Options {
        open_calls: 8,
        ..patient()
    });
    runtime().block_on(async {
        let mut open = Vec::new();
        for _ in 0..2 {
            let client = running.client_from(HOG, &usual()).await;
            open.push(Begun::new(client, ECHO, 2, Bytes::new(), false).await);
        }
        until(|| running.transport.shared.budgets.calls.held() == 4).await;
        let client = running.client_from(HOG, &usual()).await;
        let mut refused = Begun::new(client, ECHO, 1, Bytes::new(), false).await;
        let other = running.client_from(OTHER, &usual()).await;

        assert_eq!(refused.last().await.code, Some(PEER_FULL.0));
        assert_eq!(other.call(ECHO, b"").await.code, Some(0));
    });
}

#[test]
fn a_peer_has_no_more_unfinished_requests_than_are_left_to_others() {
    let running = Running::new(Options {
        request_bytes: 200_000,
        ..patient()
    });
    let half = framed(&vec![0; 200_000]).slice(..60_000);
    runtime().block_on(async {
        let requests = &running.transport.shared.budgets.requests;
        let client = running.client_from(HOG, &usual()).await;
        let _first = Begun::new(client, ECHO, 1, half.clone(), false).await;
        until(|| requests.held() == half.len()).await;
        let client = running.client_from(HOG, &usual()).await;
        let mut second = Begun::new(client, ECHO, 1, half, false).await;
        let other = running.client_from(OTHER, &usual()).await;

        assert_eq!(second.last().await.code, Some(PEER_FULL.0));
        assert_eq!(other.call(ECHO, &[0; 60_000]).await.code, Some(0));
    });
}

#[test]
fn a_request_that_does_not_come_ends_although_its_caller_has_time() {
    let running = Running::new(Options {
        request_timeout: Duration::from_millis(20),
        ..patient()
    });
    let (runtime, client) = running.client();
    let ended = runtime.block_on(async {
        let mut requests = client.requests.clone().ready().await.unwrap();
        let request = with(ECHO, &[("grpc-timeout", "99999999H")]);
        let (response, _stream) = requests.send_request(request, false).unwrap();
        ended(response).await.unwrap()
    });

    assert_eq!(ended.code, Some(Code::DEADLINE_EXCEEDED.0));
}

#[test]
fn a_peer_has_no_more_streams_than_are_left_to_others() {
    let running = Running::new(Options {
        flows: 8,
        ..patient()
    });
    runtime().block_on(async {
        let client = running.client_from(HOG, &unread()).await;
        let mut streams = Begun::new(client, ENDLESS, 5, framed(b""), true).await;
        let other = running.client_from(OTHER, &unread()).await;
        let _watched = Begun::new(other, ENDLESS, 1, framed(b""), true).await;

        assert_eq!(streams.last().await.code, Some(PEER_FULL.0));
        until(|| replies_held(&running) == 5 * LARGE_BYTES).await;
    });
}

#[test]
fn a_stream_waits_while_its_peer_holds_as_much_as_it_may() {
    let running = Running::new(Options {
        reply_bytes: 8 * MIB,
        ..patient()
    });
    runtime().block_on(async {
        let held = || replies_held(&running);
        let holds = |messages: usize| until(move || held() == messages * LARGE_BYTES);
        let reading = running.client_from(HOG, &usual()).await;
        let mut stream = Begun::new(reading, ENDLESS, 1, framed(b""), true).await;
        holds(1).await;
        let mut readers = Vec::new();
        for (address, count) in [(HOG, 3), (OTHER, 2)] {
            for _ in 0..count {
                let client = running.client_from(address, &unread()).await;
                readers.push(Begun::new(client, LARGE, 1, framed(b""), true).await);
                holds(1 + readers.len()).await;
            }
        }

        let response = stream.responses.pop().unwrap().await.unwrap();
        let mut body = response.into_body();
        read(&mut body, LARGE_BYTES + PREFIX_BYTES).await;
        holds(readers.len()).await;
        drop(readers);
        read(&mut body, 10 * LARGE_BYTES).await;
    });
}

/// Reads so many bytes, at least.
async fn read(body: &mut h2::RecvStream, mut bytes: usize) {
    while bytes > 0 {
        let chunk = poll_fn(|context| body.poll_data(context)).await;
        let count = chunk.unwrap().unwrap().len();
        body.flow_control().release_capacity(count).unwrap();
        bytes = bytes.saturating_sub(count);
    }
}

#[test]
fn a_peer_watches_no_more_than_is_left_to_others() {
    const WATCH: &str = "/grpc.health.v1.Health/Watch";
    let service = framed(b"\x0a\x03t.T");
    let running = Running::new(Options {
        watches: 8,
        ..patient()
    });
    runtime().block_on(async {
        let client = running.client_from(HOG, &usual()).await;
        let _watching = Begun::new(client, WATCH, 4, service.clone(), true).await;
        until(|| running.transport.shared.budgets.watches.held() == 4).await;
        let client = running.client_from(HOG, &usual()).await;
        let mut refused = Begun::new(client, WATCH, 1, service.clone(), true).await;
        let other = running.client_from(OTHER, &usual()).await;
        let _watched = Begun::new(other, WATCH, 1, service, true).await;

        let code = refused.last().await.code;
        assert_eq!(code, Some(Code::RESOURCE_EXHAUSTED.0));
        until(|| running.transport.shared.budgets.watches.held() == 5).await;
    });
}
