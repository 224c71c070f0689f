//! Named points at which a test makes the engine panic. Inert, at the cost of one relaxed load, unless
//! `REMORA_ENGINE_FAILPOINTS` is set when the process loads the engine.
//!
//! The variable reads `core_applying=panic@3,held_task=panic`: a panic, once, at the hit after that many passes. The
//! journal has points of its own for writes that fail (`journal/failpoints.rs`).

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

macro_rules! points {
    ($($name:literal $point:ident: $about:literal,)*) => {
        /// A point at which a panic can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Point {
            $(#[doc = $about] $point,)*
        }

        const NAMES: &[(&str, Point)] = &[$(($name, Point::$point),)*];
    };
}

points! {
    "answering_at_once" AnsweringAtOnce: "A quick call, on the transport's thread.",
    "answering" Answering: "A call, in a thread of the pool.",
    "worker" Worker: "A thread of the pool, between its calls.",
    "pulling" Pulling: "A message of a stream is asked for, in a thread of the pool.",
    "transport_thread" TransportThread: "What the transport's thread waits in.",
    "quick_task" QuickTask: "The task that answers quick calls.",
    "held_task" HeldTask: "The task that lets replies go.",
    "tick_task" TickTask: "The task that keeps a timer due.",
    "stalled_task" StalledTask: "The task that evicts connections that stall, with the lock of all connections.",
    "accepting_task" AcceptingTask: "The task that accepts connections.",
    "connection_task" ConnectionTask: "The task of a connection, with a call at hand.",
    "call_task" CallTask: "The task of a call.",
    "handshake_task" HandshakeTask: "The task of a connection, before its TLS handshake.",
    "page_task" PageTask: "The task of a connection that asks for a page.",
    "page_making" PageMaking: "A page is made, in a thread beside the tasks.",
    "health_answering" HealthAnswering: "A call of the health service, with its request at hand.",
    "identifying" Identifying: "A caller is told by its credentials.",
    "publication_followed" PublicationFollowed: "The journal's thread tells of what it published.",
    "core_planning" CorePlanning: "A record is read, before anything is changed.",
    "core_applying" CoreApplying: "A record is applied to memory, half of it.",
    "core_applied" CoreApplied: "Memory is told what the database holds.",
    "records_listing" RecordsListing: "Records are listed.",
    "records_loading" RecordsLoading: "Records of the database are taken into memory, half of them.",
    "records_evicting" RecordsEvicting: "A partition is dropped from memory, half of that.",
    "windows_listing" WindowsListing: "Messages are listed.",
    "windows_reading" WindowsReading: "A conversation of the database is read, before memory has any of it.",
    "windows_loading" WindowsLoading: "A conversation of the database is taken into memory, half of that.",
    "windows_evicting" WindowsEvicting: "A conversation is dropped from memory, half of that.",
    "recall_draining" RecallDraining: "What waits for a thread is applied to it, half of it.",
    "recall_evicting" RecallEvicting: "A part of recall is dropped from memory, half of that.",
    "recall_scoring" RecallScoring: "Messages are scored.",
    "recall_dividing" RecallDividing: "A part of a divided search, in a thread of the pool for searches.",
    "parts_draining" PartsDraining: "What waits for a part of vectors or items is applied to it, half of it.",
    "parts_filling" PartsFilling: "Vectors or items of the database are taken into a part, half of them.",
    "parts_evicting" PartsEvicting: "Parts of vectors or items are dropped from memory, half of them.",
    "parts_reading" PartsReading: "A part of vectors or items is searched.",
    "paths_learning" PathsLearning: "Paths that a filter names get columns, half of them.",
    "encoder_job" EncoderJob: "Texts are encoded in the background.",
    "encoder_thread" EncoderThread: "The thread that encodes in the background, between its jobs.",
}

pub const VARIABLE: &str = "REMORA_ENGINE_FAILPOINTS";

struct Armed {
    point: Point,
    passes: u32,
}

static ACTIVE: AtomicBool = AtomicBool::new(false);
static ARMED: Mutex<Vec<Armed>> = Mutex::new(Vec::new());

/// Passes; where the point is armed, and was passed often enough, panics and arms it no more.
#[inline]
pub fn hit(point: Point) {
    if ACTIVE.load(Ordering::Relaxed) {
        reach(point);
    }
}

#[cold]
fn reach(point: Point) {
    assert!(!is_due(point), "a panic was planted here");
}

fn is_due(point: Point) -> bool {
    let mut all = ARMED.lock();
    let Some(index) = all.iter().position(|armed| armed.point == point) else {
        return false;
    };
    if all[index].passes == 0 {
        all.remove(index);
        return true;
    }
    all[index].passes -= 1;
    false
}

/// What is to be armed cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{VARIABLE}: {0:?} is not a failpoint")]
pub struct Unreadable(String);

/// Arms points: `name=panic[@passes]`, with commas between.
pub fn arm(setting: &str) -> Result<(), Unreadable> {
    let parts = setting.split(',').filter(|part| !part.is_empty());
    let armed = parts.map(|part| parse(part).ok_or_else(|| Unreadable(part.to_owned())));
    let armed = armed.collect::<Result<Vec<_>, _>>()?;
    if !armed.is_empty() {
        ARMED.lock().extend(armed);
        ACTIVE.store(true, Ordering::Relaxed);
    }
    Ok(())
}

fn parse(part: &str) -> Option<Armed> {
    let (name, rest) = part.split_once('=')?;
    let (action, passes) = rest.split_once('@').unwrap_or((rest, "0"));
    let (_, point) = NAMES.iter().find(|known| known.0 == name)?;
    (action == "panic").then_some(())?;
    Some(Armed {
        point: *point,
        passes: passes.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_point_or_action_is_not_read() {
        assert!(parse("core_applying=panic@3").is_some_and(|armed| armed.passes == 3));
        assert!(arm("").is_ok());
        for setting in ["nowhere=panic", "worker", "worker=abort", "worker=panic@x"] {
            assert!(arm(setting).is_err(), "{setting}");
        }
    }
}
