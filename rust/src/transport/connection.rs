//! One connection: its handshake, its calls, its end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, Connection};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::yield_now;
use tokio::time::timeout;

use super::call;
use super::handler::Handler;
use super::keepalive;
use super::options::{
    CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES, Options, PENDING_RESETS, STREAM_WINDOW_BYTES,
};
use super::reply::Backlog;
use super::room::Place;
use super::server::Shared;

/// Serves a connection until it ends, which a stop makes it do when its calls are answered.
pub(super) async fn serve<H: Handler, S>(shared: Arc<Shared<H>>, socket: S, _place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let options = &shared.options;
    let handshake = builder(options).handshake::<_, Bytes>(socket);
    let Ok(Ok(mut connection)) = timeout(options.handshake_timeout, handshake).await else {
        return;
    };
    let backlog = Arc::new(Backlog::new(
        options.connection_reply_bytes,
        &shared.replies,
        &shared.pressure,
        options.stall_timeout,
    ));
    let Some(ping_pong) = connection.ping_pong() else {
        return;
    };
    let gone = keepalive::until_gone(ping_pong, options.keepalive, options.keepalive_timeout);
    let answered = answer(&shared, &mut connection, &backlog);
    tokio::select! {
        () = answered => {}
        () = gone => {}
        () = backlog.until_in_the_way() => {}
    }
}

fn builder(options: &Options) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(options.streams)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_pending_accept_reset_streams(PENDING_RESETS);
    builder
}

async fn answer<H: Handler, S>(
    shared: &Arc<Shared<H>>,
    connection: &mut Connection<S, Bytes>,
    backlog: &Arc<Backlog>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopping = shared.stopping.subscribe();
    let mut is_stopping = pin!(async move { stopping.wait_for(Option::is_some).await.is_ok() });
    let mut is_draining = false;
    loop {
        let accepted = poll_fn(|context| {
            if !is_draining && is_stopping.as_mut().poll(context).is_ready() {
                is_draining = true;
                connection.graceful_shutdown();
            }
            connection.poll_accept(context)
        });
        match accepted.await {
            Some(Ok((request, respond))) => call::begin(shared, backlog, request, respond),
            Some(Err(_)) | None => return,
        }
        // The call takes its place before the next is looked at, and what is refused comes behind what can be answered.
        yield_now().await;
        if shared.room.is_full() {
            let rest = shared.refusing.rest();
            if ends_within(connection, rest).await {
                return;
            }
        }
    }
}

/// Carries a connection's calls on, without looking at new ones; whether it ended.
async fn ends_within<S>(connection: &mut Connection<S, Bytes>, rest: Duration) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ended = poll_fn(|context| connection.poll_closed(context));
    timeout(rest, ended).await.is_ok()
}
