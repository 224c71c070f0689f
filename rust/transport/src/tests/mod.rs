//! The transport over real sockets, met by h2's client and by bytes that no client would send.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod abuse;
mod calls;
mod ending;
mod holding;
mod meters;
mod pages;
mod panics;
mod peers;
mod pool;
mod refusals;

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, Request};
use parking_lot::{Condvar, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpSocket, UnixStream};
use tokio::runtime::Runtime;

use super::*;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

const ECHO: &str = "/t.T/Echo";
const POOLED: &str = "/t.T/Pooled";
const GATED: &str = "/t.T/Gated";
const LATER: &str = "/t.T/Later";
const EACH: &str = "/t.T/Each";
const LARGE: &str = "/t.T/Large";
const LARGE_POOLED: &str = "/t.T/LargePooled";
const MEDIUM: &str = "/t.T/Medium";
const PANICS: &str = "/t.T/Panics";
const PANICS_POOLED: &str = "/t.T/PanicsPooled";
const PANICS_IN_STREAM: &str = "/t.T/PanicsInStream";
const ENDLESS: &str = "/t.T/Endless";

const METHODS: [(&str, Answering); 12] = [
    (ECHO, Answering::Quick),
    (POOLED, Answering::Pool),
    (GATED, Answering::Quick),
    (LATER, Answering::Quick),
    (EACH, Answering::Each),
    (LARGE, Answering::Quick),
    (LARGE_POOLED, Answering::Pool),
    (MEDIUM, Answering::Quick),
    (PANICS, Answering::Quick),
    (PANICS_POOLED, Answering::Pool),
    (PANICS_IN_STREAM, Answering::Stream),
    (ENDLESS, Answering::Stream),
];

/// How many threads answer what has to wait.
const WORKERS: usize = 2;
/// What Large answers with.
const LARGE_BYTES: usize = 1 << 20;
/// What Medium answers with: less than h2 takes of a stream for a peer that does not read.
const MEDIUM_BYTES: usize = 200 << 10;
/// The revision that Later speaks of.
const REVISION: u64 = 7;
const CHOSEN: Code = Code(9);
/// What a peer is told that has as much as it may.
const PEER_FULL: Code = Code(17);
/// What a reader is told that let too much wait.
const SLOW: Code = Code(10);

/// What a test sees of the handler, and holds back.
#[derive(Default)]
struct Stage {
    identified: AtomicUsize,
    answered: AtomicUsize,
    tried: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
    published: AtomicU64,
    has_ended: AtomicBool,
    is_closed: AtomicBool,
    changed: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
    /// Done while a caller is told.
    identifying: Mutex<Option<Arc<dyn Fn() + Send + Sync>>>,
}

impl Stage {
    /// Lets gated calls go on.
    fn open(&self) {
        *self.is_open.lock() = true;
        self.opened.notify_all();
    }

    fn publish(&self, revision: u64) {
        self.published.store(revision, Ordering::SeqCst);
        self.change();
    }

    fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.change();
    }

    fn change(&self) {
        let changed = self.changed.lock().clone();
        if let Some(changed) = changed {
            changed();
        }
    }
}

struct Played(Arc<Stage>);

impl Publication for Played {
    fn published(&self) -> u64 {
        self.0.published.load(Ordering::SeqCst)
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::SeqCst)
    }

    fn follow(&self, changed: Arc<dyn Fn() + Send + Sync>) {
        *self.0.changed.lock() = Some(changed);
    }
}

struct Actor(Arc<Stage>);

impl Handler for Actor {
    type Caller = String;

    fn identify(&self, credentials: &Credentials<'_>) -> Result<String, Status> {
        self.0.identified.fetch_add(1, Ordering::SeqCst);
        let identifying = self.0.identifying.lock().take();
        if let Some(identifying) = identifying {
            identifying();
        }
        match credentials.authorization {
            "panics" => panic!("while a caller is told"),
            "no" => Err(status(Code(16))),
            _ => Ok(credentials.tenant.to_owned()),
        }
    }

