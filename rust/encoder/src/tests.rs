//! Files that are not the model, and how sequences are joined.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use std::fs::{self, File};
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::chunks::{CHUNK, by_length, runs};
use super::kernels::{Dense, Panels, QuantizedPanels};
use super::tensors::Tensors;
use super::*;

/// Word pieces of the models made here.
const WORDS: usize = 6;

/// A file of one tensor, `t`, that holds 1 to 6 as a matrix of 2 x 3.
fn small_file() -> Vec<u8> {
    let header = json!({"__metadata__": {"format": "pt"}, "t": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}});
    let values = (1..=6).flat_map(|value| (value as f32).to_le_bytes());
    with_header(&header.to_string(), &values.collect::<Vec<_>>())
}

fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes(),
        header.as_bytes(),
        data,
    ]
    .concat()
}

#[test]
fn a_tensor_is_read_by_name_and_shape() {
    let file = small_file();
    let tensors = Tensors::read(&file).unwrap();
    assert_eq!(
        tensors.floats("t", &[2, 3]).unwrap(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    assert_eq!(tensors.rows("t").unwrap(), 2);
}

#[test]
fn a_tensor_of_another_name_or_shape_is_refused() {
    let file = small_file();
    let tensors = Tensors::read(&file).unwrap();
    for error in [
        tensors.floats("u", &[2, 3]),
        tensors.floats("t", &[3, 2]),
        tensors.floats("t", &[6]),
    ] {
        assert!(matches!(error, Err(EncoderError::Architecture(_))));
    }
}

#[test]
fn a_tensor_of_another_type_or_place_is_refused() {
    for (dtype, shape, offsets) in [
        ("F16", json!([2, 3]), json!([0, 24])),
        ("F32", json!([2, 3]), json!([0, 20])),
        ("F32", json!([2, 3]), json!([4, 28])),
        ("F32", json!([2, 3]), json!([24, 0])),
        ("F32", json!([2, 3]), json!([0, u64::MAX])),
        ("F32", json!([2, 3]), json!([u64::MAX, u64::MAX])),
        ("F32", json!([2, 3]), json!([0, -24])),
        ("F32", json!([2, 3]), json!([0])),
        ("F32", json!("2x3"), json!([0, 24])),
    ] {
        let header = json!({"t": {"dtype": dtype, "shape": shape, "data_offsets": offsets}});
        let file = with_header(&header.to_string(), &[0; 24]);
        let read = Tensors::read(&file).and_then(|tensors| tensors.floats("t", &[2, 3]));
        assert!(read.is_err(), "{header}");
    }
}

#[test]
fn a_shape_that_overflows_is_refused() {
    let huge = usize::MAX / 2;
    let header = json!({"t": {"dtype": "F32", "shape": [huge, huge], "data_offsets": [0, 24]}});
    let file = with_header(&header.to_string(), &[0; 24]);
    let read = Tensors::read(&file).and_then(|tensors| tensors.floats("t", &[huge, huge]));
    assert!(read.is_err());
}

#[test]
fn values_that_are_not_finite_are_refused() {
    let mut file = small_file();
    let last = file.len() - 4;
    file[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(Tensors::read(&file).unwrap().floats("t", &[2, 3]).is_err());
}

#[test]
fn a_header_longer_than_the_file_is_refused() {
    for length in [100, u64::MAX, u64::MAX - 7] {
        let file = [&length.to_le_bytes(), &b"{}"[..]].concat();
        assert!(matches!(
            Tensors::read(&file),
            Err(EncoderError::Malformed(_))
        ));
    }
}

proptest! {
    #[test]
    fn every_truncation_of_a_file_is_refused(cut in 0usize..1000) {
        let file = small_file();
        let file = &file[..cut % file.len()];
        let read = Tensors::read(file).and_then(|tensors| tensors.floats("t", &[2, 3]));
        prop_assert!(read.is_err());
    }

    #[test]
    fn a_changed_byte_is_an_error_or_another_value(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut file = small_file();
        let at = at.index(file.len());
        file[at] = byte;
        if let Ok(values) = Tensors::read(&file).and_then(|tensors| tensors.floats("t", &[2, 3])) {
            prop_assert!(values.len() == 6 && values.iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn any_bytes_are_a_file_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = Tensors::read(&bytes).and_then(|tensors| tensors.floats("t", &[2, 3]));
    }

    #[test]
    fn runs_cover_every_sequence_once_within_their_limit(lengths in prop::collection::vec(2usize..=MAX_TOKENS, 0..80)) {
        let order = by_length(&lengths);
        let runs = runs(&order, &lengths);
        prop_assert!(order.is_sorted_by_key(|&index| lengths[index]));
        let mut next = 0;
        for run in runs {
            prop_assert_eq!(run.start, next);
            let tokens = order[run.clone()].iter().map(|&index| lengths[index]).sum::<usize>();
            prop_assert!(run.len() == 1 || (run.len() > 1 && tokens <= CHUNK));
            next = run.end;
        }
        prop_assert_eq!(next, lengths.len());
    }

    #[test]
    fn packing_moves_every_weight_to_its_panel(depth in 1usize..5, panels in 1usize..4) {
        let (inputs, outputs) = (depth * 16, panels * 32);
        let weights = (0..inputs * outputs).map(|weight| weight as f32).collect::<Vec<_>>();
        let dense = Dense::new(inputs, weights.clone(), vec![0.0; outputs]);
        let packed = Panels::pack(dense, &mut Buffer::zeroed(weights.len()));
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            for (input, &weight) in row.iter().enumerate() {
                prop_assert_eq!(packed.panel(output / 32)[input * 32 + output % 32], weight);
            }
        }
    }

    #[test]
    fn int8_codes_are_within_half_a_step_of_their_weights(
        weights in prop::collection::vec(-3f32..3.0, 32 * 16),
    ) {
        let dense = Dense::new(16, weights.clone(), vec![0.0; 32]);
        let packed = QuantizedPanels::pack(dense, &mut Buffer::zeroed(weights.len()));
        for (output, row) in weights.chunks_exact(16).enumerate() {
            let scale = packed.scales()[output];
            for (input, &weight) in row.iter().enumerate() {
                let code = packed.panel(0)[(input / 4 * 32 + output) * 4 + input % 4];
                let value = (f32::from(code) - 128.0) * scale;
                prop_assert!((value - weight).abs() <= 0.5001 * scale);
            }
        }
    }
}

/// The tensors of the architecture, by name, with their shapes.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut tensors = Vec::new();
    let mut add = |name: &str, shape: &[usize]| tensors.push((name.to_owned(), shape.to_vec()));
    add("embeddings.word_embeddings.weight", &[WORDS, HIDDEN]);
    add("embeddings.position_embeddings.weight", &[512, HIDDEN]);
    add("embeddings.token_type_embeddings.weight", &[2, HIDDEN]);
    add("embeddings.LayerNorm.weight", &[HIDDEN]);
    add("embeddings.LayerNorm.bias", &[HIDDEN]);
    for layer in 0..LAYERS {
        for (part, inputs, outputs) in [
            ("attention.self.query", HIDDEN, HIDDEN),
            ("attention.self.key", HIDDEN, HIDDEN),
            ("attention.self.value", HIDDEN, HIDDEN),
            ("attention.output.dense", HIDDEN, HIDDEN),
            ("intermediate.dense", HIDDEN, INTERMEDIATE),
            ("output.dense", INTERMEDIATE, HIDDEN),
        ] {
            add(
                &format!("encoder.layer.{layer}.{part}.weight"),
                &[outputs, inputs],
            );
            add(&format!("encoder.layer.{layer}.{part}.bias"), &[outputs]);
        }
        for part in ["attention.output.LayerNorm", "output.LayerNorm"] {
            add(&format!("encoder.layer.{layer}.{part}.weight"), &[HIDDEN]);
            add(&format!("encoder.layer.{layer}.{part}.bias"), &[HIDDEN]);
        }
    }
    tensors
}

/// Writes a model whose weights are all zero, in a file with a hole instead of them.
fn write_zero_model(directory: &Path, tensors: &[(String, Vec<usize>)]) {
    let (mut header, mut end) = (Map::new(), 0);
    for (name, shape) in tensors {
        let begin = end;
        end += 4 * shape.iter().product::<usize>();
        header.insert(
            name.clone(),
            json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}),
        );
    }
    let header = with_header(&Value::from(header).to_string(), &[]);
    let path = directory.join("model.safetensors");
    fs::write(&path, &header).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len((header.len() + end) as u64)
        .unwrap();
}

fn write_tokenizer(directory: &Path, pieces: &[&str]) {
    let vocabulary = pieces
        .iter()
        .enumerate()
        .map(|(id, &piece)| (piece.to_owned(), json!(id)));
    let definition = json!({
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary.collect::<Map<_, _>>(),
        },
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
    });
    fs::write(directory.join("tokenizer.json"), definition.to_string()).unwrap();
}

