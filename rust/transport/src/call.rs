//! One call, from its head to its reply.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request};
use remora_supervision::caught_task;
use remora_supervision::failpoints::{self, Point};
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::{sleep_until, timeout};

use super::admission::Slots;
use super::backlog::{Backlog, Outgoing};
use super::budget::{Full, Share};
use super::connections::Connected;
use super::credentials::{Credentials, text};
use super::handler::{Answering, Handler, Larger};
use super::head;
use super::line::Line;
use super::message::{Encoding, Interrupted, Message, Messages, Unreadable};
use super::meter::Wait;
use super::options::QUICK_REQUEST_BYTES;
use super::peer::Peer;
use super::pool::{Job, Outcome};
use super::reply::{Part, Reply, refuse, refuse_encoding, refuse_http};
use super::room;
use super::shared::Shared;
use super::status::{End, Status};

/// A call whose head was accepted.
pub(super) struct Call<H: Handler> {
    pub(super) shared: Arc<Shared<H>>,
    method: usize,
    answering: Answering,
    caller: Arc<H::Caller>,
    traceparent: String,
    encoding: Encoding,
    pub(super) deadline: Instant,
    pub(super) peer: Arc<Peer>,
    _taken: Taken,
}

/// Counts a call as open and, if a stream answers it, among the streams of its connection and of its peer.
type Taken = (Share, Option<(room::Slot, Share)>);

/// A call that waits to be answered or refused.
pub(super) struct Accepted<H: Handler> {
    call: Call<H>,
    body: RecvStream,
    reply: Reply,
    backlog: Arc<Backlog>,
}

impl<H: Handler> Accepted<H> {
    /// Answers it in its own task, if there is still time.
    pub(super) fn answer(self, slot: Slots) {
        let Self {
            call,
            body,
            reply,
            backlog,
        } = self;
        if call.deadline <= Instant::now() {
            reply.fail(&call.shared.refusals.deadline_exceeded);
            return;
        }
        tokio::spawn(async move { call.serve(body, reply, &backlog, slot).await });
    }

    /// Counts it as waiting until what is returned is dropped.
    pub(super) fn wait(&self) -> Wait {
        self.call.wait()
    }

    /// Refuses it because there is no room.
    pub(super) fn refuse(self) {
        self.reply.fail(&self.call.shared.refusals.overloaded);
    }
}

/// Takes a call that can be answered. Others are refused at once. A health check gets its own task.
pub(super) fn accept<H: Handler>(
    shared: &Arc<Shared<H>>,
    connected: &Connected,
    request: Request<RecvStream>,
    respond: SendResponse<Part>,
) -> Option<Accepted<H>> {
    let line = connected.line();
    let (parts, body) = request.into_parts();
    if let Some(status) = head::not_grpc(&parts.method, &parts.headers) {
        // The caller may be gone, here and below.
        let _ = refuse_http(respond, status);
        return None;
    }
    if shared.health.serves(parts.uri.path()) {
        let (shared, peer) = (Arc::clone(shared), Arc::clone(&line.peer));
        let reply = Reply::new(respond, &line.replies);
        tokio::spawn(async move {
            let (path, broken) = (parts.uri.path(), &shared.refusals.internal);
            shared.health.answer(path, body, &peer, reply, broken).await;
        });
        return None;
    }
    let Some(encoding) = head::encoding(&parts.headers) else {
        let refusal = &shared.refusals.unknown_compression;
        shared.refused(parts.uri.path(), refusal);
        let _ = refuse_encoding(respond, refusal);
        return None;
    };
    match Call::accept(
        shared,
        connected,
        parts.uri.path(),
        &parts.headers,
        encoding,
    ) {
        Err(status) => {
            shared.refused(parts.uri.path(), &status);
            let _ = refuse(respond, &status);
            None
        }
        Ok(call) => {
            let backlog = call.backlog(line);
            Some(Accepted {
                body,
                reply: Reply::new(respond, backlog).counted(shared.meters.begin(call.method)),
                backlog: Arc::clone(backlog),
                call,
            })
        }
    }
}

