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
use remora_supervision::failpoints::{self, Point};
use remora_supervision::{caught, keep_thread};

use super::forward::Activations;
use super::{Encoder, Made};

/// How often a caller looks whether the thread was closed.
const LOOK: Duration = Duration::from_millis(50);

/// Texts to encode, and where the result goes.
struct Job {
    texts: Vec<String>,
    with_pieces: bool,
    made: Sender<Result<Made, Unmade>>,
}

/// Why texts were not encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unmade {
    /// The thread was closed before it was done.
    #[error("the encoder's thread was closed")]
    Closed,
    /// The encoder panicked with one of these texts; the thread goes on with others.
    #[error("the encoder panicked with these texts")]
    Panicked,
}

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
        Self::start_with(move |job, activations, goes_on| {
            let texts = job.texts.iter().map(String::as_str).collect::<Vec<_>>();
            encoder.embed(&texts, job.with_pieces, activations, goes_on)
        })
    }

    fn start_with(encode: impl Encode) -> std::io::Result<Self> {
        let (jobs, taken) = channel();
        let (started, id) = channel();
        let closed = Arc::new(AtomicBool::new(false));
        let worker = Worker {
            encode,
            closed: Arc::clone(&closed),
        };
        thread::Builder::new()
            .name("encoder".to_owned())
            .spawn(move || {
                let _ = started.send(thread_id());
                keep_thread(|| worker.run(&taken));
            })?;
        Ok(Self {
            jobs: Mutex::new(jobs),
            closed,
            thread_id: id.recv().unwrap_or_default(),
        })
    }

    /// The system's number of the thread, to set its priority by; 0 if it has none.
    pub fn thread_id(&self) -> i32 {
        self.thread_id
    }

    /// What [`Encoder::encode`], or with pieces [`Encoder::encode_with_pieces`], gives.
    ///
    /// # Errors
    /// Where the thread is closed, or the encoder panics with one of the texts.
    pub fn encode(&self, texts: Vec<String>, with_pieces: bool) -> Result<Made, Unmade> {
        let (made, result) = channel();
        let job = Job {
            texts,
            with_pieces,
            made,
        };
        self.jobs.lock().send(job).map_err(|_| Unmade::Closed)?;
        self.wait(&result)
    }

    fn wait(&self, result: &Receiver<Result<Made, Unmade>>) -> Result<Made, Unmade> {
        loop {
            match result.recv_timeout(LOOK) {
                Ok(made) => return made,
                Err(RecvTimeoutError::Timeout) if !self.is_closed() => {}
                Err(_) if self.is_closed() => return Err(Unmade::Closed),
                // The thread begins anew, and does not know of this job.
                Err(_) => return Err(Unmade::Panicked),
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

/// Encodes a job's texts for as long as it is told to go on.
trait Encode: Fn(&Job, &mut Activations, &dyn Fn() -> bool) -> Made + Send + 'static {}

impl<F> Encode for F where F: Fn(&Job, &mut Activations, &dyn Fn() -> bool) -> Made + Send + 'static {}

/// What the thread has.
struct Worker<E> {
    encode: E,
    closed: Arc<AtomicBool>,
}

impl<E: Encode> Worker<E> {
    fn run(&self, jobs: &Receiver<Job>) {
        let mut activations = Activations::new();
        while let Ok(job) = jobs.recv() {
            failpoints::hit(Point::EncoderThread);
            let made = self.made(&job, &mut activations);
            if !self.goes_on() {
                return;
            }
            // Nobody may wait any more.
            let _ = job.made.send(made);
        }
    }

    /// What the job's texts become. A panic leaves nothing behind: the activations that it came upon are given up.
    fn made(&self, job: &Job, activations: &mut Activations) -> Result<Made, Unmade> {
        let encode = || {
            failpoints::hit(Point::EncoderJob);
            (self.encode)(job, activations, &|| self.goes_on())
        };
        caught(encode).map_err(|_| {
            *activations = Activations::new();
            Unmade::Panicked
        })
    }

    fn goes_on(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes of each text its length, and panics with the empty one.
    fn lengths(job: &Job, _: &mut Activations, _: &dyn Fn() -> bool) -> Made {
        let length = |text: &String| {
            assert!(!text.is_empty(), "nothing to encode");
            text.len() as f32
        };
        Made {
            values: job.texts.iter().map(length).collect(),
            pieces: Vec::new(),
        }
    }

    fn encode(encoder: &BackgroundEncoder, texts: &[&str]) -> Result<Vec<f32>, Unmade> {
        let texts = texts.iter().map(|&text| text.to_owned()).collect();
        encoder.encode(texts, false).map(|made| made.values)
    }

    #[test]
    fn a_panic_fails_its_texts_and_the_thread_goes_on() {
        let encoder = BackgroundEncoder::start_with(lengths).expect("a thread");
        assert_eq!(encode(&encoder, &["a", "bc"]), Ok(vec![1.0, 2.0]));
        for _ in 0..3 {
            assert_eq!(encode(&encoder, &["a", ""]), Err(Unmade::Panicked));
            assert_eq!(encode(&encoder, &["bc"]), Ok(vec![2.0]));
        }
    }

    #[test]
    fn who_waits_for_a_closed_thread_is_told() {
        let encoder = BackgroundEncoder::start_with(lengths).expect("a thread");
        encoder.close();
        assert_eq!(encode(&encoder, &["a"]), Err(Unmade::Closed));
    }
}
