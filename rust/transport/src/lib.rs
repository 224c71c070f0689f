//! gRPC over HTTP/2: listens, reads requests, has them answered by a `Handler`, and sends the replies.
//!
//! One thread runs everything here. It answers *quick* calls itself, one after the other, without waiting. Quick calls that
//! would have to wait, and all other calls, go to a pool of threads. A reply with a revision is held until that revision is
//! published, without a thread that waits for it. Calls for which there is no room are refused first of all.
//!
//! Locks: each is a leaf. None is taken while another is held, and no handler and no source is called under one.
//!
//! Knows: `fingerprint`, `supervision`. It must not know what a call means. `Options` bounds what a peer can make this
//! process hold.

mod admission;
mod authority;
mod backlog;
mod budget;
mod call;
mod connection;
mod connections;
mod credentials;
mod flow;
mod handler;
mod head;
mod health;
mod held;
mod identities;
mod keepalive;
mod line;
mod listener;
mod message;
mod meter;
mod options;
mod pace;
mod page;
mod pages;
mod peer;
mod pool;
mod quick;
mod reply;
mod room;
mod secured;
mod server;
mod shared;
mod status;
mod stream;
mod subscription;
#[cfg(test)]
mod tests;
mod tls;
mod together;

pub use credentials::Credentials;
pub use flow::{Flow, Next, Source};
pub use handler::{Answer, Answering, Handler, Larger, Method, Publication, Question, Refusals};
pub use health::Health;
pub use listener::Listener;
pub use meter::{BOUNDS, Calls};
pub use options::Options;
pub use page::{Page, Pages};
pub use server::Transport;
pub use status::{Code, Status};
pub use subscription::Subscription;
pub use tls::{Certificates, Tls, Unusable, expiry};
