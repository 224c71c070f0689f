//! Named places where a test makes the process die or an operation fail. Without the feature `failpoints` they do nothing.

/// A place on the path of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    SegmentPrepared,
    SegmentNamed,
    SegmentSealed,
    SegmentDeleted,
    BeforeWrite,
    AfterWrite,
    BeforeSync,
    AfterSync,
    CutKept,
    CutErased,
}

#[cfg(any(test, feature = "failpoints"))]
pub(super) use armed::hit;
#[cfg(any(test, feature = "failpoints"))]
pub use armed::{Action, arm, disarm};

/// Passes; with the feature on, does what was armed for this point and directory.
#[cfg(not(any(test, feature = "failpoints")))]
#[inline(always)]
pub(super) fn hit(_point: Point, _directory: &std::path::Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(any(test, feature = "failpoints"))]
mod armed {
    use std::io;
    use std::path::{Path, PathBuf};
    use std::sync::LazyLock;

    use parking_lot::Mutex;
    use rustix::io::Errno;

    use super::Point;

    /// What happens at an armed point.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// The process dies at once, with nothing flushed or joined.
        Abort,
        /// The operation fails with EIO.
        Error,
        /// The operation fails with ENOSPC.
        NoSpace,
    }

    struct Armed {
        point: Point,
        directory: Option<PathBuf>,
        passes: u32,
        action: Action,
    }

    static ARMED: LazyLock<Mutex<Vec<Armed>>> = LazyLock::new(|| Mutex::new(from_environment()));

    /// Makes `point` act on the journal in `directory` from the hit after `passes` on, until disarmed.
    pub fn arm(directory: &Path, point: Point, passes: u32, action: Action) {
        ARMED.lock().push(Armed {
            point,
            directory: Some(directory.to_owned()),
            passes,
            action,
        });
    }

    /// Lets every point of the journal in `directory` pass again.
    pub fn disarm(directory: &Path) {
        ARMED
            .lock()
            .retain(|armed| armed.directory.as_deref() != Some(directory));
    }

    pub(crate) fn hit(point: Point, directory: &Path) -> io::Result<()> {
        match due(point, directory) {
            None => Ok(()),
            Some(Action::Abort) => std::process::abort(),
            Some(Action::Error) => Err(Errno::IO.into()),
            Some(Action::NoSpace) => Err(Errno::NOSPC.into()),
        }
    }

    fn due(point: Point, directory: &Path) -> Option<Action> {
        let mut all = ARMED.lock();
        let here = |armed: &&mut Armed| {
            armed.point == point
                && armed
                    .directory
                    .as_deref()
                    .is_none_or(|armed| armed == directory)
        };
        let armed = all.iter_mut().find(here)?;
        if armed.passes == 0 {
            return Some(armed.action);
        }
        armed.passes -= 1;
        None
    }

    /// Reads `REMORA_FAILPOINTS`, such as `before_sync=abort@3,segment_prepared=no_space`: the action comes at the
    /// hit after that many passes, in every directory. What cannot be read is a mistake of the test, and stops it.
    fn from_environment() -> Vec<Armed> {
        let setting = std::env::var("REMORA_FAILPOINTS").unwrap_or_default();
        let given = setting.split(',').filter(|part| !part.is_empty());
        given
            .map(|part| parse(part).unwrap_or_else(|| panic!("REMORA_FAILPOINTS: {part:?}")))
            .collect()
    }

    fn parse(part: &str) -> Option<Armed> {
        let (point, rest) = part.split_once('=')?;
        let (action, passes) = rest.split_once('@').unwrap_or((rest, "0"));
        Some(Armed {
            point: point_named(point)?,
            directory: None,
            passes: passes.parse().ok()?,
            action: action_named(action)?,
        })
    }

    fn point_named(name: &str) -> Option<Point> {
        Some(match name {
            "segment_prepared" => Point::SegmentPrepared,
            "segment_named" => Point::SegmentNamed,
            "segment_sealed" => Point::SegmentSealed,
            "segment_deleted" => Point::SegmentDeleted,
            "before_write" => Point::BeforeWrite,
            "after_write" => Point::AfterWrite,
            "before_sync" => Point::BeforeSync,
            "after_sync" => Point::AfterSync,
            "cut_kept" => Point::CutKept,
            "cut_erased" => Point::CutErased,
            _ => return None,
        })
    }

    fn action_named(name: &str) -> Option<Action> {
        Some(match name {
            "abort" => Action::Abort,
            "error" => Action::Error,
            "no_space" => Action::NoSpace,
            _ => return None,
        })
    }
}