impl<H: Handler> Call<H> {
    fn accept(
        shared: &Arc<Shared<H>>,
        connected: &Connected,
        path: &str,
        headers: &HeaderMap,
        encoding: Encoding,
    ) -> Result<Self, Status> {
        let refusals = &shared.refusals;
        let timeout = head::timeout(headers).map_err(|why| refusals.unreadable(why))?;
        let caller = shared.identities.caller(
            &Credentials::of(headers, connected.names.as_deref()),
            &shared.handler,
            &refusals.internal,
        )?;
        let Some(&(method, answering)) = shared.methods.get(path) else {
            return Err(refusals.unknown(path));
        };
        connected.prove();
        let line = connected.line();
        let taken = taken(line, answering).map_err(|full| refusals.full(full))?;
        let usual = match answering {
            Answering::Stream => head::LONGEST,
            _ => shared.options.default_timeout,
        };
        Ok(Self {
            method,
            answering,
            caller,
            traceparent: text(headers, "traceparent").to_owned(),
            encoding,
            deadline: Instant::now() + timeout.unwrap_or(usual),
            peer: Arc::clone(&line.peer),
            _taken: taken,
            shared: Arc::clone(shared),
        })
    }

    async fn serve(self, body: RecvStream, reply: Reply, backlog: &Arc<Backlog>, slot: Slots) {
        let share = Share::of(&self.peer.requests);
        let limit = match self.larger() {
            Some(larger) => larger.bytes,
            None => self.shared.options.receive_limit_bytes,
        };
        let messages = Messages::new(body, share, limit);
        match self.answering {
            Answering::Each => {
                drop(slot);
                self.serve_each(messages, reply, backlog).await;
            }
            Answering::Stream => self.serve_stream(messages, reply, backlog, slot).await,
            Answering::Quick | Answering::Pool => {
                self.serve_one(messages, reply, backlog, slot).await;
            }
        }
    }

    async fn serve_one(
        self,
        messages: Messages,
        mut reply: Reply,
        backlog: &Arc<Backlog>,
        slot: Slots,
    ) {
        let answered = caught_task(async {
            tokio::select! {
                biased;
                answered = self.answer_only(messages, backlog, slot) => answered,
                () = poll_fn(|context| reply.poll_reset(context)) => Err(End::Gone),
                () = sleep_until(self.deadline.into()) => Err(self.too_late()),
            }
        });
        let answered = answered.await.unwrap_or_else(|_| Err(self.broken()));
        match answered {
            Ok(message) => {
                if reply.message(message).await.is_ok() {
                    reply.end();
                }
            }
            Err(End::Failed(status)) => reply.fail(&status),
            Err(End::Gone) => {}
        }
    }

    async fn answer_only(
        &self,
        messages: Messages,
        backlog: &Arc<Backlog>,
        slot: Slots,
    ) -> Result<Outgoing, End> {
        let (outcome, turn) = self.ask_only(messages, backlog, slot).await?;
        drop(turn);
        self.reply_to(outcome).await
    }

