//! The transport, met over real sockets.
