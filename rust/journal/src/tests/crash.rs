//! A process that dies while it writes: everything it acknowledged is there when the journal is opened again.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use tempfile::tempdir;

use super::super::failpoints::Point;
use super::*;

const DIRECTORY: &str = "REMORA_TEST_JOURNAL";
const WRITERS: u64 = 4;

/// The seed of the payload that was acknowledged at a revision.
type Acknowledged = BTreeMap<u64, u64>;

/// This test binary again, running only `writes_until_it_dies`.
fn start_child(directory: &Path, failpoints: &str) -> Child {
    let name = concat!(module_path!(), "::writes_until_it_dies");
    let name = name.split_once("::").unwrap().1;
    Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(DIRECTORY, directory)
        .env("REMORA_JOURNAL_FAILPOINTS", failpoints)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the body of the child processes that the other tests start"]
fn writes_until_it_dies() {
    let directory = PathBuf::from(env::var_os(DIRECTORY).unwrap());
    let applied_revision = applied(&directory);
    let options = Options {
        applied_revision,
        ..small_segments()
    };
    let (journal, recovery) = Journal::open(&directory, options).unwrap();
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let journal = &journal;
            let first_seed = (recovery.last_revision + 1) * 1000 + writer;
            scope.spawn(move || {
                for seed in (first_seed..).step_by(WRITERS as usize) {
                    acknowledge(journal, seed);
                }
            });
        }
    });
}

fn acknowledge(journal: &Journal, seed: u64) {
    let revision = append(journal, payload(seed, length(seed)));
    let line = format!("\nack {revision} {seed}\n");
    stdout().lock().write_all(line.as_bytes()).unwrap();
    if revision.is_multiple_of(16) {
        release(journal, revision - 15);
    }
}

fn length(seed: u64) -> usize {
    (seed % 1500) as usize
}

fn applied(directory: &Path) -> u64 {
    fs::read_to_string(directory.with_extension("applied")).map_or(0, |text| text.parse().unwrap())
}

/// What an applier does: it remembers how far it came, then releases. It never goes back, whichever of the writers is late.
fn release(journal: &Journal, applied: u64) {
    static RELEASED: Mutex<u64> = Mutex::new(0);
    let mut released = RELEASED.lock().unwrap();
    if applied <= *released {
        return;
    }
    *released = applied;
    let path = env::var_os(DIRECTORY).unwrap();
    let note = PathBuf::from(path).with_extension("applied");
    let temporary = note.with_extension(format!("{applied}.tmp"));
    fs::write(&temporary, applied.to_string()).unwrap();
    fs::rename(temporary, note).unwrap();
    journal.release(applied).unwrap();
}

/// Reads acknowledgements until the child is gone, killing it after `kill_after` of them.
fn collect(mut child: Child, kill_after: Option<usize>, acknowledged: &mut Acknowledged) {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut count = 0;
    for line in lines.map_while(Result::ok) {
        let Some((revision, seed)) = line
            .strip_prefix("ack ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        acknowledged.insert(revision.parse().unwrap(), seed.parse().unwrap());
        count += 1;
        if kill_after == Some(count) {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success());
}

fn assert_nothing_is_lost(directory: &Path, acknowledged: &Acknowledged) {
    let applied_revision = applied(directory);
    let options = Options {
        applied_revision,
        ..small_segments()
    };
    let (journal, recovery) = Journal::open(directory, options).unwrap();
    let last = acknowledged.keys().next_back().copied().unwrap_or(0);
    assert!(recovery.last_revision >= last);
    let records = read_all_after(&journal, recovery.first_revision - 1);
    for (record, revision) in records.iter().zip(recovery.first_revision..) {
        assert_eq!(record.revision, revision);
        if let Some(seed) = acknowledged.get(&revision) {
            assert_eq!(record.payload, payload(*seed, length(*seed)));
        }
    }
    assert_eq!(
        records.len() as u64,
        recovery.last_revision + 1 - recovery.first_revision
    );
}

#[test]
fn a_process_killed_again_and_again_loses_nothing_it_acknowledged() {
    let parent = tempdir().unwrap();
    let directory = parent.path().join("journal");
    let mut acknowledged = Acknowledged::new();
    for round in 0..8 {
        let child = start_child(&directory, "");
        collect(child, Some(20 + round * 37), &mut acknowledged);
        assert_nothing_is_lost(&directory, &acknowledged);
    }
    assert!(acknowledged.len() > 8 * 20);
}

#[test]
fn a_process_that_dies_at_any_point_of_the_write_path_loses_nothing_it_acknowledged() {
    let names = Point::NAMES.iter().map(|known| known.0);
    for point in names.filter(|name| !name.starts_with("cut_")) {
        let parent = tempdir().unwrap();
        let directory = parent.path().join("journal");
        let mut acknowledged = Acknowledged::new();
        for passes in [0, 1, 5] {
            let child = start_child(&directory, &format!("{point}=abort@{passes}"));
            collect(child, None, &mut acknowledged);
            assert_nothing_is_lost(&directory, &acknowledged);
        }
    }
}

#[test]
fn a_process_that_dies_while_it_cuts_a_torn_end_off_leaves_it_to_the_next() {
    for point in ["cut_kept", "cut_erased"] {
        let parent = tempdir().unwrap();
        let directory = parent.path().join("journal");
        append_each(&open(&directory).0, 4, 100);
        let segment = directory.join("00000000000000000001.journal");
        let mut bytes = fs::read(&segment).unwrap();
        bytes[6000] = 7;
        fs::write(&segment, bytes).unwrap();

        collect(
            start_child(&directory, &format!("{point}=abort")),
            None,
            &mut Acknowledged::new(),
        );
        assert_eq!(open(&directory).1.last_revision, 4);
        assert!(fs::read_dir(directory.join("damaged")).unwrap().count() >= 1);
    }
}
