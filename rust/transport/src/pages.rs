//! Pages over HTTP/1.1 on a TCP port that also speaks HTTP/2, for probes and scrapers: one request a connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use remora_supervision::failpoints::{self, Point};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::connection;
use super::connections::Connected;
use super::handler::Handler;
use super::page::{Page, Pages};
use super::shared::Shared;

/// The longest head of a request.
const HEAD_BYTES: usize = 8 << 10;
const HEADERS: usize = 64;
/// The beginning of every HTTP/2 connection, long enough to distinguish it from HTTP/1.1.
const PREFACE: &[u8] = b"PRI";
/// How long to wait each time for a peer that has sent only a part of that.
const LOOK: Duration = Duration::from_millis(10);
/// How long a peer has for reading a page, and for closing the connection after it.
const READING: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves a connection in the protocol with which it begins.
pub(super) async fn serve_either<H: Handler>(
    shared: Arc<Shared<H>>,
    pages: Arc<dyn Pages>,
    socket: TcpStream,
    connected: Connected,
) {
    let patience = shared.options.handshake_timeout;
    match timeout(patience, begins_http2(&socket)).await {
        Ok(Ok(true)) => connection::serve(shared, socket, connected).await,
        Ok(Ok(false)) => {
            tokio::select! {
                // A peer that is gone needs no page.
                _ = serve_page(pages, socket, patience) => {}
                () = connected.until_evicted() => {}
            }
        }
        Ok(Err(_)) | Err(_) => {}
    }
}

async fn begins_http2(socket: &TcpStream) -> io::Result<bool> {
    let mut begin = [0; PREFACE.len()];
    loop {
        let count = socket.peek(&mut begin).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if begin[..count] != PREFACE[..count] {
            return Ok(false);
        }
        if count == PREFACE.len() {
            return Ok(true);
        }
        sleep(LOOK).await;
    }
}

async fn serve_page(
    pages: Arc<dyn Pages>,
    mut socket: TcpStream,
    patience: Duration,
) -> io::Result<()> {
    failpoints::hit(Point::PageTask);
    let Ok(head) = timeout(patience, read_head(&mut socket)).await else {
        return Ok(());
    };
    let asked = asked_of(&head?);
    let with_body = !matches!(asked, Asked::Head(_));
    let page = match asked {
        Asked::Get(path) | Asked::Head(path) => {
            let made = spawn_blocking(move || {
                failpoints::hit(Point::PageMaking);
                pages.page(&path)
            });
            match made.await {
                Ok(made) => made.unwrap_or_else(|| plain(404, "there is no such page\n")),
                Err(_) => plain(500, "the page could not be made; the log tells why\n"),
            }
        }
        Asked::Otherwise => plain(405, "only GET and HEAD are answered here\n"),
        Asked::Malformed => plain(400, "this is not HTTP/1.1\n"),
    };
    let sent = timeout(READING, send(&mut socket, &page, with_body)).await;
    sent.map_err(io::Error::from)??;
    // Until the peer has closed. If this side closed first, with bytes unread, the peer might lose the page.
    let mut rest = [0; 1024];
    let drained = async {
        while socket.read(&mut rest).await? > 0 {}
        io::Result::Ok(())
    };
    timeout(FAREWELL, drained).await.unwrap_or(Ok(()))
}

/// The request for a page.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Get(String),
    Head(String),
    Otherwise,
    Malformed,
}

/// The head of a request, as much of it as may be.
async fn read_head(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(1024);
    while head.len() < HEAD_BYTES && !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if socket.read_buf(&mut head).await? == 0 {
            break;
        }
    }
    Ok(head)
}

fn asked_of(head: &[u8]) -> Asked {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) | Err(_) => return Asked::Malformed,
    }
    let path = request.path.unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default().to_owned();
    match request.method {
        Some("GET") => Asked::Get(path),
        Some("HEAD") => Asked::Head(path),
        _ => Asked::Otherwise,
    }
}

fn plain(status: u16, text: &'static str) -> Page {
    Page {
        status,
        content_type: "text/plain; charset=utf-8".to_owned(),
        body: Bytes::from_static(text.as_bytes()),
    }
}

async fn send(socket: &mut TcpStream, page: &Page, with_body: bool) -> io::Result<()> {
    let reason = http::StatusCode::from_u16(page.status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        page.status,
        page.content_type,
        page.body.len()
    );
    socket.write_all(head.as_bytes()).await?;
    if with_body {
        socket.write_all(&page.body).await?;
    }
    socket.shutdown().await
}
