//! The classes of characters that the encodings' patterns tell apart: one bit each, exactly one for every character.

/// Lu and Lt.
pub(crate) const UPPER: u8 = 1;
/// Ll.
pub(crate) const LOWER: u8 = 2;
/// Lm and Lo.
pub(crate) const UNCASED: u8 = 4;
/// M.
pub(crate) const MARK: u8 = 8;
/// N.
pub(crate) const NUMBER: u8 = 16;
/// White_Space but for line feed and carriage return.
pub(crate) const SPACE: u8 = 32;
/// Line feed and carriage return.
pub(crate) const NEWLINE: u8 = 64;
/// All that remains: punctuation, symbols, controls, unassigned.
pub(crate) const OTHER: u8 = 128;
