"""Types of the Rust engine, one section per module of the crate."""
