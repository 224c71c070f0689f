//! One connection: its socket, what waits to be written, and the exchanges under way.

use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{Protocol, Reply};

const READ_BYTES: usize = 1 << 16;

/// A connection that keeps up to `streams` requests under way.
pub(crate) struct Connection {
    socket: UnixStream,
    protocol: Box<dyn Protocol>,
    streams: usize,
    input: Vec<u8>,
    output: Vec<u8>,
    under_way: Vec<(u32, u64)>,
}

/// An exchange that ended: when its request was made (nanoseconds), and whether it was answered.
pub(crate) struct Ended {
    pub(crate) began: u64,
    pub(crate) ok: bool,
}

impl Connection {
    /// Around a connected socket, which no longer blocks from now on.
    pub(crate) fn new(
        socket: UnixStream,
        mut protocol: Box<dyn Protocol>,
        streams: usize,
    ) -> Result<Self, Error> {
        socket.set_nonblocking(true)?;
        let mut output = Vec::new();
        protocol.open(&mut output);
        Ok(Self {
            socket,
            protocol,
            streams,
            input: Vec::new(),
            output,
            under_way: Vec::new(),
        })
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Makes as many requests as there is room for, numbered by `next`.
    pub(crate) fn start(&mut self, now: u64, next: &mut u64) {
        while self.start_one(now, next) {}
    }

    /// Makes a request that was due at that time, where there is room for it.
    pub(crate) fn start_one(&mut self, due: u64, next: &mut u64) -> bool {
        if self.under_way.len() >= self.streams {
            return false;
        }
        let Some(id) = self.protocol.request(*next, &mut self.output) else {
            return false;
        };
        *next += 1;
        self.under_way.push((id, due));
        true
    }

    /// Reads what is there and gives the exchanges that ended with it.
    pub(crate) fn receive(&mut self) -> Result<Vec<Ended>, Error> {
        self.read()?;
        let mut replies = Vec::new();
        self.protocol
            .receive(&mut self.input, &mut self.output, &mut replies)
            .map_err(Error::other)?;
        Ok(replies
            .iter()
            .filter_map(|reply| self.ended(reply))
            .collect())
    }

    fn ended(&mut self, reply: &Reply) -> Option<Ended> {
        let place = self.under_way.iter().position(|(id, _)| *id == reply.id)?;
        let (_, began) = self.under_way.swap_remove(place);
        Some(Ended {
            began,
            ok: reply.ok,
        })
    }

    fn read(&mut self) -> Result<(), Error> {
        loop {
            let before = self.input.len();
            self.input.resize(before + READ_BYTES, 0);
            let outcome = self.socket.read(&mut self.input[before..]);
            self.input
                .truncate(before + outcome.as_ref().map_or(0, |count| *count));
            match outcome {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::UnexpectedEof,
                        "the server closed the connection",
                    ));
                }
                Ok(count) if count < READ_BYTES => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes as much as the socket takes.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
