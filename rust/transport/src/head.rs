//! The head of a call: which method, until when, and how its messages are encoded.

use std::time::Duration;

use http::{HeaderMap, Method, StatusCode, header};

use super::message::{Encoding, Unreadable};

/// The longest deadline, which clocks and timers can represent.
pub(super) const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// Why a request is not a gRPC call, as a status of HTTP.
pub(super) fn not_grpc(method: &Method, headers: &HeaderMap) -> Option<StatusCode> {
    if method != Method::POST {
        return Some(StatusCode::METHOD_NOT_ALLOWED);
    }
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.map_or(&b""[..], |value| value.as_bytes());
    match kind.strip_prefix(b"application/grpc") {
        Some([] | [b'+' | b';', ..]) => None,
        _ => Some(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    }
}

/// The timeout that the caller sets; `None` if it sets no deadline.
pub(super) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Unreadable> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse_timeout);
    let malformed = Unreadable::Malformed("the header grpc-timeout is malformed");
    parsed.map(Some).ok_or(malformed)
}

/// Up to eight digits and a unit.
/// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    let duration = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    };
    Some(duration.min(LONGEST))
}

/// How the request's messages may be compressed; `None` if that is unknown.
pub(super) fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let Some(value) = headers.get("grpc-encoding") else {
        return Some(Encoding::Identity);
    };
    value.to_str().ok().and_then(Encoding::named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_digits_and_a_unit() {
        assert_eq!(parse_timeout("5S"), Some(Duration::from_secs(5)));
        assert_eq!(parse_timeout("00000250m"), Some(Duration::from_millis(250)));
        assert_eq!(parse_timeout("0n"), Some(Duration::ZERO));
        assert_eq!(parse_timeout("99999999H"), Some(LONGEST));
        for malformed in [
            "",
            "S",
            "5",
            "5s",
            "-1S",
            "+1S",
            "1.5S",
            "123456789S",
            "5 S",
            "ü",
            "1ü",
        ] {
            assert_eq!(parse_timeout(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn only_posts_of_grpc_are_calls() {
        let mut headers = HeaderMap::new();
        let refused = |method: &Method, headers: &HeaderMap| {
            not_grpc(method, headers).map(|code| code.as_u16())
        };
        assert_eq!(refused(&Method::GET, &headers), Some(405));
        assert_eq!(refused(&Method::POST, &headers), Some(415));
        for (kind, refusal) in [
            ("application/grpc", None),
            ("application/grpc+proto", None),
            ("application/grpc;a=b", None),
            ("application/grpc-web", Some(415)),
            ("application/json", Some(415)),
        ] {
            headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
            assert_eq!(refused(&Method::POST, &headers), refusal, "{kind}");
        }
    }
}
