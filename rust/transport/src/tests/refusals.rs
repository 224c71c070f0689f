//! Calls that are refused, and with what.

use super::calls::gzipped;
use super::*;

fn refused(request: Request<()>, body: Bytes) -> (Ended, usize) {
    let running = Running::new(Options {
        receive_limit_bytes: 1000,
        ..Options::default()
    });
    let (runtime, client) = running.client();
    let ended = runtime.block_on(client.send(request, body));
    (ended, running.answered())
}

#[test]
fn what_is_no_call_is_answered_by_http() {
    let uri = format!("http://localhost{ECHO}");
    let get = Request::get(&uri).body(()).unwrap();
    assert_eq!(refused(get, Bytes::new()).0.http, 405);
    let json = Request::post(&uri).header("content-type", "application/json");
    let json = json.body(()).unwrap();
    assert_eq!(refused(json, Bytes::new()).0.http, 415);
}

#[test]
fn what_cannot_be_answered_has_its_code() {
    let truncated = framed(b"abc").slice(..6);
    let twice = [framed(b"a"), framed(b"b")].concat().into();
    let cases: [(&str, Request<()>, Bytes, Code); 12] = [
        (
            "unknown method",
            post("/t.T/No"),
            framed(b""),
            Code::UNIMPLEMENTED,
        ),
        (
            "no caller",
            with(ECHO, &[("authorization", "no")]),
            framed(b""),
            Code(16),
        ),
        (
            "odd timeout",
            with(ECHO, &[("grpc-timeout", "1")]),
            framed(b""),
            Code::INTERNAL,
        ),
        (
            "too large",
            post(ECHO),
            framed(&[0; 1001]),
            Code::RESOURCE_EXHAUSTED,
        ),
        (
            "said to be too large",
            post(ECHO),
            Bytes::from_static(&[0, 255, 0, 0, 0]),
            Code::RESOURCE_EXHAUSTED,
        ),
        ("no message", post(ECHO), Bytes::new(), Code::INTERNAL),
        ("two messages", post(ECHO), twice, Code::INTERNAL),
        ("truncated", post(ECHO), truncated, Code::INTERNAL),
        (
            "unknown flag",
            post(ECHO),
            Bytes::from_static(&[2, 0, 0, 0, 0]),
            Code::INTERNAL,
        ),
        (
            "nothing said of compression",
            post(ECHO),
            gzipped(b"a"),
            Code::INTERNAL,
        ),
        (
            "a bomb",
            with(ECHO, &[("grpc-encoding", "gzip")]),
            gzipped(&vec![0; 900_000]),
            Code::RESOURCE_EXHAUSTED,
        ),
        (
            "a deadline that is over",
            with(ECHO, &[("grpc-timeout", "0n")]),
            Bytes::new(),
            Code::DEADLINE_EXCEEDED,
        ),
    ];
    for (name, request, body, code) in cases {
        let is_open = name == "a deadline that is over";
        let (ended, answered) = if is_open {
            refused_open(request)
        } else {
            refused(request, body)
        };
        assert_eq!((ended.code, answered), (Some(code.0), 0), "{name}");
        assert!(ended.data.is_empty(), "{name}");
    }
}

#[test]
fn a_method_receives_longer_messages_than_others_if_it_is_told_so() {
    const LONGER: Code = Code(11);
    let options = Options {
        receive_limit_bytes: 1000,
        ..Options::default()
    };
    let larger = Larger {
        bytes: 5000,
        refusal: status(LONGER),
    };
    let running = Running::with(options, |transport| {
        transport.with_larger([(POOLED.to_owned(), larger)])
    });
    let (runtime, client) = running.client();
    let code = |request, body| runtime.block_on(client.send(request, body)).code;

    assert_eq!(code(post(POOLED), framed(&[7; 5000])), Some(0));
    assert_eq!(code(post(POOLED), framed(&[7; 5001])), Some(LONGER.0));
    let exhausted = Some(Code::RESOURCE_EXHAUSTED.0);
    assert_eq!(code(post(ECHO), framed(&[7; 1001])), exhausted);
    let compressed = with(POOLED, &[("grpc-encoding", "gzip")]);
    assert_eq!(code(compressed, gzipped(&[7; 1001])), exhausted);
    assert_eq!(running.answered(), 1);
}

