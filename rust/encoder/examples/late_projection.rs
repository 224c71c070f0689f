//! Computes `projection.bin` of the crate `remora-late` from a model:
//! `cargo run --release --package remora-encoder --example late_projection -- MODEL_DIR OUT`.
//!
//! The words of the model's vocabulary that consist of the letters a to z are encoded one by one. The principal directions
//! of their last hidden states, at unit length and not centred, are the eigenvectors of the sum of their outer products:
//! found by Jacobi's rotations (Golub and Van Loan, Matrix Computations, section 8.5), the largest eigenvalues first.

use std::error::Error;
use std::path::Path;

use remora_encoder::{Encoder, Options};

/// Values of a hidden state.
const HIDDEN: usize = 384;
/// Directions that are kept.
const KEPT: usize = 128;
/// More sweeps than Jacobi's method has ever been seen to need at this size.
const SWEEPS: usize = 16;

type Matrix = Vec<Vec<f64>>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, model, out] = &arguments[..] else {
        return Err("late_projection MODEL_DIR OUT".into());
    };
    let model = Path::new(model);
    let mut products = outer_products(&Encoder::open(model, Options::default())?, &words(model)?);
    let vectors = eigenvectors(&mut products);
    let stored: Vec<u8> = vectors[..KEPT]
        .iter()
        .flatten()
        .flat_map(|value| ((value * f64::from(i16::MAX)).round() as i16).to_le_bytes())
        .collect();
    std::fs::write(out, stored)?;
    Ok(())
}

/// The vocabulary's words of letters, in alphabetical order.
fn words(model: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let json = std::fs::read(model.join("tokenizer.json"))?;
    let json: serde_json::Value = serde_json::from_slice(&json)?;
    let vocabulary = json["model"]["vocab"].as_object();
    let mut words: Vec<_> = vocabulary
        .ok_or("the tokenizer has no vocabulary")?
        .keys()
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .cloned()
        .collect();
    words.sort_unstable();
    Ok(words)
}

/// The sum of the outer products of all states of the words, the special pieces left out.
fn outer_products(encoder: &Encoder, words: &[String]) -> Matrix {
    let mut products = vec![vec![0.0; HIDDEN]; HIDDEN];
    for word in words {
        let vectors = encoder.token_vectors(word).vectors;
        let states = vectors.chunks_exact(HIDDEN);
        let count = states.len();
        for state in states.take(count - 1).skip(1) {
            let norm = state
                .iter()
                .map(|value| f64::from(*value).powi(2))
                .sum::<f64>()
                .sqrt();
            let state: Vec<f64> = state.iter().map(|value| f64::from(*value) / norm).collect();
            for (row, left) in products.iter_mut().zip(&state) {
                row.iter_mut()
                    .zip(&state)
                    .for_each(|(sum, right)| *sum += left * right);
            }
        }
    }
    products
}

/// The eigenvectors of a symmetric matrix, those of the largest eigenvalues first, each with its largest value positive.
fn eigenvectors(matrix: &mut Matrix) -> Matrix {
    let mut vectors: Matrix = (0..HIDDEN)
        .map(|row| {
            (0..HIDDEN)
                .map(|column| f64::from(u8::from(row == column)))
                .collect()
        })
        .collect();
    for _ in 0..SWEEPS {
        for p in 0..HIDDEN {
            for q in p + 1..HIDDEN {
                rotate(matrix, &mut vectors, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..HIDDEN).collect();
    order.sort_by(|a, b| matrix[*b][*b].total_cmp(&matrix[*a][*a]));
    order
        .iter()
        .map(|place| upright(&vectors[*place]))
        .collect()
}

/// Rotates the plane of `p` and `q` so that their common entry vanishes; rows of `vectors` are the eigenvectors.
fn rotate(matrix: &mut Matrix, vectors: &mut Matrix, p: usize, q: usize) {
    if matrix[p][q].abs() < f64::EPSILON * (matrix[p][p] * matrix[q][q]).abs().sqrt() {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    for row in matrix.iter_mut() {
        (row[p], row[q]) = (
            cosine * row[p] - sine * row[q],
            sine * row[p] + cosine * row[q],
        );
    }
    for rows in [matrix, vectors] {
        let (before, from_q) = rows.split_at_mut(q);
        for (left, right) in before[p].iter_mut().zip(&mut from_q[0]) {
            (*left, *right) = (
                cosine * *left - sine * *right,
                sine * *left + cosine * *right,
            );
        }
    }
}

fn upright(vector: &[f64]) -> Vec<f64> {
    let largest = vector
        .iter()
        .fold(0.0_f64, |a, b| if b.abs() > a.abs() { *b } else { a });
    vector
        .iter()
        .map(|value| value * largest.signum())
        .collect()
}
