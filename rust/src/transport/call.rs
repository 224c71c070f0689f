//! One call, from its head to its reply.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request};
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::sleep_until;

use super::admission::Places;
use super::budget::Share;
use super::handler::{Answer, Answering, Handler};
use super::head;
use super::identities::{Credentials, text};
use super::message::{Encoding, Interrupted, Message, Messages};
use super::options::QUICK_REQUEST_BYTES;
use super::pool::Job;
use super::reply::{Backlog, Outgoing, Part, Reply, refuse, refuse_encoding, refuse_http};
use super::room;
use super::server::Shared;
use super::status::{Code, Status};

/// A call whose head was accepted.
struct Call<H: Handler> {
    shared: Arc<Shared<H>>,
    method: usize,
    answering: Answering,
    caller: Arc<H::Caller>,
    traceparent: String,
    encoding: Encoding,
    deadline: Instant,
    _open: room::Place,
}

/// A call that waits to be answered or refused.
pub(super) struct Accepted<H: Handler> {
    call: Call<H>,
    body: RecvStream,
    reply: Reply,
    backlog: Arc<Backlog>,
}

impl<H: Handler> Accepted<H> {
    /// Has it answered in a task of its own, where there is still time.
    pub(super) fn answer(self, place: Places) {
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
        tokio::spawn(async move { call.serve(body, reply, &backlog, place).await });
    }

    /// Says that there is no room for it.
    pub(super) fn refuse(self) {
        self.reply.fail(&self.call.shared.refusals.overloaded);
    }
}

/// Takes a call that can be answered. Another is refused at once, and one about health is seen to in a task of its own.
pub(super) fn accept<H: Handler>(
    shared: &Arc<Shared<H>>,
    backlog: &Arc<Backlog>,
    request: Request<RecvStream>,
    respond: SendResponse<Part>,
) -> Option<Accepted<H>> {
    let (parts, body) = request.into_parts();
    if let Some(status) = head::not_grpc(&parts.method, &parts.headers) {
        // Whom it concerns may be gone, here and below.
        let _ = refuse_http(respond, status);
        return None;
    }
    if shared.health.serves(parts.uri.path()) {
        let health = Arc::clone(&shared.health);
        let reply = Reply::new(respond, backlog);
        tokio::spawn(async move { health.answer(parts.uri.path(), body, reply).await });
        return None;
    }
    let encoding = match head::encoding(&parts.headers) {
        Ok(encoding) => encoding,
        Err(status) => {
            let _ = refuse_encoding(respond, &status);
            return None;
        }
    };
    match Call::accept(shared, parts.uri.path(), &parts.headers, encoding) {
        Err(status) => {
            let _ = refuse(respond, &status);
            None
        }
        Ok(call) => Some(Accepted {
            call,
            body,
            reply: Reply::new(respond, backlog),
            backlog: Arc::clone(backlog),
        }),
    }
}

/// Why a call ends without an answer.
enum End {
    Failed(Status),
    Gone,
}

impl<H: Handler> Call<H> {
    fn accept(
        shared: &Arc<Shared<H>>,
        path: &str,
        headers: &HeaderMap,
        encoding: Encoding,
    ) -> Result<Self, Status> {
        let timeout = head::timeout(headers)?;
        let caller = shared
            .identities
            .caller(&Credentials::of(headers), &shared.handler)?;
        let Some(&(method, answering)) = shared.methods.get(path) else {
            return Err(Status::new(Code::UNIMPLEMENTED, "there is no such method"));
        };
        let open = shared
            .open()
            .ok_or_else(|| shared.refusals.overloaded.clone())?;
        Ok(Self {
            method,
            answering,
            caller,
            traceparent: text(headers, "traceparent").to_owned(),
            encoding,
            deadline: Instant::now() + timeout.unwrap_or(shared.options.default_timeout),
            _open: open,
            shared: Arc::clone(shared),
        })
    }

    async fn serve(self, body: RecvStream, reply: Reply, backlog: &Arc<Backlog>, place: Places) {
        let share = Share::of(&self.shared.requests);
        let messages = Messages::new(body, share, self.shared.options.receive_limit_bytes);
        match self.answering {
            Answering::Each => {
                drop(place);
                self.serve_each(messages, reply, backlog).await;
            }
            Answering::Quick | Answering::Pool => {
                self.serve_one(messages, reply, backlog, place).await;
            }
        }
    }

