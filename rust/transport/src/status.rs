//! The status that ends a call, and how it stands in trailers.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use prost::Message as _;

pub(super) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// A code of gRPC, those that the transport itself gives by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u8);

impl Code {
    pub const OK: Self = Self(0);
    pub const UNKNOWN: Self = Self(2);
    pub const INVALID_ARGUMENT: Self = Self(3);
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    pub const NOT_FOUND: Self = Self(5);
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    pub const UNIMPLEMENTED: Self = Self(12);
    pub const INTERNAL: Self = Self(13);
    pub const UNAVAILABLE: Self = Self(14);
}

/// The text in a `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "2")]
    message: String,
}

/// How a call ended. `details` is an encoded `google.rpc.Status`; empty if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub code: Code,
    pub message: String,
    pub details: Bytes,
}

/// Why a call ends without an answer.
pub(super) enum End {
    Failed(Status),
    /// The peer ended it, or does not read.
    Gone,
}

impl Status {
    /// A status without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Bytes::new(),
        }
    }

    /// The same with another text.
    pub(super) fn saying(&self, text: &str) -> Self {
        let message = Text {
            message: text.to_owned(),
        };
        // Of a field that stands twice in an encoded message, the last counts.
        let details = [&self.details[..], &message.encode_to_vec()].concat();
        Self {
            message: message.message,
            details: details.into(),
            ..*self
        }
    }

    /// The trailers that say it.
    pub(super) fn trailers(&self) -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(4);
        self.write(&mut trailers);
        trailers
    }

    pub(super) fn write(&self, headers: &mut HeaderMap) {
        headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(self.code.0)));
        if let Ok(message) = HeaderValue::try_from(percent_encoded(&self.message))
            && !message.is_empty()
        {
            headers.insert(GRPC_MESSAGE, message);
        }
        if self.details.is_empty() {
            return;
        }
        if let Ok(details) = HeaderValue::try_from(STANDARD_NO_PAD.encode(&self.details)) {
            headers.insert(GRPC_DETAILS, details);
        }
    }
}

/// The trailers of a call that went well.
pub(super) fn ok_trailers() -> HeaderMap {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    trailers
}

/// Percent-encoding as gRPC has it: what is not printable ASCII, and `%`.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_percent_encoded_where_it_must_be() {
        assert_eq!(percent_encoded("a b~"), "a b~");
        assert_eq!(percent_encoded("100%\n"), "100%25%0A");
        assert_eq!(percent_encoded("ü"), "%C3%BC");
    }

    #[test]
    fn another_text_stands_in_the_details_too() {
        let told = |text: &str| Text {
            message: text.to_owned(),
        };
        let status = Status {
            details: told("before").encode_to_vec().into(),
            ..Status::new(Code::INTERNAL, "before")
        };
        let other = status.saying("after");
        assert_eq!((other.code, &other.message[..]), (Code::INTERNAL, "after"));
        assert_eq!(Text::decode(other.details), Ok(told("after")));
    }

    #[test]
    fn details_stand_in_base64_without_padding() {
        let status = Status {
            details: Bytes::from_static(b"\xff"),
            ..Status::new(Code::INTERNAL, "")
        };
        let trailers = status.trailers();
        assert_eq!(trailers["grpc-status"], "13");
        assert_eq!(trailers["grpc-status-details-bin"], "/w");
        assert!(!trailers.contains_key("grpc-message"));
    }
}
