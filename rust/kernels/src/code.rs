//! The unit of late interaction: a small vector of int8.

/// Values of a code.
pub const CODE: usize = 128;

/// A vector of int8: a row of [`super::Kernels::best_dots`].
pub type Code = [i8; CODE];

/// The same values at twice the width, as queries are kept: two products of them add up in 32 bits without loss.
pub type WideCode = [i16; CODE];

/// The values of a code at twice the width.
pub fn widened(code: &Code) -> WideCode {
    code.map(i16::from)
}
