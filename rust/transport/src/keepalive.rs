//! Whether the other end of a connection is still there.

use std::future::poll_fn;
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::{sleep, timeout};

/// Asks the peer again and again; returns when it does not answer.
pub(super) async fn until_gone(mut ping_pong: PingPong, every: Duration, patience: Duration) {
    loop {
        sleep(every).await;
        if ping_pong.send_ping(Ping::opaque()).is_err() {
            return;
        }
        let pong = poll_fn(|context| ping_pong.poll_pong(context));
        if !matches!(timeout(patience, pong).await, Ok(Ok(_))) {
            return;
        }
    }
}
