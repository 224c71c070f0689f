//! One call that is answered by a stream of messages, at the pace of its reader.
//!
//! A message is asked for when the connection has room for it and the reader has taken the one before; it counts until it
//! is written. So a stream holds one message, and a reader that pauses holds up nobody else.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use remora_supervision::caught_task;
use tokio::sync::{SemaphorePermit, oneshot};
use tokio::time::{sleep, sleep_until};

use super::admission::Slots;
use super::backlog::Backlog;
use super::call::Call;
use super::flow::Flow;
use super::handler::Handler;
use super::message::Messages;
use super::pool::{Outcome, Pull, Pulled};
use super::reply::Reply;
use super::shared::FAREWELL;
use super::status::End;
use super::subscription::{Subscription, Taken};

/// How often a stream looks whether its peer may have more.
const LOOK: Duration = Duration::from_millis(100);

impl<H: Handler> Call<H> {
    /// Opens the stream and carries it to its end.
    pub(super) async fn serve_stream(
        self,
        messages: Messages,
        mut reply: Reply,
        backlog: &Arc<Backlog>,
        slot: Slots,
    ) {
        let opened = caught_task(async {
            tokio::select! {
                biased;
                opened = self.open(messages, backlog, slot) => opened,
                () = poll_fn(|context| reply.poll_reset(context)) => Err(End::Gone),
                () = sleep_until(self.opening_deadline().into()) => Err(self.too_late()),
            }
        });
        let opened = opened.await.unwrap_or_else(|_| Err(self.broken()));
        let ended = match opened {
            Ok(flow) => {
                let carried = caught_task(self.carry(flow, &mut reply, backlog)).await;
                carried.unwrap_or_else(|_| Err(self.broken()))
            }
            Err(end) => Err(end),
        };
        match ended {
            Ok(()) => reply.end(),
            Err(End::Failed(status)) => reply.fail(&status),
            Err(End::Gone) => {}
        }
    }

    async fn open(
        &self,
        messages: Messages,
        backlog: &Arc<Backlog>,
        slot: Slots,
    ) -> Result<Flow, End> {
        let (outcome, _turn) = self.ask_only(messages, backlog, slot).await?;
        match outcome {
            Outcome::Stream(flow) => Ok(flow),
            Outcome::Failure(status) => Err(End::Failed(status)),
            Outcome::Reply { .. } | Outcome::Broken | Outcome::NoRoom(..) => Err(self.broken()),
        }
    }

    async fn carry(
        &self,
        flow: Flow,
        reply: &mut Reply,
        backlog: &Arc<Backlog>,
    ) -> Result<(), End> {
        let subscription = flow.subscription().cloned();
        let waits = subscription.is_some();
        let carried = async {
            match subscription {
                // Whatever ends this drops the flow, which leaves the subscription.
                Some(subscription) => {
                    let _flow = flow;
                    self.carry_pushed(&subscription, reply, backlog).await
                }
                None => self.carry_pulled(flow, reply, backlog).await,
            }
        };
        tokio::select! {
            biased;
            carried = carried => carried,
            () = sleep_until(self.deadline.into()) => Err(self.too_late()),
            () = self.until_it_must_end(waits) => Err(self.stopping()),
        }
    }

    async fn carry_pulled(
        &self,
        mut flow: Flow,
        reply: &mut Reply,
        backlog: &Arc<Backlog>,
    ) -> Result<(), End> {
        loop {
            let turn = unless_reset(reply, turn(backlog)).await?;
            let wait = self.wait();
            let slot = unless_reset(reply, self.shared.admission.wait()).await?;
            let (sender, receiver) = oneshot::channel();
            self.shared.pool.pull(Pull {
                flow,
                reply: sender,
                backlog: Arc::clone(backlog),
                slot,
                wait,
            });
            let pulled = unless_reset(reply, receiver).await?;
            let (returned, pulled) = pulled.map_err(|_| self.lost())?;
            flow = returned;
            drop(turn);
            let message = match pulled {
                Pulled::Message(message) => message,
                Pulled::NoRoom => continue,
                Pulled::End => return Ok(()),
                Pulled::Failure(status) => return Err(End::Failed(status)),
            };
            reply.at_leisure(message).await.map_err(|_| End::Gone)?;
        }
    }

    async fn carry_pushed(
        &self,
        subscription: &Subscription,
        reply: &mut Reply,
        backlog: &Arc<Backlog>,
    ) -> Result<(), End> {
        subscription.count_for(&self.peer.replies);
        reply.open().map_err(|_| End::Gone)?;
        loop {
            let message = match unless_reset(reply, subscription.take()).await? {
                Taken::Message(message, share) => {
                    let message = backlog.hold(message);
                    drop(share);
                    message
                }
                Taken::End => return Ok(()),
                Taken::Failure(status) => return Err(End::Failed(status)),
                Taken::Overrun => return Err(self.slow_reader()),
            };
            let sending = reply.at_leisure(message);
            tokio::select! {
                biased;
                sent = sending => sent.map_err(|_| End::Gone)?,
                () = self.until_stalled(subscription) => return Err(self.slow_reader()),
            }
        }
    }

    /// Waits until a message is left where it is for long, and more has come meanwhile than may wait.
    async fn until_stalled(&self, subscription: &Subscription) {
        loop {
            sleep(self.shared.options.stall_timeout).await;
            if subscription.is_overrun() {
                return;
            }
        }
    }

    fn slow_reader(&self) -> End {
        End::Failed(self.shared.refusals.slow_reader.clone())
    }

    /// Waits until the server stops: a stream that waits ends at once, another when the grace is nearly over.
    async fn until_it_must_end(&self, waits: bool) {
        let mut stopping = self.shared.stopping.subscribe();
        let grace = match stopping.wait_for(Option::is_some).await {
            Ok(grace) => grace.unwrap_or_default(),
            Err(_) => Duration::ZERO,
        };
        if !waits {
            sleep(grace.saturating_sub(FAREWELL)).await;
        }
    }
}

/// Waits for a turn, however long the peer has as much as it may: a stream is in no hurry.
async fn turn(backlog: &Backlog) -> SemaphorePermit<'_> {
    loop {
        match backlog.turn().await {
            Ok(turn) => return turn,
            Err(_) => sleep(LOOK).await,
        }
    }
}

/// What a future comes to, unless the peer ends the call before.
async fn unless_reset<T>(reply: &mut Reply, future: impl Future<Output = T>) -> Result<T, End> {
    tokio::select! {
        biased;
        () = poll_fn(|context| reply.poll_reset(context)) => Err(End::Gone),
        output = future => Ok(output),
    }
}
