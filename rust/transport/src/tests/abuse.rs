//! Peers that mean no good, or do not read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream as Socket;

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

fn socket(running: &Running) -> Socket {
    let socket = Socket::connect(&running.path).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Reads until the server closes the connection.
fn read_to_the_end(socket: &mut Socket) {
    let mut rest = Vec::new();
    // A reset is an end, too.
    if let Err(error) = socket.read_to_end(&mut rest) {
        assert_ne!(
            error.kind(),
            std::io::ErrorKind::WouldBlock,
            "it was not closed"
        );
    }
}

#[test]
fn a_peer_that_says_nothing_is_let_go() {
    let running = Running::new(Options {
        handshake_timeout: Duration::from_millis(20),
        ..Options::default()
    });

    read_to_the_end(&mut socket(&running));
}

#[test]
fn a_peer_that_speaks_another_protocol_is_let_go() {
    let running = Running::new(Options::default());
    let mut socket = socket(&running);

    socket
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();

    read_to_the_end(&mut socket);
}

#[test]
fn a_peer_that_does_not_answer_a_ping_is_let_go() {
    let running = Running::new(Options {
        keepalive: Duration::from_millis(10),
        keepalive_timeout: Duration::from_millis(10),
        ..Options::default()
    });
    let mut socket = socket(&running);

    socket.write_all(&[PREFACE, SETTINGS].concat()).unwrap();

    read_to_the_end(&mut socket);
}

#[test]
fn a_stream_whose_reader_answers_no_ping_is_closed() {
    let running = Running::new(Options {
        keepalive: Duration::from_millis(50),
        keepalive_timeout: Duration::from_millis(10),
        ..Options::default()
    });
    let mut frames = [PREFACE, SETTINGS, &head(1, ENDLESS)].concat();
    frames.extend_from_slice(&[0, 0, 5, 0, 1, 0, 0, 0, 1]);
    frames.extend_from_slice(&framed(b""));

    // On a busy machine a connection may be closed before its call is answered.
    while !running.stage.is_closed.load(Ordering::SeqCst) {
        let mut socket = socket(&running);
        socket.write_all(&frames).unwrap();
        read_to_the_end(&mut socket);
    }
}

#[test]
fn a_peer_that_answers_pings_is_kept() {
    let running = Running::new(Options {
        keepalive: Duration::from_millis(5),
        ..Options::default()
    });
    let (runtime, client) = running.client();
    runtime.block_on(async { tokio::time::sleep(Duration::from_millis(50)).await });

    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));
}

#[test]
fn connections_beyond_the_bound_are_closed_until_there_is_room() {
    let running = Running::new(Options {
        connections: 1,
        ..Options::default()
    });
    let (runtime, client) = running.client();
    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));

    read_to_the_end(&mut socket(&running));
    drop((client, runtime));

    eventually(|| {
        super::runtime().block_on(async {
            let socket = UnixStream::connect(&running.path).await.unwrap();
            let Ok((requests, connection)) = h2::client::handshake(socket).await else {
                return false;
            };
            tokio::spawn(connection);
            let ended = Client { requests }.try_send(post(ECHO), framed(b"")).await;
            ended.is_ok_and(|ended| ended.code == Some(0))
        })
    });
}

#[test]
fn a_hundred_thousand_resets_leave_a_server_that_answers() {
    let running = Running::new(Options::default());
    let mut socket = socket(&running);
    socket.write_all(&[PREFACE, SETTINGS].concat()).unwrap();
    let mut reader = socket.try_clone().unwrap();
    let reading = thread::spawn(move || read_to_the_end(&mut reader));
    let mut stream = 1_u32;
    for _ in 0..1000 {
        let mut frames = Vec::new();
        for _ in 0..100 {
            frames.extend_from_slice(&head(stream, ECHO));
            frames.extend_from_slice(&reset(stream));
            stream += 2;
        }
        if socket.write_all(&frames).is_err() {
            break; // Closed, which is an answer to this.
        }
    }
    // Its end may have come first.
    let _ = socket.shutdown(std::net::Shutdown::Both);
    reading.join().unwrap();
    let (runtime, client) = running.client();

    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));
    assert_eq!(running.answered(), 1);
}