/// A call that sends no message and does not end.
fn refused_open(request: Request<()>) -> (Ended, usize) {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let ended = runtime.block_on(open(&client, request));
    (ended, running.answered())
}

async fn open(client: &Client, request: Request<()>) -> Ended {
    let mut requests = client.requests.clone().ready().await.unwrap();
    let (response, _stream) = requests.send_request(request, false).unwrap();
    ended(response).await.unwrap()
}

#[test]
fn an_unknown_method_is_named_by_the_beginning_of_its_path() {
    for (path, shown) in [
        ("/t.T/No".to_owned(), "/t.T/No".to_owned()),
        (
            format!("/t.T/{}", "n".repeat(1000)),
            format!("/t.T/{}", "n".repeat(195)),
        ),
    ] {
        let (ended, _) = refused(post(&path), framed(b""));

        assert_eq!(
            ended.trailers["grpc-message"].to_str().unwrap(),
            format!("there is no method {shown}")
        );
    }
}

#[test]
fn an_unknown_compression_is_told_which_are_known() {
    let (ended, _) = refused(with(ECHO, &[("grpc-encoding", "snappy")]), framed(b""));

    assert_eq!(ended.code, Some(Code::UNIMPLEMENTED.0));
    assert_eq!(
        ended.headers["grpc-accept-encoding"],
        "identity,gzip,deflate"
    );
}

#[test]
fn a_call_whose_message_never_comes_ends_at_the_servers_own_deadline() {
    let running = Running::new(Options {
        default_timeout: Duration::from_millis(20),
        ..Options::default()
    });
    let (runtime, client) = running.client();

    let ended = runtime.block_on(open(&client, post(ECHO)));

    assert_eq!(ended.code, Some(Code::DEADLINE_EXCEEDED.0));
}

#[test]
fn a_deadline_ends_a_call_that_is_being_answered() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    let request = with(GATED, &[("grpc-timeout", "20m")]);
    let ended = runtime.block_on(client.send(request, framed(b"")));

    assert_eq!(ended.code, Some(Code::DEADLINE_EXCEEDED.0));
    assert_eq!(running.answered(), 0);
}

#[test]
fn a_call_without_room_is_refused_while_the_others_go_on() {
    let running = Running::new(Options {
        room: 2,
        ..Options::default()
    });
    let (runtime, client) = running.client();
    let (first, second, refused) = runtime.block_on(async {
        let first = tokio::spawn(gated(client.requests.clone()));
        let second = tokio::spawn(gated(client.requests.clone()));
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 4);
        })
        .await
        .unwrap();
        let refused = client.call(ECHO, b"").await;
        let health = client
            .call("/grpc.health.v1.Health/Check", b"\x0a\x03t.T")
            .await;
        assert_eq!(health.code, Some(0));
        running.stage.open();
        (first.await.unwrap(), second.await.unwrap(), refused)
    });

    assert_eq!((first, second), (Some(0), Some(0)));
    assert_eq!(refused.code, Some(Code::RESOURCE_EXHAUSTED.0));
    assert_eq!(refused.trailers["grpc-status-details-bin"], "ZGV0YWlscw");
    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));
}

/// All room is taken, and a call is refused: the next refusal is an hour away.
fn full() -> (Running, Runtime, Vec<tokio::task::JoinHandle<Option<u8>>>) {
    let running = Running::new(Options {
        room: 2,
        refusal_interval: Duration::from_secs(3600),
        ..Options::default()
    });
    let (runtime, client) = running.client();
    let under_way = runtime.block_on(async {
        let under_way = [(); 2].map(|()| tokio::spawn(gated(client.requests.clone())));
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 4);
        })
        .await
        .unwrap();
        let refused = client.call(ECHO, b"").await;
        assert_eq!(refused.code, Some(Code::RESOURCE_EXHAUSTED.0));
        under_way.into()
    });
    (running, runtime, under_way)
}

