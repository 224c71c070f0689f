//! HTTP/1.1: a request at a time, a reply with a Content-Length.

use crate::protocol::{Protocol, Reply};
use crate::template::Templates;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const LENGTH: &str = "content-length:";

/// A connection whose requests are whole in their templates, head included.
pub(crate) struct Http1 {
    templates: Templates,
}

impl Http1 {
    pub(crate) fn new(templates: Templates) -> Self {
        Self { templates }
    }
}

impl Protocol for Http1 {
    fn open(&mut self, _out: &mut Vec<u8>) {}

    fn request(&mut self, number: u64, out: &mut Vec<u8>) -> Option<u32> {
        self.templates.current()?.write(number, out);
        self.templates.advance();
        Some(0)
    }

    fn has_more(&self) -> bool {
        self.templates.current().is_some()
    }

    fn receive(
        &mut self,
        input: &[u8],
        _out: &mut Vec<u8>,
        replies: &mut Vec<Reply>,
    ) -> Result<usize, String> {
        let Some(head) = find(input, END_OF_HEAD) else {
            return Ok(0);
        };
        let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
        let end = head + END_OF_HEAD.len() + length(&text)?;
        if input.len() < end {
            return Ok(0);
        }
        replies.push(Reply {
            id: 0,
            ok: text.starts_with("http/1.1 200"),
        });
        Ok(end)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn length(head: &str) -> Result<usize, String> {
    let value = head.lines().find_map(|line| line.strip_prefix(LENGTH));
    value
        .and_then(|text| text.trim().parse().ok())
        .ok_or_else(|| "a reply has no Content-Length".into())
}

#[cfg(test)]
mod tests {
    use super::Http1;
    use crate::protocol::Protocol;
    use crate::template::Templates;

    fn received(bytes: &[u8]) -> (Vec<bool>, usize) {
        let mut replies = Vec::new();
        let templates = Templates::parse(&[0; 4]).unwrap_or_else(|| panic!("one empty request"));
        let outcome = Http1::new(templates).receive(bytes, &mut Vec::new(), &mut replies);
        let taken = outcome.unwrap_or_else(|error| panic!("{error}"));
        (
            replies.iter().map(|reply| reply.ok).collect(),
            bytes.len() - taken,
        )
    }

    #[test]
    fn a_whole_reply_is_taken() {
        assert_eq!(
            received(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
            (vec![true], 0)
        );
    }

    #[test]
    fn a_reply_that_is_not_whole_is_left() {
        assert_eq!(
            received(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"),
            (vec![], 40)
        );
    }

    #[test]
    fn another_status_is_a_failure() {
        assert_eq!(
            received(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"),
            (vec![false], 0)
        );
    }
}
