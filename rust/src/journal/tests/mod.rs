//! What the journal promises, tried on real files.