const PIECES: [&str; WORDS] = ["[UNK]", "[CLS]", "[SEP]", "a", "b", "c"];

fn zero_model() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    write_zero_model(directory.path(), &tensors());
    write_tokenizer(directory.path(), &PIECES);
    directory
}

fn open(directory: &TempDir) -> Result<Encoder, EncoderError> {
    Encoder::open(directory.path(), Options::default())
}

#[test]
fn a_model_of_zeros_gives_finite_embeddings() {
    let encoder = open(&zero_model()).unwrap();
    assert_eq!(encoder.encode(&["", "a"]), [0.0; 2 * HIDDEN]);
    assert!(encoder.encode(&[]).is_empty());
    let tokens = encoder.token_vectors("a");
    assert_eq!(tokens.ids, [1, 3, 2]);
    assert_eq!(tokens.vectors.len(), 3 * HIDDEN);
}

#[test]
fn a_missing_file_is_named() {
    for name in ["model.safetensors", "tokenizer.json"] {
        let directory = zero_model();
        fs::remove_file(directory.path().join(name)).unwrap();
        let error = open(&directory).unwrap_err();
        assert!(
            matches!(&error, EncoderError::File { path, .. } if path.ends_with(name)),
            "{error}"
        );
    }
}

#[test]
fn an_empty_or_truncated_model_is_refused() {
    let directory = zero_model();
    let file = File::options()
        .write(true)
        .open(directory.path().join("model.safetensors"))
        .unwrap();
    for length in [1_000_000, 100, 7, 0] {
        file.set_len(length).unwrap();
        assert!(open(&directory).is_err(), "{length} bytes");
    }
}