#[test]
fn calls_that_are_not_refused_yet_are_answered_when_there_is_room() {
    let (running, runtime, under_way) = full();
    let codes = runtime.block_on(async {
        let client = Client::connect(&running.path).await;
        let waiting = [(); 10].map(|()| {
            let requests = client.requests.clone();
            tokio::spawn(async move { Client { requests }.call(ECHO, b"").await.code })
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(running.answered(), 0);
        running.stage.open();
        let mut codes = Vec::new();
        for call in under_way.into_iter().chain(waiting) {
            codes.push(call.await.unwrap());
        }
        codes
    });

    assert_eq!(codes, [Some(0); 12]);
}

/// How many calls of a method there are, and how many of them wait.
fn counted(running: &Running, path: &str) -> (usize, usize) {
    let calls = running.transport.calls();
    let calls = calls.into_iter().find(|calls| calls.path == path);
    calls.map_or((0, 0), |calls| (calls.open, calls.waiting))
}

#[test]
fn calls_that_wait_for_room_are_counted_until_it_is_their_turn() {
    let (running, runtime, under_way) = full();
    let counted = |path| counted(&running, path);
    let meanwhile = runtime.block_on(async {
        let client = Client::connect(&running.path).await;
        let waiting = tokio::spawn(async move { client.call(ECHO, b"").await.code });
        until(|| counted(ECHO) == (1, 1)).await;
        let meanwhile = counted(GATED);
        running.stage.open();
        for call in under_way.into_iter().chain([waiting]) {
            assert_eq!(call.await.unwrap(), Some(0));
        }
        meanwhile
    });

    assert_eq!(meanwhile, (2, 0));
    assert_eq!((counted(ECHO), counted(GATED)), ((0, 0), (0, 0)));
}

#[test]
fn a_call_whose_deadline_passes_while_it_waits_for_room_is_not_answered() {
    let (running, runtime, _under_way) = full();
    let ended = runtime.block_on(async {
        let client = Client::connect(&running.path).await;
        let request = with(ECHO, &[("grpc-timeout", "20m")]);
        let waiting = tokio::spawn(async move { client.send(request, framed(b"")).await });
        until(|| counted(&running, ECHO) == (1, 1)).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        running.stage.open();
        waiting.await.unwrap()
    });

    assert_eq!(ended.code, Some(Code::DEADLINE_EXCEEDED.0));
    eventually(|| running.answered() == 2);
}

#[test]
fn who_leaves_while_waiting_for_room_leaves_it_to_others() {
    let (running, runtime, _under_way) = full();
    for _ in 0..10 {
        let (own, client) = running.client();
        own.block_on(async {
            let call = client.call(ECHO, b"");
            let left = tokio::time::timeout(Duration::from_millis(5), call).await;
            assert!(left.is_err());
        });
    }
    running.stage.open();

    let ended = runtime.block_on(async {
        let client = Client::connect(&running.path).await;
        client.call(ECHO, b"").await
    });

    assert_eq!(ended.code, Some(0));
}

pub(super) async fn gated(requests: SendRequest<Bytes>) -> Option<u8> {
    let client = Client { requests };
    client.call(GATED, b"").await.code
}

#[test]
fn what_nobody_waits_for_any_more_is_not_answered() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    runtime.block_on(async {
        // Two are with the pool's two threads, the third waits behind them until its caller leaves.
        let _busy = (
            tokio::spawn(gated(client.requests.clone())),
            tokio::spawn(gated(client.requests.clone())),
        );
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 4);
        })
        .await
        .unwrap();
        let request = with(POOLED, &[("grpc-timeout", "1m")]);
        let left = client.send(request, framed(b"")).await;
        assert_eq!(left.code, Some(Code::DEADLINE_EXCEEDED.0));
    });
    running.stage.open();
    eventually(|| running.answered() == 2);

    let ended = runtime.block_on(client.call(POOLED, b""));

    assert_eq!((ended.code, running.answered()), (Some(0), 3));
}

#[test]
fn who_leaves_a_queue_makes_room_at_once() {
    let running = Running::new(Options {
        room: 3,
        ..Options::default()
    });
    let (runtime, client) = running.client();
    runtime.block_on(async {
        // Two are with the pool's two threads, and stay there.
        let _busy = [(); 2].map(|()| tokio::spawn(gated(client.requests.clone())));
        let stage = Arc::clone(&running.stage);
        tokio::task::spawn_blocking(move || {
            eventually(|| stage.tried.load(Ordering::SeqCst) == 4);
        })
        .await
        .unwrap();
        for _ in 0..10 {
            let request = with(POOLED, &[("grpc-timeout", "5m")]);
            let left = client.send(request, framed(b"")).await;
            assert_eq!(left.code, Some(Code::DEADLINE_EXCEEDED.0));
        }
    });
}
