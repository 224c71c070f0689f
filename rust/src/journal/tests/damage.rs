//! Damage of every kind at any byte: everything is read, or a torn end is reported, or the journal is refused.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::tempdir;

use super::super::batches::{Batches, Found};
use super::super::directory::{Directory, segment_name};
use super::super::segment::Segment;
use super::*;

/// What happens to the files of a closed journal. Positions are relative to the part of the segment that is used.
#[derive(Clone, Debug)]
enum Damage {
    Flip {
        at: Index,
        bit: u8,
    },
    Zero {
        at: Index,
        length: usize,
    },
    Scramble {
        at: Index,
        length: usize,
        with: u8,
    },
    /// A piece of the segment once more, elsewhere in it.
    Repeat {
        from: Index,
        at: Index,
        length: usize,
    },
    /// A piece of another segment, at its own place.
    Stale {
        other: Index,
        at: Index,
        length: usize,
    },
    Truncate {
        at: Index,
    },
    Remove,
    /// One segment's file under another one's name; the other's under its own, when they are exchanged.
    Rename {
        other: Index,
        exchange: bool,
    },
}

fn damages() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    let length = || prop_oneof![1_usize..64, 1_usize..6000];
    prop_oneof![
        4 => (at(), 0_u8..8).prop_map(|(at, bit)| Damage::Flip { at, bit }),
        4 => (at(), length()).prop_map(|(at, length)| Damage::Zero { at, length }),
        2 => (at(), length(), 1_u8..).prop_map(|(at, length, with)| Damage::Scramble { at, length, with }),
        2 => (at(), at(), length()).prop_map(|(from, at, length)| Damage::Repeat { from, at, length }),
        2 => (at(), at(), length()).prop_map(|(other, at, length)| Damage::Stale { other, at, length }),
        2 => at().prop_map(|at| Damage::Truncate { at }),
        1 => Just(Damage::Remove),
        2 => (at(), any::<bool>()).prop_map(|(other, exchange)| Damage::Rename { other, exchange }),
    ]
}

/// A batch as it was written: its segment, its bytes there, its last revision.
struct Written {
    segment: u64,
    bytes: Range<u64>,
    last_revision: u64,
}

fn layout(directory: &Path) -> Vec<Written> {
    let directory = Directory::open(directory).unwrap();
    let mut written = Vec::new();
    for first in directory.segments().unwrap() {
        let segment = Segment::open(&directory, first).unwrap();
        let mut batches = Batches::new(&segment, Segment::BEGIN);
        loop {
            let begin = batches.offset;
            let Found::Batch { header, .. } = batches.next().unwrap() else {
                break;
            };
            written.push(Written {
                segment: first,
                bytes: begin..batches.offset,
                last_revision: header.last_revision(),
            });
        }
    }
    written
}

/// Writes groups of records, a group in few batches, and closes the journal.
fn write(directory: &Path, groups: &[Vec<usize>]) -> Vec<Record> {
    let (journal, _) = open(directory);
    let mut records = Vec::new();
    for group in groups {
        for length in group {
            let payload = payload(records.len() as u64, *length);
            let revision = journal.submit_with(payload.clone(), |_| ()).unwrap();
            records.push(Record { revision, payload });
        }
        journal.wait(records.len() as u64, Some(PATIENCE)).unwrap();
    }
    journal.close().unwrap();
    records
}

fn file(directory: &Path, first_revision: u64) -> PathBuf {
    directory.join(segment_name(first_revision))
}

