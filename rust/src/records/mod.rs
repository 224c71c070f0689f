//! Records by key: of each declared kind, a partition of keys at a time.

mod change;
mod kinds;
mod place;
mod value;

pub use change::InvalidChange;
pub(crate) use change::{Change, Put, Removed};
pub use kinds::{InvalidKinds, Kind, Kinds};
pub use place::place;
pub use value::{ColumnType, Value};
