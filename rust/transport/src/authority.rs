//! Makes `:authority` acceptable if a client names a Unix socket by its path.
//!
//! gRPC's clients in C++, Python, Java and Swift do that, escaped or not. h2 resets such a call, because no host has a `/`
//! or a `%`. The server does not use the authority, so that both characters are replaced by `-` in the received bytes,
//! before h2 decodes them. Lengths stay the same, also in a Huffman-coded string, where all three characters have six bits.
//! In the table of headers that client and server share, only these characters differ.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const PREFACE_BYTES: usize = 24;
const FRAME_HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;
/// The longest frame that h2 accepts.
const MAX_FRAME_BYTES: usize = 16 << 10;

/// The index of `:authority` in HPACK's static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
/// The name as a string, plain and Huffman-coded, for headers that do not use its index.
const NAME: &[u8] = b":authority";
const HUFFMAN_NAME: &[u8] = b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f";
/// Codes of six bits (RFC 7541, appendix B).
const HUFFMAN_PERCENT: u32 = 0x15;
const HUFFMAN_DASH: u32 = 0x16;
const HUFFMAN_SLASH: u32 = 0x18;

/// A socket whose received calls have an acceptable `:authority`.
pub(super) struct Repaired<S> {
    socket: S,
    frames: Frames,
    /// The beginning of a frame that is needed whole.
    held: Vec<u8>,
    /// Bytes that were held back and looked at, and are not yet passed on.
    ready: Vec<u8>,
}