/// HEADERS of a call, every field a literal.
fn head(stream: u32, path: &str) -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    for (name, value) in [
        (&b":path"[..], path.as_bytes()),
        (b"content-type", b"application/grpc"),
    ] {
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name);
        block.push(value.len() as u8);
        block.extend_from_slice(value);
    }
    let mut frame = vec![0, 0, block.len() as u8, 1, 4];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(&block);
    frame
}

fn reset(stream: u32) -> Vec<u8> {
    let mut frame = vec![0, 0, 4, 3, 0];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(&8_u32.to_be_bytes());
    frame
}

#[test]
fn a_peer_that_does_not_read_holds_few_replies_and_then_none() {
    let running = Running::new(Options {
        connection_reply_bytes: LARGE_BYTES / 2,
        stall_timeout: Duration::from_millis(50),
        ..Options::default()
    });
    let (runtime, client) = running.client();
    runtime.block_on(async {
        let mut unread = Vec::new();
        for _ in 0..20 {
            let mut requests = client.requests.clone().ready().await.unwrap();
            let (response, mut stream) = requests.send_request(post(LARGE), false).unwrap();
            stream.send_data(framed(b""), true).unwrap();
            unread.push(response);
        }
        let stage = Arc::clone(&running.stage);
        tokio::time::sleep(Duration::from_millis(200)).await;
        // So many were begun before the first reply was there; the others wait.
        assert!(stage.answered.load(Ordering::SeqCst) < 20);
        drop(unread);
    });

    let (runtime, client) = running.client();
    assert_eq!(
        runtime.block_on(client.call(LARGE, b"")).data.len(),
        LARGE_BYTES + 5
    );
}

/// The connection-wide window and that of each stream, as far as they go.
fn widest_windows() -> Vec<u8> {
    let mut frames = vec![0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff];
    frames.extend_from_slice(&[0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]);
    frames
}

/// Makes calls on a connection and reads nothing; how many are answered, at most, after a while.
fn answered_unread(settings: &[u8], path: &str, message: &[u8], bound: usize) -> usize {
    let running = Running::new(Options {
        connection_reply_bytes: bound,
        streams: 100,
        ..Options::default()
    });
    let mut socket = socket(&running);
    socket.write_all(&[PREFACE, settings].concat()).unwrap();
    for stream in (1..200).step_by(2) {
        let mut frames = head(stream, path);
        frames.extend_from_slice(&[0, 0, message.len() as u8 + 5, 0, 1]);
        frames.extend_from_slice(&stream.to_be_bytes());
        frames.extend_from_slice(&framed(message));
        socket.write_all(&frames).unwrap();
    }
    eventually(|| running.answered() > 0);
    thread::sleep(Duration::from_millis(300));
    running.answered()
}

#[test]
fn replies_that_the_peer_has_windows_for_count_until_it_reads() {
    let answered = answered_unread(&widest_windows(), MEDIUM, b"", 4 * MEDIUM_BYTES);

    // The socket takes some, and so many are begun before the bound is met.
    assert!(answered > 0 && answered < 50, "{answered}");
}

#[test]
fn small_replies_count_until_the_peer_has_a_window_for_them() {
    let no_window = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];
    let answered = answered_unread(&no_window, ECHO, &[7; 100], 1000);

    assert!(answered > 0 && answered < 50, "{answered}");
}

#[test]
fn requests_that_are_never_whole_hold_no_more_than_their_share() {
    let running = Running::new(Options {
        request_bytes: 100_000,
        ..Options::default()
    });
    let (runtime, client) = running.client();
    let half = framed(&vec![0; 200_000]).slice(..60_000);
    runtime.block_on(async {
        let mut requests = client.requests.clone().ready().await.unwrap();
        let (_first, mut stream) = requests.send_request(post(ECHO), false).unwrap();
        stream.send_data(half.clone(), false).unwrap();
        let second = client.send(post(ECHO), half).await;
        assert_eq!(second.code, Some(PEER_FULL.0));
        drop(stream);
    });

    let (runtime, client) = running.client();
    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));
}

#[test]
fn a_head_that_is_too_long_is_refused() {
    let running = Running::new(Options::default());
    let (runtime, client) = running.client();
    let long = "x".repeat(20_000);

    let refused = runtime.block_on(client.try_send(with(ECHO, &[("a", &long)]), framed(b"")));

    assert!(refused.map_or(true, |ended| ended.http == 431));
    let (runtime, client) = running.client();
    assert_eq!(runtime.block_on(client.call(ECHO, b"")).code, Some(0));
}
