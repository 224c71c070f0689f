//! The messages of a request: each is a flag, a length and that many bytes, read within bounds.

use std::future::poll_fn;
use std::io::Read;

use bytes::{Buf, Bytes, BytesMut};
use flate2::read::{GzDecoder, ZlibDecoder};
use h2::RecvStream;

use super::budget::{Full, Share};

/// The flag and the length in front of each message.
pub(super) const PREFIX_BYTES: usize = 5;

/// How the compressed messages of a call are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    Deflate,
}

/// The compressions that the server accepts.
pub(super) const ACCEPTED: &str = "identity,gzip,deflate";

impl Encoding {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "identity" => Some(Self::Identity),
            "gzip" => Some(Self::Gzip),
            "deflate" => Some(Self::Deflate),
            _ => None,
        }
    }
}

/// A message as it came.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Bytes,
    pub(super) is_compressed: bool,
}

impl Message {
    /// Leaves an empty message.
    pub(super) fn take(&mut self) -> Self {
        Self {
            bytes: std::mem::take(&mut self.bytes),
            ..*self
        }
    }

    /// The decompressed bytes, at most `limit`. A longer message is not decompressed any further.
    pub(super) fn unpacked(self, encoding: Encoding, limit: usize) -> Result<Bytes, Unreadable> {
        if !self.is_compressed {
            return Ok(self.bytes);
        }
        let packed = self.bytes.reader();
        match encoding {
            Encoding::Gzip => unpacked(GzDecoder::new(packed), limit),
            Encoding::Deflate => unpacked(ZlibDecoder::new(packed), limit),
            Encoding::Identity => Err(Unreadable::Malformed(
                "a message is compressed, and grpc-encoding does not say how",
            )),
        }
    }
}

fn unpacked(packed: impl Read, limit: usize) -> Result<Bytes, Unreadable> {
    let mut bytes = Vec::new();
    let bound = limit as u64 + 1;
    if packed.take(bound).read_to_end(&mut bytes).is_err() {
        return Err(Unreadable::Malformed("a message cannot be decompressed"));
    }
    if bytes.len() > limit {
        return Err(Unreadable::TooLarge);
    }
    Ok(bytes.into())
}

/// Why a request cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It breaks gRPC's protocol over HTTP/2, in this way.
    Malformed(&'static str),
    /// A message is longer than the limit.
    TooLarge,
}

/// Why reading ended.
pub(super) enum Interrupted {
    Unreadable(Unreadable),
    /// There is no room for the bytes.
    NoRoom(Full),
    /// The peer ended the call or the connection.
    Gone,
}

/// Reads the messages of a call.
pub(super) struct Messages {
    body: RecvStream,
    held: BytesMut,
    share: Share,
    limit: usize,
}

impl Messages {
    /// What it holds counts into `share`; a message has at most `limit` bytes.
    pub(super) fn new(body: RecvStream, share: Share, limit: usize) -> Self {
        Self {
            body,
            held: BytesMut::new(),
            share,
            limit,
        }
    }

    /// The only message of the call, and what it counts.
    pub(super) async fn only(mut self) -> Result<(Message, Share), Interrupted> {
        let message = self.next().await?;
        let Some(message) = message else {
            return Err(malformed("the call has no message"));
        };
        if self.next().await?.is_some() {
            return Err(malformed("the call has more than one message"));
        }
        Ok((message, self.share))
    }

    /// The next message; `None` at the end of the call.
    pub(super) async fn next(&mut self) -> Result<Option<Message>, Interrupted> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            match self.chunk().await? {
                Some(chunk) => self.held.extend_from_slice(&chunk),
                None if self.held.is_empty() => return Ok(None),
                None => return Err(malformed("the call ends within a message")),
            }
        }
    }

    /// Says that a message that was taken is no longer held.
    pub(super) fn let_go(&mut self, bytes: usize) {
        self.share.shrink(bytes + PREFIX_BYTES);
    }

    /// The message at the front, where it is whole.
    fn take(&mut self) -> Result<Option<Message>, Interrupted> {
        let Some(prefix) = self.held.get(..PREFIX_BYTES) else {
            return Ok(None);
        };
        let is_compressed = match prefix[0] {
            0 => false,
            1 => true,
            _ => return Err(malformed("a message begins with an unknown flag")),
        };
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        if length > self.limit {
            return Err(Interrupted::Unreadable(Unreadable::TooLarge));
        }
        if self.held.len() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.held.advance(PREFIX_BYTES);
        Ok(Some(Message {
            bytes: self.held.split_to(length).freeze(),
            is_compressed,
        }))
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, Interrupted> {
        let chunk = match poll_fn(|context| self.body.poll_data(context)).await {
            None => return Ok(None),
            Some(Err(_)) => return Err(Interrupted::Gone),
            Some(Ok(chunk)) => chunk,
        };
        if self
            .body
            .flow_control()
            .release_capacity(chunk.len())
            .is_err()
        {
            return Err(Interrupted::Gone);
        }
        let grown = self.share.grow(chunk.len());
        grown.map_err(Interrupted::NoRoom)?;
        Ok(Some(chunk))
    }
}

fn malformed(how: &'static str) -> Interrupted {
    Interrupted::Unreadable(Unreadable::Malformed(how))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn gzipped(bytes: &[u8]) -> Message {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        Message {
            bytes: encoder.finish().unwrap().into(),
            is_compressed: true,
        }
    }

    #[test]
    fn what_is_compressed_is_unpacked() {
        let bytes = gzipped(b"abc").unpacked(Encoding::Gzip, 3).unwrap();
        assert_eq!(&bytes[..], b"abc");
    }

    #[test]
    fn what_would_be_more_than_the_limit_is_refused() {
        let unpacked = gzipped(&[0; 1 << 20]).unpacked(Encoding::Gzip, 1000);
        assert_eq!(unpacked, Err(Unreadable::TooLarge));
    }

    #[test]
    fn what_is_no_gzip_is_refused() {
        let message = Message {
            bytes: Bytes::from_static(b"not gzip"),
            is_compressed: true,
        };
        let unpacked = message.unpacked(Encoding::Gzip, 1000);
        assert!(matches!(unpacked, Err(Unreadable::Malformed(_))));
    }

    #[test]
    fn a_compressed_message_needs_a_named_compression() {
        let unpacked = gzipped(b"abc").unpacked(Encoding::Identity, 3);
        assert!(matches!(unpacked, Err(Unreadable::Malformed(_))));
    }
}
