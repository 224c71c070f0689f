//! Calls that go well.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::ReadBuf;

use super::*;
use crate::credentials::NO_NAME;

#[test]
fn a_quick_call_is_answered() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    let ended = runtime.block_on(client.call(ECHO, b"hello"));

    assert_eq!((ended.http, ended.code), (200, Some(0)));
    assert_eq!(ended.data, framed(b"hello"));
}

/// A client's socket, which counts the reads that find something.
struct Counted(UnixStream, Arc<AtomicUsize>);

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.0).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[test]
fn a_short_reply_comes_at_once() {
    let running = Running::new(Options::default());
    let (reads, calls) = (Arc::new(AtomicUsize::new(0)), 100);
    let counted = runtime().block_on(async {
        let socket = UnixStream::connect(&running.path).await.unwrap();
        let socket = Counted(socket, Arc::clone(&reads));
        let client = Client::over(socket, &h2::client::Builder::new()).await;
        for _ in 0..calls {
            let ended = client.call(ECHO, &[b'x'; 900]).await;
            assert_eq!((ended.code, ended.data.len()), (Some(0), 905));
        }
        reads.load(Ordering::SeqCst)
    });

    // And what the connection itself needs.
    assert!((calls..calls + calls / 2).contains(&counted), "{counted}");
}

#[test]
fn a_call_of_the_pool_is_answered() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    let ended = runtime.block_on(client.call(POOLED, b""));

    assert_eq!((ended.code, ended.data), (Some(0), framed(b"").to_vec()));
}

#[test]
fn a_quick_call_that_would_wait_is_made_again_with_its_time() {
    let running = Running::new(Options::default());
    running.stage.open();
    let (runtime, client) = running.client();

    let ended = runtime.block_on(client.call(GATED, b"x"));

    assert_eq!(ended.code, Some(0));
    assert_eq!(running.stage.tried.load(Ordering::SeqCst), 2);
    assert_eq!(running.answered(), 1);
}

#[test]
fn a_failure_has_its_code_message_and_details() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    let ended = runtime.block_on(client.call(ECHO, b"fail"));

    assert_eq!(ended.code, Some(CHOSEN.0));
    assert_eq!(ended.trailers["grpc-message"], "a message");
    assert_eq!(ended.trailers["grpc-status-details-bin"], "ZGV0YWlscw");
}

#[test]
fn a_request_of_many_frames_is_whole() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let message: Vec<u8> = (0..1 << 20).map(|at: u32| at as u8).collect();

    let ended = runtime.block_on(client.call(ECHO, &message));

    assert_eq!(ended.data, framed(&message));
}

#[test]
fn a_reply_is_whole_however_little_is_taken_at_a_time() {
    let running = Running::new(Options::default());
    let runtime = runtime();
    let message: Vec<u8> = (0..2000).map(|at: u32| at as u8).collect();
    for window in [1, 4, 5, 6, 700] {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window);
        let client = runtime.block_on(Client::connect_as(&running.path, &builder));

        let ended = runtime.block_on(client.call(ECHO, &message));

        assert_eq!((ended.code, ended.data), (Some(0), framed(&message).into()));
    }
}

#[test]
fn a_compressed_request_is_unpacked() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let request = with(ECHO, &[("grpc-encoding", "gzip")]);

    let ended = runtime.block_on(client.send(request, gzipped(b"hello")));

    assert_eq!(
        (ended.code, ended.data),
        (Some(0), framed(b"hello").to_vec())
    );
}

/// A compressed message.
pub(super) fn gzipped(message: &[u8]) -> Bytes {
    let level = flate2::Compression::best();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(message).unwrap();
    let mut framed = framed(&encoder.finish().unwrap()).to_vec();
    framed[0] = 1;
    framed.into()
}

#[test]
fn a_caller_is_identified_once() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();

    for tenant in ["a", "a", "b", "a"] {
        let request = with(ECHO, &[("remora-tenant", tenant)]);
        runtime.block_on(client.send(request, framed(b"")));
    }

    assert_eq!(running.stage.identified.load(Ordering::SeqCst), 2);
}

#[test]
fn a_caller_is_told_anew_when_what_tells_it_has_changed_also_meanwhile() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let identified = || {
        runtime.block_on(client.call(ECHO, b""));
        running.stage.identified.load(Ordering::SeqCst)
    };
    assert_eq!([identified(), identified()], [1, 1]);

    running.transport.forget_callers();
    let transport = Arc::clone(&running.transport);
    let meanwhile = Arc::new(move || transport.forget_callers());
    *running.stage.identifying.lock() = Some(meanwhile);

    assert_eq!([identified(), identified(), identified()], [2, 3, 3]);
}

#[test]
fn a_tenants_name_that_is_no_text_is_not_taken_for_none() {
    let told = |value: &[u8]| {
        let value = HeaderValue::from_bytes(value).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static("remora-tenant"), value)]);
        Credentials::of(&headers, None).tenant.to_owned()
    };

    assert_eq!(told(b"acme"), "acme");
    assert_eq!(told("t\u{e9}n".as_bytes()), NO_NAME);
    assert_eq!(Credentials::of(&HeaderMap::new(), None).tenant, "");
}

#[test]
fn every_message_of_a_stream_is_answered_by_one_in_order() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let body = [framed(b"a"), framed(b""), framed(b"c")].concat();

    let ended = runtime.block_on(client.send(post(EACH), body.clone().into()));

    assert_eq!((ended.code, ended.data), (Some(0), body));
}

#[test]
fn a_failure_within_a_stream_ends_it() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let body = [framed(b"a"), framed(b"fail"), framed(b"c")].concat();

    let ended = runtime.block_on(client.send(post(EACH), body.into()));

    assert_eq!(
        (ended.code, ended.data),
        (Some(CHOSEN.0), framed(b"a").to_vec())
    );
}

#[test]
fn health_says_what_was_set() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let check = |service: &[u8]| {
        let message = [&[10, service.len() as u8], service].concat();
        runtime.block_on(client.call("/grpc.health.v1.Health/Check", &message))
    };

    assert_eq!(check(b"t.T").data, framed(&[8, 1]));
    running.health.set("t.T", false);
    assert_eq!(check(b"t.T").data, framed(&[8, 2]));
    assert_eq!(check(b"unknown").code, Some(Code::NOT_FOUND.0));
}

#[test]
fn whoever_watches_is_told_and_let_go_at_the_end() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let ended = runtime.block_on(async {
        let mut requests = client.requests.clone().ready().await.unwrap();
        let watch = post("/grpc.health.v1.Health/Watch");
        let (response, mut stream) = requests.send_request(watch, false).unwrap();
        stream.send_data(framed(b"\x0a\x03t.T"), true).unwrap();
        let mut body = response.await.unwrap().into_body();
        let first = poll_fn(|context| body.poll_data(context)).await;
        assert_eq!(first.unwrap().unwrap(), framed(&[8, 1]));
        running.health.set("t.T", false);
        let second = poll_fn(|context| body.poll_data(context)).await;
        assert_eq!(second.unwrap().unwrap(), framed(&[8, 2]));
        running.transport.stop(PATIENCE);
        assert!(poll_fn(|context| body.poll_data(context)).await.is_none());
        poll_fn(|context| body.poll_trailers(context)).await
    });

    assert_eq!(ended.unwrap().unwrap()["grpc-status"], "14");
}
