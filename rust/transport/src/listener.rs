//! Sockets that connections come from.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use remora_supervision::failpoints::{self, Point};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::authority::Repaired;
use super::connection;
use super::handler::Handler;
use super::pages;
use super::peer::Origin;
use super::secured;
use super::shared::Shared;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// The pause after a failure that more than one connection meets, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause before the next accept while all file descriptors are taken and no connection waits.
const LOOK: Duration = Duration::from_millis(10);

/// A socket that listens; nobody is accepted yet.
#[derive(Debug)]
pub struct Listener(Kind);

#[derive(Debug)]
enum Kind {
    Unix(UnixListener),
    Tcp(std::net::TcpListener),
}

impl Listener {
    /// Takes a Unix socket; the process's umask gives it its mode.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        Ok(Self(Kind::Unix(listener)))
    }

    /// Takes a TCP port; port 0 takes a free one, which is returned.
    pub fn tcp(address: SocketAddr) -> io::Result<(Self, u16)> {
        let listener = std::net::TcpListener::bind(address)?;
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok((Self(Kind::Tcp(listener)), port))
    }

    /// The same socket as one of the runtime that calls this.
    pub(super) fn open(&self) -> io::Result<OpenListener> {
        Ok(match &self.0 {
            Kind::Unix(listener) => {
                let listener = listener.try_clone()?;
                OpenListener::Unix(tokio::net::UnixListener::from_std(listener)?)
            }
            Kind::Tcp(listener) => {
                let listener = listener.try_clone()?;
                OpenListener::Tcp(tokio::net::TcpListener::from_std(listener)?)
            }
        })
    }
}

/// A listener that a runtime drives.
pub(super) enum OpenListener {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream, SocketAddr),
}

impl Socket {
    fn origin(&self) -> Origin {
        match self {
            Self::Tcp(_, address) => Origin::of_address(address.ip()),
            // A socket whose other end is gone has no credentials any more.
            Self::Unix(socket) => match socket.peer_cred() {
                Ok(peer) => Origin::Process(peer.uid(), peer.pid().unwrap_or(0)),
                Err(_) => Origin::Process(0, 0),
            },
        }
    }
}

impl OpenListener {
    /// Serves connections for good.
    pub(super) async fn run<H: Handler>(&self, shared: &Arc<Shared<H>>) {
        let mut is_well = true;
        loop {
            match self.accept().await {
                Ok(socket) => {
                    is_well = true;
                    failpoints::hit(Point::AcceptingTask);
                    admit(shared, socket);
                }
                Err(error) if concerns_one(&error) => {}
                // This also happens if nobody waits, because the last file descriptor has just been taken.
                Err(error) if has_no_file(&error) && !self.is_awaited() => sleep(LOOK).await,
                // Without a free file descriptor, silent connections would keep all others out.
                Err(error) if has_no_file(&error) && shared.connections.evict() => {
                    yield_now().await;
                }
                Err(error) => {
                    if is_well {
                        shared
                            .handler
                            .report(&format!("no connection can be accepted: {error}"));
                    }
                    is_well = false;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Whether a connection waits to be accepted.
    fn is_awaited(&self) -> bool {
        let listener = match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        };
        let mut looked = [PollFd::from_borrowed_fd(listener, PollFlags::IN)];
        poll(&mut looked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener) => Ok(Socket::Unix(listener.accept().await?.0)),
            Self::Tcp(listener) => {
                let (socket, address) = listener.accept().await?;
                socket.set_nodelay(true)?;
                Ok(Socket::Tcp(socket, address))
            }
        }
    }
}

/// Serves a connection in its own task, or closes it if there are too many.
fn admit<H: Handler>(shared: &Arc<Shared<H>>, socket: Socket) {
    let Some(connected) = shared.connections.take(socket.origin()) else {
        return;
    };
    let shared = Arc::clone(shared);
    match socket {
        Socket::Unix(socket) => {
            if let Ok(peer) = socket.peer_cred() {
                let process = peer.pid().unwrap_or(0);
                shared.handler.connected(peer.uid(), peer.gid(), process);
            }
            tokio::spawn(connection::serve(shared, Repaired::new(socket), connected))
        }
        Socket::Tcp(socket, _) => match (shared.tls.clone(), shared.pages.clone()) {
            (Some(tls), _) => tokio::spawn(secured::serve(shared, tls, socket, connected)),
            (None, Some(pages)) => {
                tokio::spawn(pages::serve_either(shared, pages, socket, connected))
            }
            (None, None) => tokio::spawn(connection::serve(shared, socket, connected)),
        },
    };
}

fn has_no_file(error: &io::Error) -> bool {
    let error = Errno::from_io_error(error);
    matches!(error, Some(Errno::MFILE | Errno::NFILE))
}

/// Whether a failure concerns only one connection, so that the next one can be accepted at once.
fn concerns_one(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidInput
    )
}
