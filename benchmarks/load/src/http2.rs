//! As much of HTTP/2 (RFC 9113) as unary gRPC calls need.

use crate::protocol::{Protocol, Reply};
use crate::template::Templates;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;
/// A flag and a length stand before each message of gRPC.
const MESSAGE_HEAD: usize = 5;
const INITIAL_WINDOW: i64 = 65_535;
/// What every server takes (RFC 9113, 4.2).
const LARGEST_FRAME: usize = 16_384;
const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// Received bytes of the connection are given back in portions of this size.
const GIVE_BACK: u32 = 1 << 20;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const SETTING_INITIAL_WINDOW: u16 = 4;

const FIRST_DYNAMIC_INDEX: usize = 62;
const POST: u8 = 0x83;
const SCHEME_HTTP: u8 = 0x86;

/// A connection that calls one method. A call counts as answered where a message came before the trailers: gRPC sends
/// none with an error.
pub(crate) struct Http2 {
    templates: Templates,
    first_head: Vec<u8>,
    next_head: Vec<u8>,
    next_stream: u32,
    window: i64,
    received: u32,
    with_message: Vec<u32>,
    /// The request that is being written.
    body: Vec<u8>,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    length: usize,
}

impl Http2 {
    /// Calls of the method `path` with encoded messages.
    pub(crate) fn new(path: &str, templates: Templates) -> Self {
        let headers = [
            (":path", path),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("grpc-timeout", "30S"),
            ("user-agent", "remora-load"),
        ];
        Self {
            templates,
            first_head: first_head(&headers),
            next_head: next_head(headers.len()),
            next_stream: 1,
            window: INITIAL_WINDOW,
            received: 0,
            with_message: Vec::new(),
            body: Vec::new(),
        }
    }

    fn take(
        &mut self,
        frame: &Frame,
        body: &[u8],
        out: &mut Vec<u8>,
        replies: &mut Vec<Reply>,
    ) -> Result<(), String> {
        match frame.kind {
            DATA => self.take_data(frame, out),
            SETTINGS if frame.flags & ACK == 0 => write_frame(out, SETTINGS, ACK, 0, &[]),
            PING if frame.flags & ACK == 0 => write_frame(out, PING, ACK, 0, body),
            WINDOW_UPDATE if frame.stream == 0 => self.window += i64::from(word(body)),
            GOAWAY => return Err("the server closes the connection".into()),
            _ => {}
        }
        if frame.kind == RST_STREAM
            || (matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0)
        {
            replies.push(self.end(frame.stream));
        }
        Ok(())
    }

    fn take_data(&mut self, frame: &Frame, out: &mut Vec<u8>) {
        if !self.with_message.contains(&frame.stream) {
            self.with_message.push(frame.stream);
        }
        self.received += frame.length as u32;
        if self.received >= GIVE_BACK {
            write_frame(out, WINDOW_UPDATE, 0, 0, &self.received.to_be_bytes());
            self.received = 0;
        }
    }

    fn end(&mut self, stream: u32) -> Reply {
        let place = self.with_message.iter().position(|one| *one == stream);
        if let Some(place) = place {
            self.with_message.swap_remove(place);
        }
        Reply {
            id: stream,
            ok: place.is_some(),
        }
    }
}

impl Protocol for Http2 {
    fn open(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(PREFACE);
        let mut setting = SETTING_INITIAL_WINDOW.to_be_bytes().to_vec();
        setting.extend_from_slice(&LARGEST_WINDOW.to_be_bytes());
        write_frame(out, SETTINGS, 0, 0, &setting);
        let more = LARGEST_WINDOW - INITIAL_WINDOW as u32;
        write_frame(out, WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
    }

    fn request(&mut self, number: u64, out: &mut Vec<u8>) -> Option<u32> {
        let message = self.templates.current()?;
        let length = MESSAGE_HEAD + message.len();
        if self.window < length as i64 {
            return None;
        }
        self.window -= length as i64;
        let stream = self.next_stream;
        self.next_stream += 2;
        let head = if stream == 1 {
            &self.first_head
        } else {
            &self.next_head
        };
        write_frame(out, HEADERS, END_HEADERS, stream, head);
        self.body.clear();
        self.body.push(0);
        self.body
            .extend_from_slice(&(message.len() as u32).to_be_bytes());
        message.write(number, &mut self.body);
        write_data(out, stream, &self.body);
        self.templates.advance();
        Some(stream)
    }

    fn has_more(&self) -> bool {
        self.templates.current().is_some()
    }

    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        replies: &mut Vec<Reply>,
    ) -> Result<usize, String> {
        let mut at = 0;
        while let Some(frame) = frame(&input[at..]) {
            let body = at + FRAME_HEAD;
            at = body + frame.length;
            self.take(&frame, &input[body..at], out, replies)?;
        }
        Ok(at)
    }
}

