//! Durable submits a second and their median latency at 1, 8 and 32 threads, beside raw write + fdatasync on the same disk.
//!
//! `cargo run --release --package remora-journal --example journal_rate [directory]`; without a directory, a temporary one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use remora_journal::{Journal, JournalError, Options};

const PAYLOAD_BYTES: usize = 500;
const SLICE: Duration = Duration::from_secs(1);
const THREADS: [usize; 3] = [1, 8, 32];
const ROUNDS: usize = 3;

#[derive(Debug, thiserror::Error)]
enum RateError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Journal(#[from] JournalError),
}

fn main() -> Result<(), RateError> {
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args()
        .nth(1)
        .map_or(temporary.path().to_owned(), Into::into);
    println!(
        "{:<24} {:>10} {:>10} {:>14}",
        "500-byte payloads", "ops/s", "p50 us", "records/batch"
    );
    for round in 0..ROUNDS {
        report("raw write + fdatasync", raw(&directory)?, 1.0);
        for threads in THREADS {
            let path = directory.join(format!("journal-{round}-{threads}"));
            let (latencies, per_batch) = submit_from(threads, &path)?;
            report(&format!("journal, {threads} threads"), latencies, per_batch);
        }
    }
    Ok(())
}

fn report(what: &str, mut latencies: Vec<Duration>, per_batch: f64) {
    latencies.sort_unstable();
    let rate = latencies.len() as f64 / SLICE.as_secs_f64();
    let median = latencies[latencies.len() / 2].as_micros();
    println!("{what:<24} {rate:>10.0} {median:>10} {per_batch:>14.1}");
}

/// Appends to a preallocated file, each write followed by its own sync.
fn raw(directory: &Path) -> io::Result<Vec<Duration>> {
    let file = File::create(directory.join("raw"))?;
    file.write_all_at(&vec![0; 32 << 20], 0)?;
    file.sync_all()?;
    let mut offset = 0;
    timed(|| {
        file.write_all_at(&[7; PAYLOAD_BYTES], offset)?;
        offset += PAYLOAD_BYTES as u64;
        file.sync_data()
    })
}

fn submit_from(threads: usize, directory: &Path) -> Result<(Vec<Duration>, f64), JournalError> {
    let (journal, _) = Journal::open(directory, Options::default())?;
    let submit = || {
        let revision = journal.submit_with(vec![7; PAYLOAD_BYTES], |_| ())?;
        journal.wait(revision, None)
    };
    let latencies = thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| timed(submit)))
            .collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or(Ok(Vec::new())))
            .collect::<Vec<_>>()
    });
    let done = journal.statistics();
    Ok((
        latencies.into_iter().flatten().collect(),
        done.records as f64 / done.batches.max(1) as f64,
    ))
}

/// How long each call took, calling for a slice of time.
fn timed<T, E>(mut call: impl FnMut() -> Result<T, E>) -> Result<Vec<Duration>, E> {
    let begun = Instant::now();
    let mut latencies = Vec::new();
    while begun.elapsed() < SLICE {
        let start = Instant::now();
        call()?;
        latencies.push(start.elapsed());
    }
    Ok(latencies)
}
