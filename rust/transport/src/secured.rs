//! One connection of a TCP port that speaks TLS: its handshake, before it is served like any other.

use std::io;
use std::sync::Arc;

use remora_supervision::failpoints::{self, Point};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection;
use super::connections::Connected;
use super::handler::Handler;
use super::shared::Shared;
use super::tls::Tls;

/// Serves a connection after its handshake, which may take as long as that of HTTP/2.
pub(super) async fn serve<H: Handler>(
    shared: Arc<Shared<H>>,
    tls: Arc<Tls>,
    socket: TcpStream,
    mut connected: Connected,
) {
    failpoints::hit(Point::HandshakeTask);
    let patience = shared.options.handshake_timeout;
    let shaken = tokio::select! {
        shaken = timeout(patience, tls.shake_hands(socket)) => shaken,
        () = connected.until_evicted() => return,
    };
    match shaken {
        Ok(Ok((stream, names))) => {
            connected.names = names;
            connection::serve(shared, stream, connected).await;
        }
        Ok(Err(error)) => report(&error, &tls, &shared.handler),
        Err(_) => {}
    }
}

/// Tells those who run the server of a handshake that failed, unless the peer just went away.
fn report<H: Handler>(error: &io::Error, tls: &Tls, handler: &H) {
    if error.kind() == io::ErrorKind::InvalidData && tls.is_report_due() {
        handler.report(&format!(
            "a TLS handshake failed (reported once a minute): {error}"
        ));
    }
}