/// Does the damage to segment `first`; false when it changed nothing.
fn inflict(directory: &Path, damage: &Damage, segments: &[u64], first: u64, used: usize) -> bool {
    let path = file(directory, first);
    let before = fs::read(&path).unwrap();
    let mut after = before.clone();
    let end = |at: usize, length: usize| (at + length).min(before.len());
    match damage {
        Damage::Flip { at, bit } => after[at.index(used)] ^= 1 << bit,
        Damage::Zero { at, length } => after[at.index(used)..end(at.index(used), *length)].fill(0),
        Damage::Scramble { at, length, with } => {
            after[at.index(used)..end(at.index(used), *length)].fill(*with)
        }
        Damage::Repeat { from, at, length } => {
            let (from, at) = (from.index(used) & !7, at.index(used) & !7);
            let length = end(from.max(at), *length) - from.max(at);
            after.copy_within(from..from + length, at);
        }
        Damage::Stale { other, at, length } => {
            let stale = fs::read(file(directory, *other.get(segments))).unwrap();
            let range = at.index(used)..end(at.index(used), *length);
            after[range.clone()].copy_from_slice(&stale[range]);
        }
        Damage::Truncate { at } => after.truncate(at.index(used)),
        Damage::Remove => return segments.len() > 1 && fs::remove_file(&path).is_ok(),
        Damage::Rename { other, exchange } => {
            let other = file(directory, *other.get(segments));
            let taken = fs::read(&other).unwrap();
            fs::write(&other, &before).unwrap();
            after = if *exchange { taken } else { before.clone() };
            fs::write(&path, &after).unwrap();
            return other != path;
        }
    }
    fs::write(&path, &after).unwrap();
    before != after
}

/// What is missing must begin where the cut says, and each missing batch must have been touched by the damage. Without a
/// cut, everything from there on must be zeros, as if it had never been written.
fn assert_loss_is_reported(
    directory: &Path,
    originals: &[Vec<u8>],
    written: &[Written],
    segments: &[u64],
    recovery: &Recovery,
    damaged: &[u8],
) {
    let last_segment = *segments.last().unwrap();
    let original = originals.last().unwrap();
    for (index, batch) in written
        .iter()
        .filter(|batch| batch.last_revision > recovery.last_revision)
        .enumerate()
    {
        let bytes = batch.bytes.start as usize..batch.bytes.end as usize;
        assert_eq!(batch.segment, last_segment);
        assert_ne!(original[bytes.clone()], damaged[bytes.clone()]);
        match &recovery.cut {
            None => assert!(damaged[bytes.start..].iter().all(|byte| *byte == 0)),
            Some(cut) if index == 0 => {
                assert_eq!(
                    (cut.offset, &cut.segment),
                    (batch.bytes.start, &segment_name(last_segment))
                );
            }
            Some(_) => {}
        }
    }
    if let Some(cut) = &recovery.cut {
        let range = cut.offset as usize..(cut.offset + cut.bytes) as usize;
        assert_eq!(fs::read(&cut.kept_in).unwrap(), damaged[range]);
        assert!(cut.kept_in.starts_with(directory));
    }
}

fn cases() -> u32 {
    std::env::var("REMORA_DAMAGE_CASES").map_or(300, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_is_read_over_in_silence(
        groups in prop::collection::vec(prop::collection::vec(0_usize..1200, 1..4), 1..8),
        damage in damages(),
        // The last segment, where a tear is possible, as often as all others together.
        (in_last, chosen) in (any::<bool>(), any::<Index>()),
        applied in any::<Index>(),
    ) {
        let directory = tempdir().unwrap();
        let directory = directory.path();
        let records = write(directory, &groups);
        let written = layout(directory);
        let mut segments: Vec<_> = written.iter().map(|batch| batch.segment).collect();
        segments.dedup();
        let first = if in_last { segments[segments.len() - 1] } else { *chosen.get(&segments) };
        let used = written.iter().filter(|batch| batch.segment == first).map(|batch| batch.bytes.end).max().unwrap();
        let originals: Vec<_> = segments.iter().map(|first| fs::read(file(directory, *first)).unwrap()).collect();
        let changed = inflict(directory, &damage, &segments, first, used as usize + 40);
        let damaged = fs::read(file(directory, segments[segments.len() - 1])).unwrap_or_default();

        let applied_revision = applied.index(records.len() + 1) as u64;
        let opened = Journal::open(directory, Options { applied_revision, ..small_segments() });
        let Ok((journal, recovery)) = opened else {
            prop_assert!(changed);
            return Ok(());
        };
        let released = recovery.first_revision - 1;
        let kept = &records[released as usize..recovery.last_revision as usize];
        prop_assert!(released <= applied_revision && applied_revision <= recovery.last_revision);
        prop_assert_eq!(&read_all_after(&journal, released), kept);
        assert_loss_is_reported(directory, &originals, &written, &segments, &recovery, &damaged);

        let revision = append(&journal, payload(7, 70));
        prop_assert_eq!(revision, recovery.last_revision + 1);
        drop(journal);
        let (journal, recovery) = Journal::open(directory, Options { applied_revision, ..small_segments() }).unwrap();
        prop_assert_eq!((recovery.cut, recovery.last_revision), (None, revision));
        prop_assert_eq!(&read_all_after(&journal, released)[..kept.len()], kept);
    }
}

/// A journal of `count` batches in one segment, and its only file.
fn one_segment(directory: &Path, count: u64) -> (Vec<Written>, PathBuf) {
    append_each(&open(directory).0, count, 100);
    (layout(directory), file(directory, 1))
}

fn damage_byte(path: &Path, at: u64) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at as usize] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_torn_last_batch_is_cut_kept_and_reported() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    damage_byte(&path, written[4].bytes.end - 20);

    let (journal, recovery) = open(directory.path());
    let cut = recovery.cut.unwrap();
    assert_eq!(
        (recovery.last_revision, cut.offset),
        (4, written[4].bytes.start)
    );
    assert!(
        fs::read(cut.kept_in).unwrap().len() as u64
            <= written[4].bytes.end - written[4].bytes.start
    );
    assert_eq!(append(&journal, payload(8, 8)), 5);
}

