//! Pages over HTTP/1.1, and the interface of their makers.

use bytes::Bytes;

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// 200, or another status of HTTP.
    pub status: u16,
    pub content_type: String,
    pub body: Bytes,
}

/// Makes pages, in threads of their own.
pub trait Pages: Send + Sync + 'static {
    /// The page of a path, which begins with a slash and has no query; `None` if there is none.
    fn page(&self, path: &str) -> Option<Page>;
}
