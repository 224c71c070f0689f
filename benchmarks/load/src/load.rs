//! The loop: waits for any connection, takes its replies, makes its next requests.

use std::io::Error;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::{Arguments, Wire};
use crate::connection::{Connection, Input};
use crate::http1::Http1;
use crate::http2::Http2;
use crate::protocol::Protocol;
use crate::template::Templates;

/// How long replies are waited for after the last request.
const DRAIN_NANOS: u64 = 10_000_000_000;
const WAIT_NANOS: u64 = 100_000_000;
/// In an open loop, requests that are due are made together so often: the load takes no core by looking at the clock.
const TICK_NANOS: u64 = 1_000_000;

/// One request that ended, in nanoseconds of the monotonic clock.
pub(crate) struct Sample {
    began: u64,
    ended: u64,
}

/// What became of the requests.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) answered: Vec<Sample>,
    /// Those that were answered with an error.
    pub(crate) failed: Vec<Sample>,
    /// Those that were not made, because their connection had as many under way as it may.
    pub(crate) turned_away: u64,
}

/// Two little-endian u64 a sample: when it began and when it ended.
pub(crate) fn encoded(samples: &[Sample]) -> Vec<u8> {
    samples
        .iter()
        .flat_map(|sample| [sample.began, sample.ended])
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Loads the connections for the time asked for, then takes the last replies.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Error> {
    let mut connections = connect(arguments)?;
    let poll = watch(&connections)?;
    let began = now();
    let mut load = Load {
        deadline: began + (arguments.seconds * 1e9) as u64,
        next: arguments.first,
        arrivals: (arguments.rate > 0.0).then(|| Arrivals::new(began, arguments.rate)),
        input: Input::new(),
        outcome: Outcome::default(),
    };
    load.begin(&mut connections)?;
    while connections
        .iter()
        .any(|connection| load.waits_for(connection))
    {
        if now() > load.deadline + DRAIN_NANOS {
            return Err(Error::other("replies are missing"));
        }
        for ready in wait(&poll, load.patience())? {
            load.serve(&mut connections[ready])?;
        }
        load.arrive(&mut connections)?;
    }
    Ok(load.outcome)
}

/// A load that is under way.
struct Load {
    deadline: u64,
    next: u64,
    /// When requests are due, in an open loop.
    arrivals: Option<Arrivals>,
    input: Input,
    outcome: Outcome,
}

impl Load {
    /// Whether replies of the connection are to come, or it has requests to make.
    fn waits_for(&self, connection: &Connection) -> bool {
        !connection.is_idle() || (connection.has_more() && now() < self.deadline)
    }

    fn begin(&mut self, connections: &mut [Connection]) -> Result<(), Error> {
        for connection in connections {
            if self.arrivals.is_none() {
                connection.start(now(), &mut self.next);
            }
            connection.flush()?;
        }
        Ok(())
    }

    /// Takes what a connection has received; in a closed loop it asks again.
    fn serve(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let ended = connection.receive(&mut self.input)?;
        let time = now();
        for exchange in ended {
            let samples = match exchange.ok {
                true => &mut self.outcome.answered,
                false => &mut self.outcome.failed,
            };
            samples.push(Sample {
                began: exchange.began,
                ended: time,
            });
        }
        if self.arrivals.is_none() && time < self.deadline {
            connection.start(time, &mut self.next);
        }
        connection.flush()
    }

    /// Makes the requests that are due, on the connections in turn.
    fn arrive(&mut self, connections: &mut [Connection]) -> Result<(), Error> {
        let Some(arrivals) = &mut self.arrivals else {
            return Ok(());
        };
        for (number, due) in arrivals.until(now().min(self.deadline)) {
            let turn = number as usize % connections.len();
            if !connections[turn].start_one(due, &mut self.next) {
                self.outcome.turned_away += 1;
            }
        }
        connections.iter_mut().try_for_each(Connection::flush)
    }

    fn patience(&self) -> u64 {
        match self.arrivals {
            Some(_) if now() < self.deadline => TICK_NANOS,
            _ => WAIT_NANOS,
        }
    }
}

/// Requests that are due at a constant rate.
struct Arrivals {
    began: u64,
    nanos_apart: f64,
    count: u64,
}

impl Arrivals {
    fn new(began: u64, rate: f64) -> Self {
        Self {
            began,
            nanos_apart: 1e9 / rate,
            count: 0,
        }
    }

    /// The numbers of those that are due by then and were not before, and when each is.
    fn until(&mut self, time: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (began, apart) = (self.began, self.nanos_apart);
        let due = move |number: u64| began + (number as f64 * apart) as u64;
        let first = self.count;
        while due(self.count) < time {
            self.count += 1;
        }
        (first..self.count).map(move |number| (number, due(number)))
    }
}

fn connect(arguments: &Arguments) -> Result<Vec<Connection>, Error> {
    let open = |path: &Path| {
        let mut templates = Templates::parse(&std::fs::read(path)?)
            .ok_or_else(|| Error::other("a request file is damaged"))?;
        if arguments.turns > 0 {
            templates = templates.times(arguments.turns);
        }
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

fn wait(poll: &OwnedFd, nanos: u64) -> Result<Vec<usize>, Error> {
    let mut events = Vec::with_capacity(64);
    let patience = Timespec {
        tv_sec: 0,
        tv_nsec: nanos as _,
    };
    epoll::wait(
        poll,
        rustix::buffer::spare_capacity(&mut events),
        Some(&patience),
    )?;
    Ok(events
        .iter()
        .map(|event: &epoll::Event| { event.data }.u64() as usize)
        .collect())
}

fn now() -> u64 {
    nanos(ClockId::Monotonic)
}

/// CPU time that this process took.
pub(crate) fn cpu_nanos() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::Arrivals;

    #[test]
    fn requests_are_due_at_the_rate() {
        let mut arrivals = Arrivals::new(1_000, 1e6);

        let first: Vec<_> = arrivals.until(3_500).collect();
        let later: Vec<_> = arrivals.until(5_500).collect();

        assert_eq!(first, [(0, 1_000), (1, 2_000), (2, 3_000)]);
        assert_eq!(later, [(3, 4_000), (4, 5_000)]);
    }
}
