//! Digests of contents.

use blake2b_simd::Params;
use blake2b_simd::many::{HashManyJob, hash_many};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

const DIGEST_BYTES: usize = size_of::<u64>();

/// See `_native.pyi`.
#[pyfunction]
#[expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 makes the list of the arguments"
)]
fn digests(contents: Vec<PyBackedBytes>) -> Vec<u64> {
    let mut params = Params::new();
    params.hash_length(DIGEST_BYTES);
    let mut jobs: Vec<_> = contents
        .iter()
        .map(|content| HashManyJob::new(&params, content))
        .collect();
    hash_many(&mut jobs);
    jobs.iter()
        .map(|job| little_endian(job.to_hash().as_bytes()))
        .collect()
}

fn little_endian(digest: &[u8]) -> u64 {
    digest
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(digests, module)?)
}
