//! Named places where a test makes the process die, or an operation fail, panic or wait. Unless `REMORA_JOURNAL_FAILPOINTS`
//! is set when the first journal is opened, each costs one relaxed load and does nothing.
//!
//! The variable reads `before_sync=abort@3,segment_prepared=no_space`: the action comes at the hit after that many passes,
//! and at each one from then on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;

use super::JournalError;

const VARIABLE: &str = "REMORA_JOURNAL_FAILPOINTS";

/// A place on the path of a write, of a deletion or of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    SegmentPrepared,
    SegmentNamed,
    SegmentSealed,
    SegmentDeleting,
    SegmentUnlinked,
    SegmentDeleted,
    BeforeWrite,
    AfterWrite,
    BeforeSync,
    AfterSync,
    CutKept,
    CutErased,
}

impl Point {
    pub(super) const NAMES: [(&str, Self); 12] = [
        ("segment_prepared", Self::SegmentPrepared),
        ("segment_named", Self::SegmentNamed),
        ("segment_sealed", Self::SegmentSealed),
        ("segment_deleting", Self::SegmentDeleting),
        ("segment_unlinked", Self::SegmentUnlinked),
        ("segment_deleted", Self::SegmentDeleted),
        ("before_write", Self::BeforeWrite),
        ("after_write", Self::AfterWrite),
        ("before_sync", Self::BeforeSync),
        ("after_sync", Self::AfterSync),
        ("cut_kept", Self::CutKept),
        ("cut_erased", Self::CutErased),
    ];

    fn named(name: &str) -> Option<Self> {
        let mut names = Self::NAMES.iter();
        names.find(|known| known.0 == name).map(|known| known.1)
    }
}

/// What happens at an armed point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The process dies at once, with nothing flushed or joined.
    Abort,
    /// The operation fails with EIO.
    Error,
    /// The operation fails with ENOSPC.
    NoSpace,
    /// The operation panics.
    Panic,
    /// The operation waits for so many milliseconds, then goes on.
    Delay(u64),
}

impl Action {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abort" => Self::Abort,
            "error" => Self::Error,
            "no_space" => Self::NoSpace,
            "panic" => Self::Panic,
            _ => Self::Delay(name.strip_prefix("delay:")?.parse().ok()?),
        })
    }

    fn run(self) -> io::Result<()> {
        match self {
            Self::Abort => std::process::abort(),
            Self::Error => Err(Errno::IO.into()),
            Self::NoSpace => Err(Errno::NOSPC.into()),
            Self::Panic => panic!("a panic was planted here"),
            Self::Delay(millis) => {
                thread::sleep(Duration::from_millis(millis));
                Ok(())
            }
        }
    }
}

struct Armed {
    point: Point,
    /// The journal it is for; every one where there is none.
    directory: Option<PathBuf>,
    passes: u32,
    action: Action,
}

static ACTIVE: AtomicBool = AtomicBool::new(false);
static ARMED: Mutex<Vec<Armed>> = Mutex::new(Vec::new());

/// Passes, or performs the action for which the point is armed in this directory.
#[inline]
pub(super) fn hit(point: Point, directory: &Path) -> io::Result<()> {
    if !ACTIVE.load(Ordering::Relaxed) {
        return Ok(());
    }
    due(point, directory).map_or(Ok(()), Action::run)
}

#[cold]
fn due(point: Point, directory: &Path) -> Option<Action> {
    let mut all = ARMED.lock();
    let is_here = |armed: &&mut Armed| {
        let everywhere = armed.directory.is_none();
        armed.point == point && (everywhere || armed.directory.as_deref() == Some(directory))
    };
    let armed = all.iter_mut().find(is_here)?;
    if armed.passes == 0 {
        return Some(armed.action);
    }
    armed.passes -= 1;
    None
}

/// Arms the points that the environment names, once in a process. Fails if that cannot be parsed.
pub(super) fn arm_from_environment() -> Result<(), JournalError> {
    static READ: OnceLock<bool> = OnceLock::new();
    let readable = READ.get_or_init(|| {
        let setting = std::env::var(VARIABLE).unwrap_or_default();
        parse(&setting).map(arm_all).is_some()
    });
    if *readable {
        return Ok(());
    }
    Err(JournalError::InvalidOptions(
        "REMORA_JOURNAL_FAILPOINTS cannot be read",
    ))
}

fn arm_all(all: Vec<Armed>) {
    if !all.is_empty() {
        ARMED.lock().extend(all);
        ACTIVE.store(true, Ordering::Relaxed);
    }
}

fn parse(setting: &str) -> Option<Vec<Armed>> {
    let parts = setting.split(',').filter(|part| !part.is_empty());
    parts.map(parse_one).collect()
}

fn parse_one(part: &str) -> Option<Armed> {
    let (point, rest) = part.split_once('=')?;
    let (action, passes) = rest.split_once('@').unwrap_or((rest, "0"));
    Some(Armed {
        point: Point::named(point)?,
        directory: None,
        passes: passes.parse().ok()?,
        action: Action::named(action)?,
    })
}

/// Makes `point` act on the journal in `directory` from the hit after `passes` on, until disarmed.
#[cfg(test)]
pub(super) fn arm(directory: &Path, point: Point, passes: u32, action: Action) {
    arm_all(vec![Armed {
        point,
        directory: Some(directory.to_owned()),
        passes,
        action,
    }]);
}

/// Lets every point of the journal in `directory` pass again.
#[cfg(test)]
pub(super) fn disarm(directory: &Path) {
    let is_elsewhere = |armed: &Armed| armed.directory.as_deref() != Some(directory);
    ARMED.lock().retain(is_elsewhere);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_point_or_action_is_not_read() {
        assert_eq!(
            parse("before_sync=abort@3,segment_named=delay:20").map(|armed| armed.len()),
            Some(2)
        );
        assert_eq!(parse("").map(|armed| armed.len()), Some(0));
        for setting in [
            "sync=abort",
            "before_sync",
            "before_sync=stop",
            "before_sync=abort@x",
        ] {
            assert!(parse(setting).is_none(), "{setting}");
        }
    }
}