#[test]
fn a_damaged_batch_before_a_whole_one_is_refused_where_it_lies() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    damage_byte(&path, written[3].bytes.start + 40);
    let before = fs::read(&path).unwrap();

    let refused = refusal(directory.path(), small_segments());
    let JournalError::Damaged {
        segment, offset, ..
    } = refused
    else {
        panic!("{refused}");
    };
    assert_eq!((segment, offset), (segment_name(1), written[3].bytes.start));
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// The later batch has lost its body too, but its header was only ever written after the sync of the one before.
#[test]
fn two_damaged_batches_are_no_torn_end() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    damage_byte(&path, written[3].bytes.start + 40);
    damage_byte(&path, written[4].bytes.start + 40);
    assert!(matches!(
        refusal(directory.path(), small_segments()),
        JournalError::Damaged { .. }
    ));
}

#[test]
fn a_torn_end_at_or_below_what_was_applied_is_refused() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    damage_byte(&path, written[4].bytes.start + 40);
    let applied = |applied_revision| Options {
        applied_revision,
        ..small_segments()
    };

    let refused = refusal(directory.path(), applied(5));
    assert!(
        matches!(refused, JournalError::Damaged { offset, .. } if offset == written[4].bytes.start)
    );
    assert!(Journal::open(directory.path(), applied(4)).is_ok());
}

/// A batch's checksum holds at its own place only, so that a copy of it is as little a batch as any other bytes.
#[test]
fn a_copy_of_a_batch_behind_the_last_one_is_cut_and_proves_nothing() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    let (copied, end) = (&written[2].bytes, written[4].bytes.end);
    let mut bytes = fs::read(&path).unwrap();
    bytes.copy_within(copied.start as usize..copied.end as usize, end as usize);
    fs::write(&path, bytes).unwrap();

    let (_, recovery) = open(directory.path());
    assert_eq!(
        (recovery.last_revision, recovery.cut.unwrap().offset),
        (5, end)
    );
}

#[test]
fn a_renamed_segment_is_refused() {
    let directory = tempdir().unwrap();
    let (_, path) = one_segment(directory.path(), 5);
    fs::rename(path, file(directory.path(), 3)).unwrap();
    let refused = refusal(directory.path(), small_segments());
    assert!(
        matches!(refused, JournalError::Damaged { segment, offset: 0, .. } if segment == segment_name(3))
    );
}

#[test]
fn a_missing_last_segment_is_refused() {
    let directory = tempdir().unwrap();
    append_each(&open(directory.path()).0, 30, 900);
    let last = layout(directory.path()).last().unwrap().segment;
    fs::remove_file(file(directory.path(), last)).unwrap();
    assert!(matches!(
        refusal(directory.path(), small_segments()),
        JournalError::Damaged { .. }
    ));
}

#[test]
fn a_segment_of_a_later_format_is_refused_as_such() {
    let directory = tempdir().unwrap();
    let (_, path) = one_segment(directory.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    bytes[12..16].fill(0);
    let crc = crc32c::crc32c(&bytes[..4096]);
    bytes[12..16].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    assert!(matches!(
        refusal(directory.path(), small_segments()),
        JournalError::Version { found: 2, .. }
    ));
}
