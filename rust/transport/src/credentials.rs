//! The headers by which a caller is told.

use http::HeaderMap;

/// What stands for a tenant's name that is no printable ASCII: no tenant has it. Taken for none, the caller would be let
/// into the tenant of those who name none.
pub(super) const NO_NAME: &str = "\u{fffd}";

/// The headers that tell a caller; empty where they are not there.
#[derive(Clone, Copy, Debug)]
pub struct Credentials<'a> {
    pub authorization: &'a str,
    pub tenant: &'a str,
}

impl<'a> Credentials<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        Self {
            authorization: text(headers, "authorization"),
            tenant: tenant(headers),
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
