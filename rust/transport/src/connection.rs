//! One connection: its handshake, its calls, its end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use h2::server::{Builder, Connection};
use remora_supervision::failpoints::{self, Point};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::call::{self, Accepted};
use super::connections::Connected;
use super::handler::Handler;
use super::keepalive;
use super::options::{CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES, Options, STREAM_WINDOW_BYTES};
use super::reply::Part;
use super::shared::Shared;
use super::together::Together;

/// How many calls of a connection wait for slots together.
const GROUP: usize = 16;

/// Serves a connection until it ends. After a stop it ends when its calls are answered.
pub(super) async fn serve<H: Handler, S>(shared: Arc<Shared<H>>, socket: S, connected: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::select! {
        () = serve_calls(&shared, socket, &connected) => {}
        () = connected.until_evicted() => {}
    }
}

async fn serve_calls<H: Handler, S>(shared: &Arc<Shared<H>>, socket: S, connected: &Connected)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let options = &shared.options;
    let handshake = builder(options).handshake::<_, Part>(Together::new(socket));
    let Ok(Ok(mut connection)) = timeout(options.handshake_timeout, handshake).await else {
        return;
    };
    let Some(ping_pong) = connection.ping_pong() else {
        return;
    };
    let gone = keepalive::until_gone(ping_pong, options.keepalive, options.keepalive_timeout);
    let answered = answer(shared, &mut connection, connected);
    tokio::select! {
        () = answered => {}
        () = gone => {}
    }
}

fn builder(options: &Options) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(options.streams)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_pending_accept_reset_streams(options.pending_resets);
    builder
}

async fn answer<H: Handler, S>(
    shared: &Arc<Shared<H>>,
    connection: &mut Connection<S, Part>,
    connected: &Connected,
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
        let accepted = match accepted.await {
            Some(Ok((request, respond))) => {
                failpoints::hit(Point::ConnectionTask);
                call::accept(shared, connected, request, respond)
            }
            Some(Err(_)) | None => return,
        };
        if let Some(call) = accepted
            && admit(shared, connection, connected, call).await.is_err()
        {
            return;
        }
    }
}

/// The connection ended.
struct Ended;

/// Has a call answered once there is a slot for it, or refused if it is this connection's turn before. A few calls that
/// came with it are treated with it, so that one write carries their replies. Meanwhile no other call is read: calls that
/// come faster than they can be answered or refused wait unread.
async fn admit<H: Handler, S>(
    shared: &Arc<Shared<H>>,
    connection: &mut Connection<S, Part>,
    connected: &Connected,
    call: Accepted<H>,
) -> Result<(), Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Some(slot) = shared.admission.slot() {
        call.answer(slot);
        return Ok(());
    }
    let calls = group(shared, connection, connected, call).await?;
    let count = calls.len() as u32;
    let waits: Vec<_> = calls.iter().map(Accepted::wait).collect();
    let admitted = tokio::select! {
        biased;
        admitted = shared.admission.slots_or_turn(count) => admitted,
        _ = poll_fn(|context| connection.poll_closed(context)) => return Err(Ended),
    };
    drop(waits);
    match admitted {
        Ok(mut slots) => {
            for call in calls {
                match slots.one() {
                    Some(slot) => call.answer(slot),
                    None => call.refuse(),
                }
            }
        }
        Err(turn) => {
            turn.end(count);
            calls.into_iter().for_each(Accepted::refuse);
        }
    }
    Ok(())
}

/// A call and those that came with it.
async fn group<H: Handler, S>(
    shared: &Arc<Shared<H>>,
    connection: &mut Connection<S, Part>,
    connected: &Connected,
    first: Accepted<H>,
) -> Result<Vec<Accepted<H>>, Ended>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut calls = vec![first];
    while calls.len() < GROUP.min(shared.options.room) {
        match poll_fn(|context| Poll::Ready(connection.poll_accept(context))).await {
            Poll::Ready(Some(Ok((request, respond)))) => {
                calls.extend(call::accept(shared, connected, request, respond));
            }
            Poll::Ready(Some(Err(_)) | None) => return Err(Ended),
            Poll::Pending => break,
        }
    }
    Ok(calls)
}
