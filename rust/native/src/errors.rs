//! The exceptions of the core, and which of its errors raises which.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use remora_core::{CommitError, FollowError, Torn};
use remora_journal as journal;

macro_rules! exceptions {
    ($($name:ident($base:ty), $text:literal;)*) => {
        $(create_exception!(remora_server._native, $name, $base, $text);)*

        /// Adds the names of this module.
        pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
            let py = module.py();
            $(module.add(stringify!($name), py.get_type::<$name>())?;)*
            Ok(())
        }
    };
}

exceptions! {
    JournalError(PyException), "The journal refuses.";
    JournalFull(JournalError), "There is no room on the disk; nothing was written.";
    JournalFailed(JournalError), "The journal stopped, for good.";
    JournalTimeout(JournalError), "The time ran out before the record was accepted.";
    JournalBehind(JournalError), "The database is too far behind; nothing was written.";
    RecordTooLarge(JournalError), "The record is larger than the journal takes.";
    InvalidRecord(JournalError), "The record cannot be applied; nothing was written.";
}

/// Memory is shown no more, for good.
pub(super) fn torn_error(torn: Torn) -> PyErr {
    JournalFailed::new_err(torn.to_string())
}

pub(super) fn commit_error(error: CommitError) -> PyErr {
    match error {
        CommitError::Invalid(invalid) => InvalidRecord::new_err(invalid.to_string()),
        CommitError::Journal(error) => journal_error(error),
        CommitError::Behind => JournalBehind::new_err(error.to_string()),
    }
}

pub(super) fn follow_error(error: FollowError) -> PyErr {
    match error {
        FollowError::Journal(error) => journal_error(error),
        FollowError::Record { .. } => InvalidRecord::new_err(error.to_string()),
        FollowError::Bodies(_) => PyValueError::new_err(error.to_string()),
    }
}

pub(super) fn journal_error(error: journal::JournalError) -> PyErr {
    let message = error.to_string();
    match error {
        journal::JournalError::Full { .. } => JournalFull::new_err(message),
        journal::JournalError::Busy => JournalTimeout::new_err(message),
        journal::JournalError::TooLarge { .. } => RecordTooLarge::new_err(message),
        journal::JournalError::Failed(_) | journal::JournalError::Closed => {
            JournalFailed::new_err(message)
        }
        _ => JournalError::new_err(message),
    }
}