    /// Asks for the answer to the only message of the call. The call keeps its slot only if that message is complete and
    /// it is the call's turn. Otherwise others would wait for it.
    pub(super) async fn ask_only<'a>(
        &self,
        messages: Messages,
        backlog: &'a Arc<Backlog>,
        slot: Slots,
    ) -> Result<(Outcome, SemaphorePermit<'a>), End> {
        failpoints::hit(Point::CallTask);
        let mut ready = pin!(async {
            let only = self.arrived(messages.only()).await?;
            let turn = backlog.turn().await.map_err(|full| self.full(full))?;
            Ok((only, turn))
        });
        let (((message, share), turn), slot) = match at_once(ready.as_mut()).await {
            Poll::Ready(ready) => (ready?, slot),
            Poll::Pending => {
                drop(slot);
                (ready.await?, self.slot().await?)
            }
        };
        Ok((self.ask(message, share, slot, backlog).await?, turn))
    }

    /// Reads a part of a request, if it comes in time.
    async fn arrived<T>(
        &self,
        read: impl Future<Output = Result<T, Interrupted>>,
    ) -> Result<T, End> {
        let mut read = pin!(read);
        let read = match at_once(read.as_mut()).await {
            Poll::Ready(read) => read,
            Poll::Pending => timeout(self.shared.options.request_timeout, read)
                .await
                .map_err(|_| self.too_late())?,
        };
        read.map_err(|why| self.end(why))
    }

    async fn slot(&self) -> Result<Slots, End> {
        let admission = &self.shared.admission;
        if let Some(slot) = admission.slot() {
            return Ok(slot);
        }
        let _wait = self.wait();
        admission.slots_or_turn(1).await.map_err(|turn| {
            turn.end(1);
            self.overloaded()
        })
    }

    /// Answers each message of a stream before it reads the next.
    async fn serve_each(self, mut messages: Messages, mut reply: Reply, backlog: &Arc<Backlog>) {
        let ended = caught_task(async {
            tokio::select! {
                biased;
                ended = self.answer_each(&mut messages, &mut reply, backlog) => ended,
                () = sleep_until(self.deadline.into()) => Err(self.too_late()),
            }
        });
        let ended = ended.await.unwrap_or_else(|_| Err(self.broken()));
        match ended {
            Ok(()) => reply.end(),
            Err(End::Failed(status)) => reply.fail(&status),
            Err(End::Gone) => {}
        }
    }

    async fn answer_each(
        &self,
        messages: &mut Messages,
        reply: &mut Reply,
        backlog: &Arc<Backlog>,
    ) -> Result<(), End> {
        loop {
            let message = self.arrived(messages.next()).await?;
            let Some(message) = message else {
                return Ok(());
            };
            let bytes = message.bytes.len();
            let share = Share::of(&self.peer.requests);
            let turn = backlog.turn().await.map_err(|full| self.full(full))?;
            let slot = self.slot().await?;
            let outcome = self.ask(message, share, slot, backlog).await?;
            drop(turn);
            let answer = self.reply_to(outcome).await?;
            messages.let_go(bytes);
            reply.message(answer).await.map_err(|_| End::Gone)?;
        }
    }

    /// Has a message answered. If there is no room for a reply, the message leaves the queue and returns when there is.
    async fn ask(
        &self,
        mut message: Message,
        mut share: Share,
        mut slot: Slots,
        backlog: &Arc<Backlog>,
    ) -> Result<Outcome, End> {
        loop {
            match self.ask_once(message, share, slot, backlog).await? {
                Outcome::NoRoom(returned, counted) => (message, share) = (returned, counted),
                outcome => return Ok(outcome),
            }
            let room = backlog.until_room().await;
            room.map_err(|full| self.full(full))?;
            slot = self.slot().await?;
        }
    }

    async fn ask_once(
        &self,
        message: Message,
        share: Share,
        slot: Slots,
        backlog: &Arc<Backlog>,
    ) -> Result<Outcome, End> {
        let (sender, receiver) = oneshot::channel();
        let is_quick = self.answering == Answering::Quick
            && !message.is_compressed
            && message.bytes.len() <= QUICK_REQUEST_BYTES;
        let job = Job {
            method: self.method,
            caller: Arc::clone(&self.caller),
            traceparent: self.traceparent.clone(),
            message,
            encoding: self.encoding,
            deadline: self.deadline,
            reply: sender,
            backlog: Arc::clone(backlog),
            slot,
            share,
            wait: self.wait(),
        };
        match is_quick {
            true => self.shared.quick.push(job),
            false => self.shared.pool.push(job),
        }
        let mut waiting = Waiting {
            shared: &self.shared,
            receiver,
        };
        (&mut waiting.receiver).await.map_err(|_| self.lost())
    }

    /// Waits until the caller may see a reply.
    async fn reply_to(&self, outcome: Outcome) -> Result<Outgoing, End> {
        match outcome {
            Outcome::Reply { message, after } => {
                let published = self.shared.held.until(after).await;
                published.map_err(|_| End::Failed(self.shared.refusals.not_published.clone()))?;
                Ok(message)
            }
            Outcome::Failure(status) => Err(End::Failed(status)),
            Outcome::Stream(_) | Outcome::Broken | Outcome::NoRoom(..) => Err(self.broken()),
        }
    }

    /// Counts it as waiting until what is returned is dropped.
    pub(super) fn wait(&self) -> Wait {
        self.shared.meters.wait(self.method)
    }

    /// There is no answer, because the pool ends, or because a thread panicked.
    pub(super) fn lost(&self) -> End {
        match *self.shared.stopping.borrow() {
            Some(_) => self.stopping(),
            None => self.broken(),
        }
    }

    pub(super) fn broken(&self) -> End {
        End::Failed(self.shared.refusals.internal.clone())
    }

    pub(super) fn stopping(&self) -> End {
        End::Failed(self.shared.refusals.stopping.clone())
    }

    /// The deadline for opening a stream.
    pub(super) fn opening_deadline(&self) -> Instant {
        let usual = Instant::now() + self.shared.options.default_timeout;
        self.deadline.min(usual)
    }

    /// The counter of its unread replies.
    fn backlog<'a>(&self, line: &'a Line) -> &'a Arc<Backlog> {
        match self.answering {
            Answering::Stream => &line.streams,
            _ => &line.replies,
        }
    }

    fn larger(&self) -> Option<&Larger> {
        self.shared.larger.get(&self.method)
    }

    fn unreadable(&self, why: Unreadable) -> Status {
        match (why, self.larger()) {
            (Unreadable::TooLarge, Some(larger)) => larger.refusal.clone(),
            _ => self.shared.refusals.unreadable(why),
        }
    }

    fn end(&self, why: Interrupted) -> End {
        match why {
            Interrupted::Unreadable(why) => End::Failed(self.unreadable(why)),
            Interrupted::NoRoom(full) => self.full(full),
            Interrupted::Gone => End::Gone,
        }
    }

    fn overloaded(&self) -> End {
        End::Failed(self.shared.refusals.overloaded.clone())
    }

    fn full(&self, full: Full) -> End {
        End::Failed(self.shared.refusals.full(full))
    }

    pub(super) fn too_late(&self) -> End {
        End::Failed(self.shared.refusals.deadline_exceeded.clone())
    }
}

/// Waits for an answer. A caller that leaves before takes its call out of the queue, which makes room for others at once.
struct Waiting<'a, H: Handler> {
    shared: &'a Shared<H>,
    receiver: oneshot::Receiver<Outcome>,
}

impl<H: Handler> Drop for Waiting<'_, H> {
    fn drop(&mut self) {
        if !self.receiver.is_terminated() {
            self.receiver.close();
            self.shared.pool.sweep();
        }
    }
}

/// Counts a call, if its peer may have another one, and room for what it holds.
fn taken(line: &Line, answering: Answering) -> Result<Taken, Full> {
    let peer = &line.peer;
    peer.requests.require(1)?;
    peer.replies.require(1)?;
    let of_streams = match answering {
        Answering::Stream => {
            let of_connection = line.flows.take().ok_or(Full::OfPeer)?;
            Some((of_connection, Share::one(&peer.flows)?))
        }
        _ => None,
    };
    Ok((Share::one(&peer.calls)?, of_streams))
}

/// The result of a future that is ready now.
async fn at_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