    fn answer(&self, question: &Question<'_, String>) -> Answer {
        let path = METHODS[question.method].0;
        if path == GATED {
            self.0.tried.fetch_add(1, Ordering::SeqCst);
            if question.deadline.is_none() {
                return Answer::WouldWait;
            }
            let mut is_open = self.0.is_open.lock();
            while !*is_open {
                self.0.opened.wait(&mut is_open);
            }
        }
        self.0.answered.fetch_add(1, Ordering::SeqCst);
        let message = match path {
            PANICS | PANICS_POOLED => panic!("below a call"),
            PANICS_IN_STREAM => {
                return Answer::Stream(Flow::pulled(Box::new(Panicking(Arc::clone(&self.0)))));
            }
            ENDLESS => return Answer::Stream(Flow::pulled(Box::new(Endless(Arc::clone(&self.0))))),
            LARGE | LARGE_POOLED => vec![7; LARGE_BYTES].into(),
            MEDIUM => vec![7; MEDIUM_BYTES].into(),
            _ if question.message == b"fail" => {
                return Answer::Failure(status(CHOSEN));
            }
            _ => Bytes::copy_from_slice(question.message),
        };
        let after = if path == LATER { REVISION } else { 0 };
        Answer::Reply { message, after }
    }

    fn report(&self, _trouble: &str) {}
}

/// A stream of one message, behind which it panics.
struct Panicking(Arc<Stage>);

impl Source for Panicking {
    fn next(&mut self) -> Next {
        match self.0.tried.fetch_add(1, Ordering::SeqCst) {
            0 => Next::Message(Bytes::from_static(b"first")),
            _ => panic!("below a stream"),
        }
    }

    fn close(&mut self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
    }
}

/// A stream of large messages.
struct Endless(Arc<Stage>);

impl Source for Endless {
    fn next(&mut self) -> Next {
        Next::Message(vec![7; LARGE_BYTES].into())
    }

    fn close(&mut self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
    }
}

fn status(code: Code) -> Status {
    Status {
        details: Bytes::from_static(b"details"),
        ..Status::new(code, "a message")
    }
}

/// Codes that nothing else gives.
fn refusals() -> Refusals {
    Refusals {
        overloaded: status(Code::RESOURCE_EXHAUSTED),
        peer_overloaded: status(PEER_FULL),
        deadline_exceeded: status(Code::DEADLINE_EXCEEDED),
        not_published: status(Code(15)),
        internal: status(Code::INTERNAL),
        stopping: status(Code::UNAVAILABLE),
        slow_reader: status(SLOW),
        malformed: status(Code::INTERNAL),
        too_large: status(Code::RESOURCE_EXHAUSTED),
        unknown_compression: status(Code::UNIMPLEMENTED),
        unknown_method: status(Code::UNIMPLEMENTED),
    }
}

/// A transport on a Unix socket and a port, with threads of its own, stopped when it is dropped.
struct Running {
    transport: Arc<Transport<Actor>>,
    stage: Arc<Stage>,
    health: Arc<Health>,
    path: PathBuf,
    port: u16,
    threads: Vec<JoinHandle<()>>,
    ended: mpsc::Receiver<()>,
    _directory: TempDir,
}

impl Running {
    fn new(options: Options) -> Self {
        Self::with(options, |transport| transport)
    }