    async fn serve_one(
        self,
        messages: Messages,
        mut reply: Reply,
        backlog: &Arc<Backlog>,
        place: Places,
    ) {
        let answered = tokio::select! {
            biased;
            answered = self.answer_only(messages, backlog, place) => answered,
            () = poll_fn(|context| reply.poll_reset(context)) => Err(End::Gone),
            () = sleep_until(self.deadline.into()) => Err(self.too_late()),
        };
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

    /// A call keeps its place where its message is there already, and it is its turn: else others would wait for it.
    async fn answer_only(
        &self,
        messages: Messages,
        backlog: &Arc<Backlog>,
        place: Places,
    ) -> Result<Outgoing, End> {
        let mut ready = pin!(async {
            let only = messages.only().await.map_err(|why| self.end(why))?;
            Ok((only, backlog.turn().await))
        });
        let (((message, share), turn), place) = match at_once(ready.as_mut()).await {
            Poll::Ready(ready) => (ready?, place),
            Poll::Pending => {
                drop(place);
                (ready.await?, self.place().await?)
            }
        };
        self.answer(message, share, turn, place, backlog).await
    }

    async fn place(&self) -> Result<Places, End> {
        let admission = &self.shared.admission;
        if let Some(place) = admission.place() {
            return Ok(place);
        }
        admission.places_or_turn(1).await.map_err(|turn| {
            turn.end(1);
            self.overloaded()
        })
    }

    /// Answers each message of a stream before it reads the next.
    async fn serve_each(self, mut messages: Messages, mut reply: Reply, backlog: &Arc<Backlog>) {
        let ended = tokio::select! {
            biased;
            ended = self.answer_each(&mut messages, &mut reply, backlog) => ended,
            () = sleep_until(self.deadline.into()) => Err(self.too_late()),
        };
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
            let message = messages.next().await.map_err(|why| self.end(why))?;
            let Some(message) = message else {
                return Ok(());
            };
            let bytes = message.bytes.len();
            let share = Share::of(&self.shared.requests);
            let turn = backlog.turn().await;
            let place = self.place().await?;
            let answer = self.answer(message, share, turn, place, backlog).await?;
            messages.let_go(bytes);
            reply.message(answer).await.map_err(|_| End::Gone)?;
        }
    }

    /// Has a message answered, and waits until the reply may be seen.
    async fn answer(
        &self,
        message: Message,
        share: Share,
        turn: Option<SemaphorePermit<'_>>,
        place: Places,
        backlog: &Arc<Backlog>,
    ) -> Result<Outgoing, End> {
        if self.shared.replies.is_spent() {
            return Err(self.overloaded());
        }
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
            place,
            share,
        };
        match is_quick {
            true => self.shared.quick.push(job),
            false => self.shared.pool.push(job),
        }
        let mut waiting = Waiting {
            shared: &self.shared,
            receiver,
        };
        match (&mut waiting.receiver).await {
            Ok(Answer::Reply { message, after }) => {
                let message = backlog.hold(message);
                drop(turn);
                let published = self.shared.held.until(after).await;
                published.map_err(|_| End::Failed(self.shared.refusals.not_published.clone()))?;
                Ok(message)
            }
            Ok(Answer::Failure(status)) => Err(End::Failed(status)),
            Ok(Answer::WouldWait) | Err(_) => {
                let status = Status::new(Code::UNAVAILABLE, "the server is stopping");
                Err(End::Failed(status))
            }
        }
    }

    fn end(&self, why: Interrupted) -> End {
        match why {
            Interrupted::Refused(status) => End::Failed(status),
            Interrupted::NoRoom => self.overloaded(),
            Interrupted::Gone => End::Gone,
        }
    }

    fn overloaded(&self) -> End {
        End::Failed(self.shared.refusals.overloaded.clone())
    }

    fn too_late(&self) -> End {
        End::Failed(self.shared.refusals.deadline_exceeded.clone())
    }
}

/// Waits for an answer. Whoever leaves before takes the call out of the queue: it makes room for others at once.
struct Waiting<'a, H: Handler> {
    shared: &'a Shared<H>,
    receiver: oneshot::Receiver<Answer>,
}

impl<H: Handler> Drop for Waiting<'_, H> {
    fn drop(&mut self) {
        if !self.receiver.is_terminated() {
            self.receiver.close();
            self.shared.pool.sweep();
        }
    }
}

/// What a future has come to without waiting.
async fn at_once<F: Future>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}