impl<S> Repaired<S> {
    pub(super) fn new(socket: S) -> Self {
        Self {
            socket,
            frames: Frames {
                passing: PREFACE_BYTES,
            },
            held: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Looks at bytes that were received after `before`, and holds back those that must wait for more.
    fn look(&mut self, buffer: &mut ReadBuf<'_>, before: usize) {
        let received = &mut buffer.filled_mut()[before..];
        if self.held.is_empty() {
            let seen = self.frames.repair(received);
            self.held.extend_from_slice(&received[seen..]);
            buffer.set_filled(before + seen);
        } else {
            self.held.extend_from_slice(received);
            let seen = self.frames.repair(&mut self.held);
            self.ready.extend(self.held.drain(..seen));
            buffer.set_filled(before);
        }
    }

    fn give_on(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = self.ready.len().min(buffer.remaining());
        buffer.put_slice(&self.ready[..count]);
        self.ready.drain(..count);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Repaired<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            if !self.ready.is_empty() {
                self.give_on(buffer);
                return Poll::Ready(Ok(()));
            }
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
            if buffer.filled().len() == before {
                return Poll::Ready(Ok(()));
            }
            self.look(buffer, before);
            if buffer.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Repaired<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

/// Separates the frames of a connection.
struct Frames {
    /// The number of following bytes that are skipped.
    passing: usize,
}

impl Frames {
    /// Repairs the connection's next bytes. Returns how many of them can be passed on without later ones.
    fn repair(&mut self, bytes: &mut [u8]) -> usize {
        let mut at = 0;
        loop {
            let passed = self.passing.min(bytes.len() - at);
            self.passing -= passed;
            at += passed;
            let Some(&[a, b, c, kind, flags, ..]) = bytes.get(at..at + FRAME_HEAD_BYTES) else {
                return at;
            };
            let end = FRAME_HEAD_BYTES + u32::from_be_bytes([0, a, b, c]) as usize;
            if kind != HEADERS || end > FRAME_HEAD_BYTES + MAX_FRAME_BYTES {
                self.passing = end;
                continue;
            }
            let Some(frame) = bytes.get_mut(at..at + end) else {
                return at;
            };
            repair_headers(&mut frame[FRAME_HEAD_BYTES..], flags);
            at += end;
        }
    }
}

/// Repairs the headers at the beginning of a frame. Malformed headers are left to h2.
fn repair_headers(payload: &mut [u8], flags: u8) {
    let padding = usize::from(flags & PADDED != 0);
    let priority = PRIORITY_BYTES * usize::from(flags & PRIORITY != 0);
    let mut fields = Fields {
        bytes: payload,
        at: padding + priority,
    };
    while fields.repair_next().is_some() {}
}

/// Fields as HPACK writes them (RFC 7541, section 6).
struct Fields<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Fields<'_> {
    /// Skips one field; `None` at the end.
    fn repair_next(&mut self) -> Option<()> {
        let first = *self.bytes.get(self.at)?;
        let (bits, is_literal) = match first {
            0x80.. => (7, false),
            0x40..=0x7f => (6, true),
            0x20..=0x3f => (5, false),
            _ => (4, true),
        };
        let index = self.integer(bits)?;
        if !is_literal {
            return Some(());
        }
        let concerns = match index {
            0 => is_authority(self.string()?),
            index => index == AUTHORITY,
        };
        let (value, is_huffman) = self.string()?;
        if concerns {
            match is_huffman {
                true => repair_huffman(value),
                false => repair_plain(value),
            }
        }
        Some(())
    }

    fn integer(&mut self, bits: u32) -> Option<usize> {
        let most = (1_usize << bits) - 1;
        let mut value = usize::from(*self.bytes.get(self.at)?) & most;
        self.at += 1;
        if value < most {
            return Some(value);
        }
        for shift in (0..28).step_by(7) {
            let byte = usize::from(*self.bytes.get(self.at)?);
            self.at += 1;
            value += (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A string and whether it is Huffman-coded.
    fn string(&mut self) -> Option<(&mut [u8], bool)> {
        let is_huffman = self.bytes.get(self.at)? & 0x80 != 0;
        let length = self.integer(7)?;
        let start = self.at;
        self.at = start.checked_add(length)?;
        Some((self.bytes.get_mut(start..self.at)?, is_huffman))
    }
}

fn is_authority((name, is_huffman): (&mut [u8], bool)) -> bool {
    name == if is_huffman { HUFFMAN_NAME } else { NAME }
}

fn repair_plain(value: &mut [u8]) {
    for byte in value {
        if matches!(byte, b'/' | b'%') {
            *byte = b'-';
        }
    }
}

/// Walks the codes, which have their lengths in their first bits, up to a code of more than eight bits: no path needs one.
fn repair_huffman(value: &mut [u8]) {
    let mut at = 0;
    while at + 5 <= value.len() * 8 {
        let bits = match window(value, at) {
            ..0x50 => 5,
            0x50..0xb8 => 6,
            0xb8..0xf8 => 7,
            0xf8..0xfe => 8,
            _ => return,
        };
        if bits == 6 && matches!(window(value, at) >> 2, HUFFMAN_PERCENT | HUFFMAN_SLASH) {
            for bit in 0..6 {
                set(value, at + bit, HUFFMAN_DASH >> (5 - bit) & 1 == 1);
            }
        }
        at += bits;
    }
}

/// The next eight bits. After the end there are ones, as HPACK pads.
fn window(value: &[u8], at: usize) -> u32 {
    let byte = |index: usize| u32::from(value.get(index).copied().unwrap_or(0xff));
    (byte(at / 8) << 8 | byte(at / 8 + 1)) >> (8 - at % 8) & 0xff
}

fn set(value: &mut [u8], at: usize, is_one: bool) {
    if let Some(byte) = value.get_mut(at / 8) {
        let bit = 0x80 >> (at % 8);
        *byte = if is_one { *byte | bit } else { *byte & !bit };
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    fn headers(block: &[u8]) -> Vec<u8> {
        let mut frame = (block.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[HEADERS, 4, 0, 0, 0, 1]);
        frame.extend_from_slice(block);
        frame
    }

    fn repaired(block: &[u8]) -> Vec<u8> {
        let mut block = block.to_vec();
        repair_headers(&mut block, 0);
        block
    }

    #[test]
    fn a_path_becomes_a_name() {
        assert_eq!(
            repaired(b"\x83\x41\x06%2Fa.b\x84"),
            b"\x83\x41\x06-2Fa.b\x84"
        );
        assert_eq!(repaired(b"\x01\x04/a/b"), b"\x01\x04-a-b");
    }

    #[test]
    fn the_name_may_be_spelled_out() {
        let plain = b"\x40\x0a:authority\x02/%";
        assert_eq!(repaired(plain), b"\x40\x0a:authority\x02--");
        let coded = [b"\x40\x88", HUFFMAN_NAME, b"\x02/%"].concat();
        assert_eq!(
            repaired(&coded),
            [b"\x40\x88", HUFFMAN_NAME, b"\x02--"].concat()
        );
    }

    #[test]
    fn other_headers_are_left_alone() {
        // A new name with a value, a path, and `:authority` behind both.
        let block = b"\x40\x01a\x02/%\x04\x02/%\x41\x02/%";
        assert_eq!(repaired(block), b"\x40\x01a\x02/%\x04\x02/%\x41\x02--");
    }

    #[test]
    fn a_huffman_coded_path_becomes_a_name() {
        // "%2Fa" is 010101 00010 1100011 00011, padded with ones; "-2Fa" begins with 010110.
        let path = [0x41, 0x83, 0b0101_0100, 0b0101_1000, 0b1100_0111];
        let name = [0x41, 0x83, 0b0101_1000, 0b0101_1000, 0b1100_0111];
        assert_eq!(repaired(&path), name);
    }

    #[test]
    fn padding_and_priority_are_passed_over() {
        let mut payload = b"\x01\0\0\0\0\0\x41\x01/\0".to_vec();
        repair_headers(&mut payload, PADDED | PRIORITY);
        assert_eq!(payload, b"\x01\0\0\0\0\0\x41\x01-\0");
    }

    #[test]
    fn frames_may_come_in_any_pieces() {
        let mut sent = vec![0; PREFACE_BYTES];
        sent.extend_from_slice(&headers(b"\x41\x02/a"));
        sent.extend_from_slice(b"\0\0\x03\0\x01\0\0\0\x01/%/");
        sent.extend_from_slice(&headers(b"\x41\x02%b"));
        let expected: Vec<u8> = {
            let mut whole = sent.clone();
            let mut frames = Frames {
                passing: PREFACE_BYTES,
            };
            assert_eq!(frames.repair(&mut whole), whole.len());
            whole
        };
        assert_eq!(&expected[PREFACE_BYTES + 9..][..4], b"\x41\x02-a");
        assert!(expected.ends_with(b"\x41\x02-b"));
        for size in 1..sent.len() {
            assert_eq!(
                read_in_pieces(&sent, size),
                expected,
                "pieces of {size} bytes"
            );
        }
    }

    fn read_in_pieces(sent: &[u8], size: usize) -> Vec<u8> {
        let mut builder = tokio_test_pieces(sent, size);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut read = Vec::new();
        runtime
            .block_on(tokio::io::AsyncReadExt::read_to_end(
                &mut builder,
                &mut read,
            ))
            .unwrap();
        read
    }

    fn tokio_test_pieces(sent: &[u8], size: usize) -> Repaired<Pieces> {
        Repaired::new(Pieces(sent.chunks(size).map(<[u8]>::to_vec).collect()))
    }

    /// Gives one piece at a time.
    struct Pieces(std::collections::VecDeque<Vec<u8>>);

    impl AsyncRead for Pieces {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if let Some(piece) = self.0.pop_front() {
                let count = piece.len().min(buffer.remaining());
                buffer.put_slice(&piece[..count]);
                if count < piece.len() {
                    self.0.push_front(piece[count..].to_vec());
                }
            }
            Poll::Ready(Ok(()))
        }
    }

    #[test]
    fn what_is_no_header_block_is_left_alone() {
        for block in [
            &b"\x41"[..],
            b"\x41\x7f",
            b"\x41\x7f\xff\xff\xff\xff\xff",
            b"\x40\x7f\x01",
        ] {
            assert_eq!(repaired(block), block);
        }
    }
}