/// A body as frames, of which the last ends the stream.
fn write_data(out: &mut Vec<u8>, stream: u32, body: &[u8]) {
    let frames = body.len().div_ceil(LARGEST_FRAME);
    for (number, part) in (1..).zip(body.chunks(LARGEST_FRAME)) {
        let flags = if number == frames { END_STREAM } else { 0 };
        write_frame(out, DATA, flags, stream, part);
    }
}

/// The frame at the front, where it is whole.
fn frame(bytes: &[u8]) -> Option<Frame> {
    let head = bytes.get(..FRAME_HEAD)?;
    let length = word(&[0, head[0], head[1], head[2]]) as usize;
    (bytes.len() >= FRAME_HEAD + length).then(|| Frame {
        kind: head[3],
        flags: head[4],
        stream: word(&head[5..]) & LARGEST_WINDOW,
        length,
    })
}

fn word(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .take(4)
        .fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn write_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    out.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}

fn write_frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, body: &[u8]) {
    write_head(out, body.len(), kind, flags, stream);
    out.extend_from_slice(body);
}

/// A header block (RFC 7541) that adds every header to the dynamic table.
fn first_head(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![POST, SCHEME_HTTP];
    for (name, value) in headers {
        block.push(0x40);
        for text in [name, value] {
            block.push(text.len() as u8);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The same headers by their indices: the newest entry comes first.
fn next_head(headers: usize) -> Vec<u8> {
    let indices = (FIRST_DYNAMIC_INDEX..FIRST_DYNAMIC_INDEX + headers).rev();
    let mut block = vec![POST, SCHEME_HTTP];
    block.extend(indices.map(|index| 0x80 | index as u8));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls_with(length: u32) -> Http2 {
        let mut file = length.to_le_bytes().to_vec();
        file.resize(file.len() + length as usize, 0);
        Http2::new(
            "/a/B",
            Templates::parse(&file).unwrap_or_else(|| panic!("one request")),
        )
    }

    fn received(frames: &[(u8, u8, u32, &[u8])]) -> (Vec<(u32, bool)>, Vec<u8>) {
        let mut input = Vec::new();
        for (kind, flags, stream, body) in frames {
            write_frame(&mut input, *kind, *flags, *stream, body);
        }
        let (mut out, mut replies) = (Vec::new(), Vec::new());
        let outcome = calls_with(0).receive(&input, &mut out, &mut replies);
        assert_eq!(outcome, Ok(input.len()));
        (
            replies.iter().map(|reply| (reply.id, reply.ok)).collect(),
            out,
        )
    }

    #[test]
    fn a_message_and_trailers_are_an_answer() {
        let frames: [(u8, u8, u32, &[u8]); 3] = [
            (HEADERS, END_HEADERS, 1, b""),
            (DATA, 0, 1, b"message"),
            (HEADERS, END_HEADERS | END_STREAM, 1, b""),
        ];

        assert_eq!(received(&frames).0, [(1, true)]);
    }

    #[test]
    fn trailers_alone_are_a_failure() {
        assert_eq!(
            received(&[(HEADERS, END_HEADERS | END_STREAM, 3, b"")]).0,
            [(3, false)]
        );
    }

    #[test]
    fn a_ping_is_answered_with_its_own_bytes() {
        let (_, out) = received(&[(PING, 0, 0, b"12345678")]);

        assert!(out.ends_with(b"12345678") && out[4] == ACK);
    }

    #[test]
    fn a_request_waits_for_room() {
        let mut connection = calls_with(60_000);

        assert_eq!(connection.request(0, &mut Vec::new()), Some(1));
        assert_eq!(connection.request(1, &mut Vec::new()), None);
    }
}
