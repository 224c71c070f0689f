//! What a connection asks of HTTP/1.1 and of HTTP/2.

/// One finished exchange: its number within the connection, and whether the server answered as it should.
pub(crate) struct Reply {
    pub(crate) id: u32,
    pub(crate) ok: bool,
}

/// One connection's protocol.
pub(crate) trait Protocol {
    /// Appends the bytes that open the connection.
    fn open(&mut self, out: &mut Vec<u8>);

    /// Appends a request and says its id; None while the server's flow control leaves no room, and after the last one.
    fn request(&mut self, number: u64, out: &mut Vec<u8>) -> Option<u32>;

    /// Whether there is another request to make.
    fn has_more(&self) -> bool;

    /// Takes what is complete at the front of `input` and says how long that is; what must be answered at once goes to
    /// `out`.
    fn receive(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
        replies: &mut Vec<Reply>,
    ) -> Result<usize, String>;
}
