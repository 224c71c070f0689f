//! Counts calls: how many of each method ended with which code, and how long they took.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::status::Code;

/// The upper bounds of the buckets that durations are counted in; above them is one more.
pub const BOUNDS: [Duration; 14] = [
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(10),
];
/// gRPC's codes are 0 to 16.
const CODES: usize = 17;
const CANCELLED: Code = Code(1);

/// The calls of one method so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calls {
    /// `/package.Service/Method`; empty for calls of no method.
    pub path: String,
    /// How many ended with each code, by its number. A caller that went away counts as CANCELLED.
    pub ended: Vec<u64>,
    /// How many took at most each of `BOUNDS`, and longer, each counted in one bucket.
    pub buckets: Vec<u64>,
    /// What all of them took together.
    pub taken: Duration,
    /// How many are under way.
    pub open: usize,
    /// How many of these wait for a slot or for a thread.
    pub waiting: usize,
}

/// The counts of all methods. The last one's are of calls of no method.
pub(super) struct Meters(Vec<Meter>);

struct Meter {
    path: String,
    ended: [AtomicU64; CODES],
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
    open: AtomicUsize,
    waiting: AtomicUsize,
}

impl Meter {
    fn new(path: String) -> Self {
        Self {
            path,
            ended: Default::default(),
            buckets: Default::default(),
            micros: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    fn count(&self, code: Code, took: Duration) {
        if let Some(ended) = self.ended.get(usize::from(code.0)) {
            ended.fetch_add(1, Ordering::Relaxed);
        }
        let bucket = BOUNDS.partition_point(|bound| *bound < took);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn calls(&self) -> Calls {
        let counts = |counted: &[AtomicU64]| {
            let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
            counted.iter().map(read).collect()
        };
        Calls {
            path: self.path.clone(),
            ended: counts(&self.ended),
            buckets: counts(&self.buckets),
            taken: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
            open: self.open.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
}

impl Meters {
    /// `paths` in the order of the methods' numbers.
    pub(super) fn new(paths: impl Iterator<Item = String>) -> Arc<Self> {
        let named = paths.chain([String::new()]);
        Arc::new(Self(named.map(Meter::new).collect()))
    }

    /// Counts a call that was refused before anything was done; `None`: of no method.
    pub(super) fn refused(&self, method: Option<usize>, code: Code) {
        let meter = method
            .and_then(|method| self.0.get(method))
            .or(self.0.last());
        if let Some(meter) = meter {
            meter.count(code, Duration::ZERO);
        }
    }

    /// Counts a call of a method from now until what is returned is dropped.
    pub(super) fn begin(self: &Arc<Self>, method: usize) -> Metered {
        self.0[method].open.fetch_add(1, Ordering::Relaxed);
        Metered {
            meters: Arc::clone(self),
            method,
            began: Instant::now(),
            code: CANCELLED,
        }
    }

    /// Counts a call of a method as waiting, from now until what is returned ends or is dropped.
    pub(super) fn wait(self: &Arc<Self>, method: usize) -> Wait {
        let mut wait = Wait {
            meters: Arc::clone(self),
            method,
            is_counted: false,
        };
        wait.begin();
        wait
    }

    /// The counts of all methods that were called.
    pub(super) fn calls(&self) -> Vec<Calls> {
        let all = self.0.iter().map(Meter::calls);
        all.filter(|calls| calls.open > 0 || calls.ended.iter().any(|count| *count > 0))
            .collect()
    }
}

/// A call under way.
pub(super) struct Metered {
    meters: Arc<Meters>,
    method: usize,
    began: Instant,
    code: Code,
}

impl Metered {
    /// Sets how it ends. Without this, the caller went away.
    pub(super) fn ends(&mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for Metered {
    fn drop(&mut self) {
        let meter = &self.meters.0[self.method];
        meter.open.fetch_sub(1, Ordering::Relaxed);
        meter.count(self.code, self.began.elapsed());
    }
}

/// A call that waits for a slot or for a thread.
pub(super) struct Wait {
    meters: Arc<Meters>,
    method: usize,
    is_counted: bool,
}

impl Wait {
    /// It waits again.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.waiting().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Its turn has come.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_counted) {
            self.waiting().fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn waiting(&self) -> &AtomicUsize {
        &self.meters.0[self.method].waiting
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.end();
    }
}
