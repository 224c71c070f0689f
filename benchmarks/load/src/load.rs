//! The loop: waits for any connection, takes its replies, makes its next requests.

use std::io::Error;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::{Arguments, Wire};
use crate::connection::Connection;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::protocol::Protocol;
use crate::template::Templates;

/// How long replies are waited for after the last request.
const DRAIN_NANOS: u64 = 10_000_000_000;
const WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// One answered request, in nanoseconds of the monotonic clock.
pub(crate) struct Sample {
    began: u64,
    ended: u64,
}

/// All answered requests, and how many were answered with an error.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) samples: Vec<Sample>,
    pub(crate) failed: u64,
}

impl Outcome {
    /// Two little-endian u64 a sample: when it began and when it ended.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        self.samples
            .iter()
            .flat_map(|sample| [sample.began, sample.ended])
            .flat_map(u64::to_le_bytes)
            .collect()
    }
}

/// Keeps every connection busy for the time asked for, then takes the last replies.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Error> {
    let mut connections = connect(arguments)?;
    let poll = watch(&connections)?;
    let deadline = now() + (arguments.seconds * 1e9) as u64;
    let mut outcome = Outcome::default();
    let mut next = arguments.first;
    for connection in &mut connections {
        connection.start(now(), &mut next);
        connection.flush()?;
    }
    while now() < deadline || connections.iter().any(|connection| !connection.is_idle()) {
        if now() > deadline + DRAIN_NANOS {
            return Err(Error::other("replies are missing"));
        }
        for ready in wait(&poll)? {
            serve(&mut connections[ready], deadline, &mut next, &mut outcome)?;
        }
    }
    Ok(outcome)
}

fn serve(
    connection: &mut Connection,
    deadline: u64,
    next: &mut u64,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let ended = connection.receive()?;
    let time = now();
    for exchange in ended {
        match exchange.ok {
            true => outcome.samples.push(Sample {
                began: exchange.began,
                ended: time,
            }),
            false => outcome.failed += 1,
        }
    }
    if time < deadline {
        connection.start(time, next);
    }
    connection.flush()
}

fn connect(arguments: &Arguments) -> Result<Vec<Connection>, Error> {
    let open = |path: &Path| {
        let templates = Templates::parse(&std::fs::read(path)?)
            .ok_or_else(|| Error::other("a request file is damaged"))?;
        let protocol: Box<dyn Protocol> = match arguments.wire {
            Wire::Grpc => Box::new(Http2::new(&arguments.path, templates)),
            Wire::Http => Box::new(Http1::new(templates)),
        };
        Connection::new(
            UnixStream::connect(&arguments.socket)?,
            protocol,
            arguments.streams,
        )
    };
    arguments.requests.iter().map(|path| open(path)).collect()
}

/// Wakes once for everything that comes and once for room to write, so that reading and writing go on until they would
/// block.
fn watch(connections: &[Connection]) -> Result<OwnedFd, Error> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    for (place, connection) in connections.iter().enumerate() {
        epoll::add(
            &poll,
            connection.socket(),
            epoll::EventData::new_u64(place as u64),
            flags,
        )?;
    }
    Ok(poll)
}

fn wait(poll: &OwnedFd) -> Result<Vec<usize>, Error> {
    let mut events = Vec::with_capacity(64);
    epoll::wait(
        poll,
        rustix::buffer::spare_capacity(&mut events),
        Some(&WAIT),
    )?;
    Ok(events
        .iter()
        .map(|event: &epoll::Event| { event.data }.u64() as usize)
        .collect())
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
