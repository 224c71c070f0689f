//! A thread of its own that encodes for callers, so that its priority is not theirs.
//!
//! A thread that is to give way to others must hold nothing that they need: not the interpreter's lock, nor the encoder's
//! idle activations. The caller waits without either.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::forward::Activations;
use super::{Encoder, Made};

/// How often a caller looks whether the thread was closed.
const LOOK: Duration = Duration::from_millis(50);

/// Texts to encode, and where the result goes.
struct Job {
    texts: Vec<String>,
    with_pieces: bool,
    made: Sender<Made>,
}

/// The thread was closed before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the encoder's thread was closed")]
pub struct Closed;

/// Encodes in a thread of its own, one call after the other.
#[derive(Debug)]
pub struct BackgroundEncoder {
    jobs: Mutex<Sender<Job>>,
    closed: Arc<AtomicBool>,
    thread_id: i32,
}

impl BackgroundEncoder {
    /// Starts the thread.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(encoder: Arc<Encoder>) -> std::io::Result<Self> {
        let (jobs, taken) = channel();
        let (started, id) = channel();
        let closed = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            encoder,
            closed: Arc::clone(&closed),
        };
        thread::Builder::new()
            .name("encoder".to_owned())
            .spawn(move || {
                let _ = started.send(thread_id());
                worker.run(&taken);
            })?;
        Ok(Self {
            jobs: Mutex::new(jobs),
            closed,
            thread_id: id.recv().unwrap_or_default(),
        })
    }

    /// The system's number of the thread, to set its priority by; 0 where it has none.
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// What [`Encoder::encode`], or with pieces [`Encoder::encode_with_pieces`], gives.
    ///
    /// # Errors
    /// Where the thread is closed.
    pub fn encode(&self, texts: Vec<String>, with_pieces: bool) -> Result<Made, Closed> {
        let (made, result) = channel();
        let job = Job {
            texts,
            with_pieces,
            made,
        };
        self.jobs.lock().send(job).map_err(|_| Closed)?;
        self.wait(&result)
    }

    fn wait(&self, result: &Receiver<Made>) -> Result<Made, Closed> {
        loop {
            match result.recv_timeout(LOOK) {
                Ok(made) => return Ok(made),
                Err(RecvTimeoutError::Timeout) if !self.is_closed() => {}
                Err(_) => return Err(Closed),
            }
        }
    }

    /// Ends the thread after the pass at hand; those who wait for it are told.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        // A thread without work sees it by the end of its jobs.
        *self.jobs.lock() = channel().0;
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }
}

impl Drop for BackgroundEncoder {
    fn drop(&mut self) {
        self.close();
    }
}

/// What the thread has.
struct Worker {
    encoder: Arc<Encoder>,
    closed: Arc<AtomicBool>,
}

impl Worker {
    fn run(&self, jobs: &Receiver<Job>) {
        let mut activations = Activations::new();
        while let Ok(job) = jobs.recv() {
            let texts: Vec<_> = job.texts.iter().map(String::as_str).collect();
            let goes_on = || !self.closed.load(Ordering::Relaxed);
            let made = self
                .encoder
                .embed(&texts, job.with_pieces, &mut activations, goes_on);
            if !goes_on() {
                return;
            }
            // Nobody may wait any more.
            let _ = job.made.send(made);
        }
    }
}

#[cfg(target_os = "linux")]
fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

#[cfg(not(target_os = "linux"))]
fn thread_id() -> i32 {
    0
}
