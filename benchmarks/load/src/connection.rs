//! One connection: its socket, what waits to be written, and the exchanges under way.

use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::protocol::{Protocol, Reply};

const READ_BYTES: usize = 1 << 16;

/// Where bytes are received, of one connection after the other: a buffer for each would be as many times more memory,
/// which the caches of the machine would lack for the server.
pub(crate) struct Input(Vec<u8>);

impl Input {
    pub(crate) fn new() -> Self {
        Self(vec![0; READ_BYTES])
    }

    /// Room behind so many bytes.
    fn behind(&mut self, held: usize) -> &mut [u8] {
        if held == self.0.len() {
            self.0.resize(2 * held, 0);
        }
        &mut self.0[held..]
    }
}

/// A connection that keeps up to `streams` requests under way.
pub(crate) struct Connection {
    socket: UnixStream,
    protocol: Box<dyn Protocol>,
    streams: usize,
    /// The beginning of what is not complete.
    held: Vec<u8>,
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
            held: Vec::new(),
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

    pub(crate) fn has_more(&self) -> bool {
        self.protocol.has_more()
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
    pub(crate) fn receive(&mut self, input: &mut Input) -> Result<Vec<Ended>, Error> {
        let mut replies = Vec::new();
        while self.receive_some(input, &mut replies)? {}
        Ok(replies
            .iter()
            .filter_map(|reply| self.ended(reply))
            .collect())
    }

    /// Reads once and takes what is complete; whether there may be more.
    fn receive_some(&mut self, input: &mut Input, replies: &mut Vec<Reply>) -> Result<bool, Error> {
        let held = self.held.len();
        let room = input.behind(held);
        let count = match self.socket.read(room) {
            Ok(0) => {
                return Err(Error::new(
                    ErrorKind::UnexpectedEof,
                    "the server closed the connection",
                ));
            }
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let is_full = count == room.len();
        let received = &mut input.0[..held + count];
        received[..held].copy_from_slice(&self.held);
        let taken = self
            .protocol
            .receive(received, &mut self.output, replies)
            .map_err(Error::other)?;
        self.held.clear();
        self.held.extend_from_slice(&received[taken..]);
        Ok(is_full)
    }

    fn ended(&mut self, reply: &Reply) -> Option<Ended> {
        let place = self.under_way.iter().position(|(id, _)| *id == reply.id)?;
        let (_, began) = self.under_way.swap_remove(place);
        Some(Ended {
            began,
            ok: reply.ok,
        })
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

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;
    use crate::http1::Http1;
    use crate::template::Templates;

    const BODY: usize = 3 * READ_BYTES;

    fn asked() -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let templates = Templates::parse(&[0; 4]).unwrap();
        let mut connection = Connection::new(ours, Box::new(Http1::new(templates)), 1).unwrap();
        connection.start(0, &mut 0);
        (connection, theirs)
    }

    fn received(connection: &mut Connection, input: &mut Input) -> usize {
        connection.receive(input).unwrap().len()
    }

    #[test]
    fn replies_that_come_in_turns_are_told_apart() {
        let (mut first, mut to_first) = asked();
        let (mut second, mut to_second) = asked();
        let mut input = Input::new();

        to_first.write_all(b"HTTP/1.1 200 OK\r\ncont").unwrap();
        assert_eq!(received(&mut first, &mut input), 0);
        to_second.write_all(b"HTTP/1.1 500 No\r\n").unwrap();
        assert_eq!(received(&mut second, &mut input), 0);
        to_first.write_all(b"ent-length: 2\r\n\r\nok").unwrap();
        let ended = first.receive(&mut input).unwrap();

        assert!(matches!(ended[..], [Ended { ok: true, .. }]));
    }

    #[test]
    fn a_reply_that_is_larger_than_a_read_is_taken_whole() {
        let (mut connection, mut to_it) = asked();
        let mut input = Input::new();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {BODY}\r\n\r\n");
        to_it.write_all(head.as_bytes()).unwrap();

        let mut ended = 0;
        for part in vec![0; BODY].chunks(READ_BYTES) {
            assert_eq!(ended, 0);
            to_it.write_all(part).unwrap();
            ended = received(&mut connection, &mut input);
        }

        assert_eq!(ended, 1);
    }
}