#[test]
fn a_model_without_one_of_its_tensors_is_refused() {
    let all = tensors();
    let directory = zero_model();
    for missing in [0, 1, 3, all.len() - 1] {
        let mut some = all.clone();
        some.remove(missing);
        write_zero_model(directory.path(), &some);
        assert!(
            matches!(open(&directory), Err(EncoderError::Architecture(_))),
            "{}",
            all[missing].0
        );
    }
}

#[test]
fn a_model_of_other_dimensions_is_refused() {
    let directory = zero_model();
    let wider = tensors()
        .into_iter()
        .map(|(name, shape)| (name, shape.iter().map(|n| n * 2).collect()));
    write_zero_model(directory.path(), &wider.collect::<Vec<_>>());
    assert!(matches!(
        open(&directory),
        Err(EncoderError::Architecture(_))
    ));
}

#[test]
fn a_tokenizer_with_more_words_than_the_model_is_refused() {
    let directory = zero_model();
    write_tokenizer(directory.path(), &[&PIECES[..], &["d"]].concat());
    assert!(matches!(
        open(&directory),
        Err(EncoderError::Architecture(_))
    ));
}

#[test]
fn the_configuration_of_another_model_is_refused() {
    let directory = zero_model();
    let right = json!({
        "num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 12, "intermediate_size": 1536, "hidden_act": "gelu",
    });
    let path = directory.path().join("config.json");
    fs::write(&path, right.to_string()).unwrap();
    assert!(open(&directory).is_ok());
    for (name, value) in [
        ("num_hidden_layers", json!(12)),
        ("hidden_act", json!("relu")),
        ("hidden_size", Value::Null),
    ] {
        let mut wrong = right.clone();
        wrong[name] = value;
        fs::write(&path, wrong.to_string()).unwrap();
        assert!(
            matches!(open(&directory), Err(EncoderError::Architecture(_))),
            "{name}"
        );
    }
    fs::write(&path, "{").unwrap();
    assert!(matches!(
        open(&directory),
        Err(EncoderError::Architecture(_))
    ));
}

#[test]
fn an_instruction_set_that_the_processor_lacks_is_refused() {
    let foreign = if cfg!(target_arch = "x86_64") {
        Level::Neon
    } else {
        Level::Avx512
    };
    let options = Options {
        level: Some(foreign),
        ..Options::default()
    };
    let error = Encoder::open(zero_model().path(), options).unwrap_err();
    assert!(matches!(error, EncoderError::Level(level) if level == foreign));
}

#[test]
fn int8_falls_back_to_f32_where_it_is_not_faster() {
    let options = Options {
        precision: Precision::Int8,
        level: Some(Level::Scalar),
    };
    let encoder = Encoder::open(zero_model().path(), options).unwrap();
    assert_eq!(
        (encoder.precision(), encoder.level()),
        (Precision::F32, Level::Scalar)
    );
}
