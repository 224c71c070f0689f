//! What identifies a caller: headers, and the certificate of the connection.

use std::sync::Arc;

use http::HeaderMap;

/// Replaces a tenant's name that is not printable ASCII. No tenant has this name. An empty one would give the caller the
/// tenant of callers that name none.
pub(super) const NO_NAME: &str = "\u{fffd}";

/// The names in a client's certificate; `None` where it needed none.
pub(super) type Names = Option<Arc<[String]>>;

/// What identifies a caller. Missing headers are empty.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    pub authorization: &'a str,
    pub tenant: &'a str,
    /// The names in the certificate that the connection showed; `None` where it needed none.
    pub names: Option<&'a [String]>,
}

impl<'a> Credentials<'a> {
    pub(super) fn of(headers: &'a HeaderMap, names: Option<&'a [String]>) -> Self {
        Self {
            authorization: text(headers, "authorization"),
            tenant: tenant(headers),
            names,
        }
    }
}

fn tenant(headers: &HeaderMap) -> &str {
    headers
        .get("remora-tenant")
        .map_or("", |value| value.to_str().unwrap_or(NO_NAME))
}

/// A header's first value; empty if it is missing or not printable ASCII.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}
