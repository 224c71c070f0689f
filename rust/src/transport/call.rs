//! One call, from its head to its reply.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{HeaderMap, Request};
use tokio::sync::oneshot;
use tokio::time::sleep_until;

use super::budget::Share;
use super::handler::{Answer, Answering, Handler};
use super::head;
use super::identities::{Credentials, text};
use super::message::{Encoding, Interrupted, Message, Messages};
use super::options::QUICK_REQUEST_BYTES;
use super::pool::Job;
use super::reply::{Backlog, Outgoing, Reply, refuse, refuse_encoding, refuse_http};
use super::room::Place;
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
    _open: Place,
}

/// Refuses a call at once, or sees to it in a task of its own.
pub(super) fn begin<H: Handler>(
    shared: &Arc<Shared<H>>,
    backlog: &Arc<Backlog>,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
) {
    let (parts, body) = request.into_parts();
    if let Some(status) = head::not_grpc(&parts.method, &parts.headers) {
        // Whom it concerns may be gone, here and below.
        let _ = refuse_http(respond, status);
        return;
    }
    if shared.health.serves(parts.uri.path()) {
        let health = Arc::clone(&shared.health);
        let reply = Reply::new(respond, backlog);
        tokio::spawn(async move { health.answer(parts.uri.path(), body, reply).await });
        return;
    }
    let encoding = match head::encoding(&parts.headers) {
        Ok(encoding) => encoding,
        Err(status) => {
            let _ = refuse_encoding(respond, &status);
            return;
        }
    };
    match Call::accept(shared, parts.uri.path(), &parts.headers, encoding) {
        Err(status) => drop(refuse(respond, &status)),
        Ok(call) => {
            let reply = Reply::new(respond, backlog);
            let backlog = Arc::clone(backlog);
            tokio::spawn(async move { call.serve(body, reply, &backlog).await });
        }
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
            .admit()
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

    async fn serve(self, body: RecvStream, reply: Reply, backlog: &Backlog) {
        let share = Share::of(&self.shared.requests);
        let messages = Messages::new(body, share, self.shared.options.receive_limit_bytes);
        match self.answering {
            Answering::Each => self.serve_each(messages, reply, backlog).await,
            Answering::Quick | Answering::Pool => self.serve_one(messages, reply, backlog).await,
        }
    }

    async fn serve_one(self, messages: Messages, mut reply: Reply, backlog: &Backlog) {
        let answered = tokio::select! {
            biased;
            answered = self.answer_only(messages, backlog) => answered,
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

    async fn answer_only(&self, messages: Messages, backlog: &Backlog) -> Result<Outgoing, End> {
        let (message, share) = messages.only().await.map_err(|why| self.end(why))?;
        self.answer(message, share, backlog).await
    }

    /// Answers each message of a stream before it reads the next.
    async fn serve_each(self, mut messages: Messages, mut reply: Reply, backlog: &Backlog) {
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
        backlog: &Backlog,
    ) -> Result<(), End> {
        loop {
            let message = messages.next().await.map_err(|why| self.end(why))?;
            let Some(message) = message else {
                return Ok(());
            };
            let bytes = message.bytes.len();
            let share = Share::of(&self.shared.requests);
            let answer = self.answer(message, share, backlog).await?;
            messages.let_go(bytes);
            reply.message(answer).await.map_err(|_| End::Gone)?;
        }
    }

    /// Has a message answered, and waits until the reply may be seen.
    async fn answer(
        &self,
        message: Message,
        share: Share,
        backlog: &Backlog,
    ) -> Result<Outgoing, End> {
        let turn = backlog.turn().await;
        if self.shared.replies.is_spent() {
            return Err(self.overloaded());
        }
        let Some(place) = self.shared.room.take() else {
            return Err(self.overloaded());
        };
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
        match receiver.await {
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
