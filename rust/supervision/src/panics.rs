//! Panics as the process's log is told of them: by location and thread, never by what they say, which may quote contents.
//!
//! The hook runs wherever a panic began, perhaps under a lock and with or without the interpreter's: it notes the panic and
//! does nothing else. Another thread takes the notes and logs them.

use std::collections::VecDeque;
use std::panic::PanicHookInfo;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How many notes wait; later ones are counted only.
const WAITING: usize = 64;

/// A panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    /// The source file and line; empty if they are not known.
    pub location: String,
    /// The thread's name; empty if Rust did not name it.
    pub thread: String,
    /// The system's number of the thread; 0 if it has none.
    pub thread_id: i32,
    /// How many were not noted before this one.
    pub unnoted: u64,
}

#[derive(Default)]
struct Notes {
    panics: VecDeque<Panic>,
    unnoted: u64,
}

static NOTES: Mutex<Notes> = Mutex::new(Notes {
    panics: VecDeque::new(),
    unnoted: 0,
});
static NOTED: Condvar = Condvar::new();

/// Has every panic of the process noted, and nothing printed.
pub fn note_all() {
    std::panic::set_hook(Box::new(note));
}

fn note(info: &PanicHookInfo<'_>) {
    let location = info.location();
    let location = location.map(|location| format!("{}:{}", location.file(), location.line()));
    let mut notes = NOTES.lock();
    if notes.panics.len() >= WAITING {
        notes.unnoted += 1;
        return;
    }
    let panic = Panic {
        location: location.unwrap_or_default(),
        thread: thread::current().name().unwrap_or_default().to_owned(),
        thread_id: thread_id(),
        unnoted: std::mem::take(&mut notes.unnoted),
    };
    notes.panics.push_back(panic);
    drop(notes);
    NOTED.notify_one();
}

/// The oldest panic that was not taken yet, waiting for one at most so long.
pub fn next(patience: Duration) -> Option<Panic> {
    let until = Instant::now() + patience;
    let mut notes = NOTES.lock();
    while notes.panics.is_empty() {
        if NOTED.wait_until(&mut notes, until).timed_out() {
            break;
        }
    }
    notes.panics.pop_front()
}

#[cfg(target_os = "linux")]
fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_pid()
}

#[cfg(not(target_os = "linux"))]
fn thread_id() -> i32 {
    0
}
