//! Prints the median time of a question's cosines to all vectors by number of vectors and instruction set:
//! `cargo run --release --package remora-index --example scan [dimensions]`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use remora_kernels::{Kernels, Level};

use remora_index::{Query, Segment, VectorError};

const SIZES: [u32; 3] = [1_000, 10_000, 100_000];
const BUDGET: Duration = Duration::from_millis(400);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dim = std::env::args().nth(1).map_or(Ok(384), |dim| dim.parse())?;
    println!("{:>8} {:>8} {:>10} {:>8}", "vectors", "level", "ms", "GB/s");
    for size in SIZES {
        // The specification is no engine: it is left out where it would only take time.
        let levels = Kernels::available()
            .filter(|kernels| kernels.level() > Level::Scalar || size == SIZES[0]);
        for kernels in levels {
            let milliseconds = measure(&filled(dim, size, kernels)?)?;
            let gigabytes = f64::from(size) * (dim * size_of::<f32>()) as f64 / 1e9;
            let rate = gigabytes / (milliseconds / 1e3);
            println!(
                "{size:>8} {:>8} {milliseconds:>10.4} {rate:>8.1}",
                kernels.level()
            );
        }
    }
    Ok(())
}

fn filled(dim: usize, size: u32, kernels: &'static Kernels) -> Result<Segment, VectorError> {
    let mut segment = Segment::new(dim, kernels);
    for slot in 0..size {
        segment.upsert(slot, &vector(dim, slot))?;
    }
    Ok(segment)
}

/// The median over as many searches as fit the budget, in milliseconds.
fn measure(segment: &Segment) -> Result<f64, VectorError> {
    let query = Query::new(&vector(segment.dim(), u32::MAX))?;
    let mut scores = vec![0.0; segment.len()];
    let started = Instant::now();
    let mut times = Vec::new();
    while started.elapsed() < BUDGET {
        let start = Instant::now();
        segment.scores(black_box(&query), black_box(&mut scores));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64() * 1e3)
}

/// A vector without a pattern, in -1..1, from a multiplicative hash of its seed and the place.
fn vector(dim: usize, seed: u32) -> Vec<f32> {
    let value = |place: usize| {
        let mixed = (u64::from(seed) << 32 | place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / (1 << 23) as f32
            - 1.0
    };
    (0..dim).map(value).collect()
}
