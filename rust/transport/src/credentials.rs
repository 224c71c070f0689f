//! What a caller is told by: headers, and the certificate of the connection.

use std::sync::Arc;

use http::HeaderMap;

/// What stands for a tenant's name that is no printable ASCII: no tenant has it. Taken for none, the caller would be let
/// into the tenant of those who name none.
pub(super) const NO_NAME: &str = "\u{fffd}";

/// The names in a client's certificate; `None` where it needed none.
pub(super) type Names = Option<Arc<[String]>>;

/// What tells a caller. Headers that are not there are empty.
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

/// A header's first value; empty where there is none or it is no printable ASCII.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}
