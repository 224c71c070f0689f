//! Writes the data that the engine carries: the vocabularies of the token encodings and the classes of characters.

use std::env;
use std::path::PathBuf;

#[path = "../src/class.rs"]
mod class;
mod classes;
mod vocabulary;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    classes::write(&out);
    vocabulary::write(&out, "cl100k_base", &bpe_openai::cl100k_base().bpe);
    vocabulary::write(&out, "o200k_base", &bpe_openai::o200k_base().bpe);
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/class.rs");
}