    /// One that is changed before it runs.
    fn with(options: Options, change: impl FnOnce(Transport<Actor>) -> Transport<Actor>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let unix = Listener::unix(&path).unwrap();
        let (tcp, port) = Listener::tcp((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let (stage, health) = (Arc::new(Stage::default()), Arc::new(Health::default()));
        health.set("t.T", true);
        let methods = METHODS.map(|(path, answering)| Method {
            path: path.to_owned(),
            answering,
        });
        let transport = Arc::new(change(Transport::new(
            options,
            Actor(Arc::clone(&stage)),
            methods.into(),
            refusals(),
            Arc::new(Played(Arc::clone(&stage))),
            Arc::clone(&health),
        )));
        let (sender, ended) = mpsc::channel();
        let runner = Arc::clone(&transport);
        let mut threads = vec![thread::spawn(move || {
            runner.run(&[unix, tcp].map(Arc::new)).unwrap();
            sender.send(()).unwrap();
        })];
        for _ in 0..WORKERS {
            let worker = Arc::clone(&transport);
            threads.push(thread::spawn(move || worker.work()));
        }
        Self {
            transport,
            stage,
            health,
            path,
            port,
            threads,
            ended,
            _directory: directory,
        }
    }

    /// A runtime for clients, and a client.
    fn client(&self) -> (Runtime, Client) {
        let runtime = runtime();
        let client = runtime.block_on(Client::connect(&self.path));
        (runtime, client)
    }

    /// A client from an address of this machine: from one peer of several.
    async fn client_from(&self, last: u8, builder: &h2::client::Builder) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        socket
            .bind((Ipv4Addr::new(127, 0, 0, last), 0).into())
            .unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let socket = socket.connect(address).await.unwrap();
        socket.set_nodelay(true).unwrap();
        Client::over(socket, builder).await
    }

    fn answered(&self) -> usize {
        self.stage.answered.load(Ordering::SeqCst)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stage.open();
        self.transport.stop(Duration::ZERO);
        for thread in self.threads.drain(..) {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

async fn until(holds: impl Fn() -> bool) {
    while !holds() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// A message with its flag and length in front.
fn framed(message: &[u8]) -> Bytes {
    let length = (message.len() as u32).to_be_bytes();
    [&[0], &length[..], message].concat().into()
}

/// A connection.
struct Client {
    requests: SendRequest<Bytes>,
}

/// How a call ended.
#[derive(Debug, Default)]
struct Ended {
    http: u16,
    code: Option<u8>,
    headers: HeaderMap,
    data: Vec<u8>,
    trailers: HeaderMap,
}

impl Client {
    async fn connect(path: &PathBuf) -> Self {
        Self::connect_as(path, &h2::client::Builder::new()).await
    }

    async fn connect_as(path: &PathBuf, builder: &h2::client::Builder) -> Self {
        Self::over(UnixStream::connect(path).await.unwrap(), builder).await
    }

    async fn over<S>(socket: S, builder: &h2::client::Builder) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (requests, connection) = builder.handshake(socket).await.unwrap();
        tokio::spawn(async move {
            // It ends with the server.
            let _ = connection.await;
        });
        Self { requests }
    }

    /// A call with one message.
    async fn call(&self, path: &str, message: &[u8]) -> Ended {
        self.send(post(path), framed(message)).await
    }

    async fn send(&self, request: Request<()>, body: Bytes) -> Ended {
        let ended = self.try_send(request, body).await;
        ended.unwrap()
    }

    /// A request with these bytes, and how it ended. Errors are those of HTTP/2.
    async fn try_send(&self, request: Request<()>, body: Bytes) -> Result<Ended, h2::Error> {
        let mut requests = self.requests.clone().ready().await?;
        let (response, mut stream) = requests.send_request(request, false)?;
        // A call may be refused before its message is read.
        let _ = stream.send_data(body, true);
        ended(response).await
    }
}

async fn ended(response: h2::client::ResponseFuture) -> Result<Ended, h2::Error> {
    let (parts, mut body) = response.await?.into_parts();
    let mut ended = Ended {
        http: parts.status.as_u16(),
        headers: parts.headers,
        ..Ended::default()
    };
    while let Some(chunk) = poll_fn(|context| body.poll_data(context)).await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        ended.data.extend_from_slice(&chunk);
    }
    let trailers = poll_fn(|context| body.poll_trailers(context)).await?;
    ended.trailers = trailers.unwrap_or_else(|| ended.headers.clone());
    let code = ended.trailers.get("grpc-status");
    ended.code = code.map(|code| code.to_str().unwrap().parse().unwrap());
    Ok(ended)
}

fn post(path: &str) -> Request<()> {
    with(path, &[])
}

/// A call's head with more headers.
fn with(path: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let uri = format!("http://localhost{path}");
    let mut request = Request::post(uri).header("content-type", "application/grpc");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

/// Waits for what another thread does.
fn eventually(mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() {
        if holds() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not come about");
}
