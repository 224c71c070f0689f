//! The standard health service (grpc.health.v1): the state of each service, which watchers are told at once.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use h2::RecvStream;
use parking_lot::Mutex;
use prost::Message as _;
use remora_supervision::caught_task;
use remora_supervision::failpoints::{self, Point};
use tokio::sync::watch;
use tokio::time::timeout;

use super::budget::{Budget, Portion, Share};
use super::message::Messages;
use super::peer::Peer;
use super::reply::Reply;
use super::status::{Code, End, Status};

const CHECK: &str = "/grpc.health.v1.Health/Check";
const LIST: &str = "/grpc.health.v1.Health/List";
const WATCH: &str = "/grpc.health.v1.Health/Watch";

const SERVING: i32 = 1;
const NOT_SERVING: i32 = 2;
const SERVICE_UNKNOWN: i32 = 3;

/// The longest request; a service's name is in it.
const REQUEST_BYTES: usize = 1024;
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, prost::Message)]
struct CheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ListResponse {
    #[prost(map = "string, message", tag = "1")]
    statuses: HashMap<String, CheckResponse>,
}

/// The state of each service.
pub struct Health {
    states: Mutex<HashMap<String, watch::Sender<i32>>>,
    stopped: watch::Sender<bool>,
    /// Counts the bytes of requests without a bound, because health checks are always answered.
    requests: Arc<Portion>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            states: Mutex::default(),
            stopped: watch::Sender::new(false),
            requests: Portion::of(&Budget::new(usize::MAX / 2)),
        }
    }
}

impl Health {
    /// Sets whether a service serves.
    pub fn set(&self, service: &str, serving: bool) {
        let status = if serving { SERVING } else { NOT_SERVING };
        let mut states = self.states.lock();
        match states.get(service) {
            Some(state) => {
                state.send_if_modified(|said| std::mem::replace(said, status) != status);
            }
            None => drop(states.insert(service.to_owned(), watch::Sender::new(status))),
        }
    }

    /// Ends the calls of watchers, once they know the last state.
    pub(super) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    pub(super) fn serves(&self, path: &str) -> bool {
        matches!(path, CHECK | LIST | WATCH)
    }

    /// Answers a call; where that panics, with `broken`.
    pub(super) async fn answer(
        &self,
        path: &str,
        body: RecvStream,
        peer: &Peer,
        mut reply: Reply,
        broken: &Status,
    ) {
        let answered = caught_task(self.respond(path, body, peer, &mut reply)).await;
        match answered.unwrap_or_else(|_| Err(End::Failed(broken.clone()))) {
            Ok(()) => reply.end(),
            Err(End::Failed(status)) => reply.fail(&status),
            Err(End::Gone) => {}
        }
    }

    async fn respond(
        &self,
        path: &str,
        body: RecvStream,
        peer: &Peer,
        reply: &mut Reply,
    ) -> Result<(), End> {
        let messages = Messages::new(body, Share::of(&self.requests), REQUEST_BYTES);
        let Ok(Ok((message, _))) = timeout(REQUEST_PATIENCE, messages.only()).await else {
            return Err(invalid("the call must have one request"));
        };
        let Ok(request) = CheckRequest::decode(message.bytes) else {
            return Err(invalid("the request cannot be decoded"));
        };
        failpoints::hit(Point::HealthAnswering);
        match path {
            WATCH => self.watch(&request.service, peer, reply).await,
            LIST => send(reply, &self.list()).await,
            _ => match self.status(&request.service) {
                Some(status) => send(reply, &CheckResponse { status }).await,
                None => Err(failed(Code::NOT_FOUND, "the service is not known")),
            },
        }
    }

    fn status(&self, service: &str) -> Option<i32> {
        Some(*self.states.lock().get(service)?.borrow())
    }

    fn list(&self) -> ListResponse {
        let states = self.states.lock();
        let said = states.iter().map(|(service, state)| {
            let status = *state.borrow();
            (service.clone(), CheckResponse { status })
        });
        ListResponse {
            statuses: said.collect(),
        }
    }

    async fn watch(&self, service: &str, peer: &Peer, reply: &mut Reply) -> Result<(), End> {
        let Ok(_watch) = Share::one(&peer.watches) else {
            return Err(failed(Code::RESOURCE_EXHAUSTED, "too many watch already"));
        };
        let mut state = self.state(service);
        let mut stopped = self.stopped.subscribe();
        loop {
            let status = *state.borrow_and_update();
            send(reply, &CheckResponse { status }).await?;
            tokio::select! {
                biased;
                Ok(()) = state.changed() => {}
                _ = stopped.wait_for(|stopped| *stopped) => break,
                () = poll_fn(|context| reply.poll_reset(context)) => return Err(End::Gone),
            }
        }
        Err(failed(Code::UNAVAILABLE, "the server is stopping"))
    }

    /// The changing state of a service. That of an unknown service never changes.
    fn state(&self, service: &str) -> watch::Receiver<i32> {
        match self.states.lock().get(service) {
            Some(state) => state.subscribe(),
            None => watch::Sender::new(SERVICE_UNKNOWN).subscribe(),
        }
    }
}

async fn send(reply: &mut Reply, response: &impl prost::Message) -> Result<(), End> {
    let message = reply.backlog.hold(response.encode_to_vec().into());
    reply.message(message).await.map_err(|_| End::Gone)
}

fn invalid(message: &'static str) -> End {
    failed(Code::INVALID_ARGUMENT, message)
}

fn failed(code: Code, message: &'static str) -> End {
    End::Failed(Status::new(code, message))
}
