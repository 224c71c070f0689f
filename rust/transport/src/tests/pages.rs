//! Pages on a port that also takes calls, asked for as probes do and as nobody should.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use super::*;

struct Site;

impl Pages for Site {
    fn page(&self, path: &str) -> Option<Page> {
        let page = |status, body: Vec<u8>| Page {
            status,
            content_type: "text/plain".to_owned(),
            body: body.into(),
        };
        match path {
            "/well" => Some(page(200, b"well\n".to_vec())),
            "/ill" => Some(page(503, b"ill\n".to_vec())),
            "/long" => Some(page(200, vec![b'z'; 4 << 20])),
            _ => None,
        }
    }
}

fn serving(options: Options) -> Running {
    Running::with(options, |transport| transport.with_pages(Arc::new(Site)))
}

/// All that comes back for some bytes, until the server closes the connection or resets it.
fn answered(running: &Running, sent: &[u8]) -> String {
    let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, running.port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answer = String::new();
    let _ = socket.write_all(sent);
    let _ = socket.read_to_string(&mut answer);
    answer
}

fn get(running: &Running, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: pod\r\nUser-Agent: probe\r\n\r\n");
    answered(running, request.as_bytes())
}

#[test]
fn pages_and_calls_are_answered_on_one_port() {
    let running = serving(Options::default());
    let well = get(&running, "/well?verbose=1");
    assert!(well.starts_with("HTTP/1.1 200 OK\r\n"), "{well}");
    assert!(
        well.ends_with(
            "Content-Length: 5\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nwell\n"
        ),
        "{well}"
    );
    assert!(get(&running, "/ill").starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
    assert!(get(&running, "/none").starts_with("HTTP/1.1 404 Not Found\r\n"));
    assert_eq!(get(&running, "/long").matches('z').count(), 4 << 20);
    let ended = runtime().block_on(async {
        let client = running.client_from(1, &h2::client::Builder::new()).await;
        client.send(post(ECHO), framed(b"a")).await
    });
    assert_eq!(ended.code, Some(0));
}

#[test]
fn a_head_has_no_body_and_nothing_else_is_done() {
    let running = serving(Options::default());
    let head = answered(&running, b"HEAD /well HTTP/1.0\r\n\r\n");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let posted = answered(
        &running,
        b"POST /well HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(posted.starts_with("HTTP/1.1 405 "), "{posted}");
    for broken in [
        "hello\r\n\r\n",
        "GET /well\r\n\r\n",
        "\x16\x03\x01\0\r\n\r\n",
    ] {
        let answer = answered(&running, broken.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 400 "), "{broken:?}: {answer}");
    }
    let endless = [b"GET /well HTTP/1.1\r\n".as_slice(), &[b'a'; 9000]].concat();
    assert!(answered(&running, &endless).starts_with("HTTP/1.1 400 "));
}

#[test]
fn who_says_nothing_holds_up_nobody_and_is_let_go() {
    let running = serving(Options {
        handshake_timeout: Duration::from_millis(200),
        ..Options::default()
    });
    let silent: Vec<_> = ["", "P", "PR", "GET /we"]
        .iter()
        .map(|begun| {
            let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, running.port)).unwrap();
            socket.write_all(begun.as_bytes()).unwrap();
            socket
        })
        .collect();
    // On a busy machine a request may come too late.
    eventually(|| get(&running, "/well").starts_with("HTTP/1.1 200 "));
    for mut socket in silent {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut rest = Vec::new();
        // What it sent was not read: the connection may be reset.
        let read = socket.read_to_end(&mut rest).map_err(|error| error.kind());
        assert!(
            matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset)),
            "{read:?}"
        );
    }
}
