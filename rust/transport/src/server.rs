//! The transport as a whole: how it runs and how it stops.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use remora_supervision::failpoints::{self, Point};
use remora_supervision::keep_task;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{interval, sleep};

use super::admission::Admission;
use super::connections::Connections;
use super::handler::{Handler, Larger, Method, Publication, Refusals};
use super::health::Health;
use super::held::Held;
use super::identities::Identities;
use super::listener::Listener;
use super::meter::{Calls, Meters};
use super::options::Options;
use super::page::Pages;
use super::peer::Budgets;
use super::pool::Pool;
use super::quick::Quick;
use super::shared::{FAREWELL, Shared};
use super::subscription::Subscription;
use super::tls::Tls;

/// How often a stop looks whether everything has ended.
const LOOK: Duration = Duration::from_millis(5);
/// How many tasks run before the network is looked at.
const EVENT_INTERVAL: u32 = 16;
/// How many pages are made at once.
const PAGE_THREADS: usize = 2;
/// How often a timer is due, whatever happens. To set one that is due before all others wakes the thread that waits for
/// the network, which it would be for each call, whose deadlines come before everything else.
const TICK: Duration = Duration::from_secs(1);

/// Serves calls of a handler's methods. One thread calls `run`, those of the pool call `work`.
pub struct Transport<H: Handler> {
    pub(super) shared: Arc<Shared<H>>,
}

impl<H: Handler> Transport<H> {
    pub fn new(
        options: Options,
        handler: H,
        methods: Vec<Method>,
        refusals: Refusals,
        publication: Arc<dyn Publication>,
        health: Arc<Health>,
    ) -> Self {
        let meters = Meters::new(methods.iter().map(|method| method.path.clone()));
        let numbered = methods.into_iter().enumerate();
        let methods = numbered.map(|(number, method)| (method.path, (number, method.answering)));
        let budgets = Arc::new(Budgets::new(&options));
        let shared = Shared {
            methods: methods.collect(),
            larger: HashMap::new(),
            handler,
            refusals,
            meters,
            pages: None,
            tls: None,
            identities: Identities::new(),
            health,
            held: Held::new(publication),
            quick: Quick::new(),
            pool: Pool::new(),
            admission: Admission::new(options.room, options.refusal_interval),
            connections: Connections::new(options.clone(), Arc::clone(&budgets)),
            budgets,
            stopping: watch::Sender::new(None),
            options,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The same, receiving longer messages for the methods of some paths. To be called before anything else is.
    pub fn with_larger(mut self, larger: impl IntoIterator<Item = (String, Larger)>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            let numbered = larger.into_iter().filter_map(|(path, larger)| {
                let (number, _) = shared.methods.get(&path)?;
                Some((*number, larger))
            });
            shared.larger = numbered.collect();
        }
        self
    }

    /// The same, serving pages over HTTP/1.1 on its TCP ports as well. To be called before anything else is.
    pub fn with_pages(mut self, pages: Arc<dyn Pages>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.pages = Some(pages);
        }
        self
    }

    /// The same, speaking TLS on its TCP ports, which serve no pages then. To be called before anything else is.
    pub fn with_tls(mut self, tls: Arc<Tls>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.tls = Some(tls);
        }
        self
    }

    /// Has every caller told anew, because what tells them has changed.
    pub fn forget_callers(&self) {
        self.shared.identities.forget();
    }

    /// The calls of each method that was called, those of no method with an empty path. Health is not counted.
    pub fn calls(&self) -> Vec<Calls> {
        self.shared.meters.calls()
    }

    /// Serves connections of the listeners in the calling thread until it is stopped. Where it fails or panics it may be
    /// called again: the listeners stay, and so do the threads that call `work`.
    pub fn run(&self, listeners: &[Arc<Listener>]) -> io::Result<()> {
        let mut builder = Builder::new_current_thread();
        let builder = builder
            .enable_io()
            .enable_time()
            .max_blocking_threads(PAGE_THREADS);
        let runtime = builder.event_interval(EVENT_INTERVAL).build()?;
        runtime.block_on(self.serve(listeners))?;
        drop(runtime);
        self.shared.pool.close();
        Ok(())
    }

    async fn serve(&self, listeners: &[Arc<Listener>]) -> io::Result<()> {
        let shared = &self.shared;
        let held = Arc::clone(&shared.held);
        tokio::spawn(async move { keep_task(|| held.run()).await });
        let quick = Arc::clone(shared);
        tokio::spawn(async move {
            keep_task(|| quick.quick.run(&quick.handler, &quick.pool)).await;
        });
        tokio::spawn(keep_task(tick));
        let stalled = Arc::clone(shared);
        tokio::spawn(async move { keep_task(|| evict_stalled(&stalled)).await });
        let mut accepting = Vec::new();
        for listener in listeners {
            let (listener, shared) = (listener.open()?, Arc::clone(shared));
            accepting.push(tokio::spawn(async move {
                keep_task(|| listener.run(&shared)).await;
            }));
        }
        let grace = self.until_stopped().await;
        for task in accepting {
            task.abort();
        }
        self.drain(grace).await;
        Ok(())
    }

    async fn until_stopped(&self) -> Duration {
        let mut stopping = self.shared.stopping.subscribe();
        let mut looks = interval(TICK);
        while stopping.borrow_and_update().is_none() {
            failpoints::hit(Point::TransportThread);
            tokio::select! {
                _ = looks.tick() => {}
                _ = stopping.changed() => {}
            }
        }
        match stopping.wait_for(Option::is_some).await {
            Ok(grace) => grace.unwrap_or_default(),
            Err(_) => Duration::ZERO,
        }
    }

    /// Waits until the calls under way have ended and what answers them is sent, at most so long. Connections without
    /// calls get FAREWELL from the end of the last call.
    async fn drain(&self, grace: Duration) {
        let (began, shared) = (Instant::now(), &self.shared);
        let mut idle: Option<Instant> = None;
        while shared.connections.taken() > 0 {
            idle = match shared.budgets.calls.held() {
                0 => idle.or_else(|| Some(Instant::now())),
                _ => None,
            };
            if began.elapsed() >= grace || idle.is_some_and(|since| since.elapsed() >= FAREWELL) {
                return;
            }
            sleep(LOOK).await;
        }
    }

    /// Has `run` take no more calls, give those under way so long, and return.
    pub fn stop(&self, grace: Duration) {
        self.shared.health.stop();
        self.shared.stopping.send_replace(Some(grace));
    }

    /// Has the threads that call `work` return, as the end of `run` does.
    pub fn close(&self) {
        self.shared.pool.close();
    }

    /// Answers calls in the calling thread until the transport has stopped.
    pub fn work(&self) {
        let shared = &self.shared;
        let limit = shared.options.receive_limit_bytes;
        shared.pool.work(&shared.handler, limit, &shared.refusals);
    }

    /// A stream that waits, with nothing to read yet.
    pub fn subscription(&self) -> Subscription {
        Subscription::new(&self.shared.budgets.replies)
    }
}

/// Looks for good, several times while a connection may stall.
async fn evict_stalled<H: Handler>(shared: &Shared<H>) {
    let mut looks = interval(shared.options.full_stall_timeout / 4);
    loop {
        looks.tick().await;
        shared.connections.evict_stalled();
    }
}

async fn tick() {
    let mut ticks = interval(TICK);
    loop {
        ticks.tick().await;
        failpoints::hit(Point::TickTask);
    }
}
