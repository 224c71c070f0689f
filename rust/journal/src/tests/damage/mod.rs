//! Damage of every kind to every field, and at any byte: everything is read, or a torn end is reported, or the journal is
//! refused; and mistakes planted into reading it are found.

mod image;
mod kinds;
mod oracle;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::sample::Index;
use tempfile::tempdir;

use self::image::{Image, NOTE, Original, Written, layout, scratch};
use self::kinds::{Case, cases};
use self::oracle::{Verdict, judge};
use super::super::directory::segment_name;
use super::super::failpoints::{Action, Point, arm, disarm};
use super::super::faults::{Fault, plant};
use super::super::reach::{Note, Reach, Reached};
use super::*;

const STORE: [u8; 16] = [7; 16];
/// Batches of one to three records, three segments full.
const GROUPS: [&[usize]; 12] = [
    &[700, 0],
    &[1100],
    &[5, 900, 13],
    &[1199],
    &[300, 300],
    &[1000],
    &[640, 1],
    &[900],
    &[77, 1000],
    &[800],
    &[64, 64, 65],
    &[500],
];

fn original(store_id: [u8; 16], seed: u64) -> Original {
    let groups: Vec<_> = GROUPS.iter().map(|group| group.to_vec()).collect();
    let mut written = Original::write(store_id, seed, &groups);
    // How records gather in batches depends on the writer's pace.
    while written
        .written
        .iter()
        .filter(|batch| !batch.is_seal)
        .count()
        != GROUPS.len()
    {
        written = Original::write(store_id, seed, &groups);
    }
    assert_eq!(written.image.segments().len(), 3);
    written
}

/// How the note of the journal's reach was left: by a kill, by a power cut that came before it was written back, and by one
/// that came when an older one had been.
#[derive(Clone, Copy, Debug)]
enum Left {
    AsItWas,
    Missing,
    Older,
}

fn left(original: &Original, image: &Image, left: Left) -> Image {
    let mut image = image.clone();
    match left {
        Left::AsItWas => {}
        Left::Missing => drop(image.0.remove(NOTE)),
        Left::Older if image.0.contains_key(NOTE) => {
            let directory = scratch();
            let published = original.last_revision() / 2;
            let reached = Reached {
                published,
                applied: 0,
            };
            drop(Reach::begin(directory.path(), original.store_id, reached));
            image.0.extend(Image::read(directory.path()).0);
        }
        Left::Older => {}
    }
    image
}

/// Each case with one of the notes and one of the revisions that may have been applied.
fn trials<'a>(
    original: &'a Original,
    cases: &'a [Case],
) -> impl Iterator<Item = (String, Image, u64)> + 'a {
    let last = original.last_revision();
    let turn = [0, last / 2, last, last - 1, 1];
    let notes = [Left::AsItWas, Left::Missing, Left::Older];
    let numbered = cases.iter().enumerate();
    numbered.flat_map(move |(number, case)| {
        let applied = turn[number % turn.len()];
        notes.into_iter().map(move |note| {
            let name = format!("{}; note {note:?}, applied {applied}", case.name);
            (name, left(original, &case.image, note), applied)
        })
    })
}

#[test]
fn every_kind_of_damage_to_every_field_is_read_around_cut_or_refused() {
    let (original, other) = (original(STORE, 0), original([8; 16], 1000));
    let cases = cases(&original, &other);
    let mut verdicts: BTreeMap<Verdict, usize> = BTreeMap::new();
    for (name, image, applied) in trials(&original, &cases) {
        match judge(&original, &image, applied) {
            Ok(verdict) => *verdicts.entry(verdict).or_default() += 1,
            Err(wrong) => panic!("{name}: {wrong}"),
        }
    }
    println!("{} cases: {verdicts:?}", verdicts.values().sum::<usize>());
    assert!(verdicts.values().sum::<usize>() > 4_000);
    assert!(
        verdicts.len() == 4,
        "every verdict was reached: {verdicts:?}"
    );
}

#[test]
fn an_undamaged_journal_is_whole() {
    let original = original(STORE, 0);
    for note in [Left::AsItWas, Left::Missing, Left::Older] {
        let image = left(&original, &original.image, note);
        assert_eq!(judge(&original, &image, 3), Ok(Verdict::Whole));
    }
}

/// Each of these would lose or alter records in silence: the cases above must notice.
#[test]
fn a_mistake_in_reading_is_found_by_these_cases() {
    let (original, other) = (original(STORE, 0), original([8; 16], 1000));
    let cases = cases(&original, &other);
    let faults = [
        Fault::HeaderChecksum,
        Fault::BodyChecksum,
        Fault::SegmentOrder,
        Fault::StoreId,
        Fault::LaterBatch,
        Fault::Reach,
        Fault::CutReport,
    ];
    for fault in faults {
        plant(Some(fault));
        let mut trials = trials(&original, &cases).step_by(2);
        let found = trials.find(|(_, image, applied)| judge(&original, image, *applied).is_err());
        plant(None);
        let name = found.map(|(name, ..)| name);
        println!("{fault:?}: {name:?}");
        assert!(name.is_some(), "{fault:?} goes unnoticed");
    }
}

/// What happens to a closed journal's files anywhere in the part of a segment that is used.
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

/// Does the damage to segment `name`, of which `used` bytes hold something.
fn inflict(image: &mut Image, damage: &Damage, name: &str, used: usize) {
    let segments = image.segments();
    let before = image.0[name].clone();
    let range = |at: &Index, length: usize| at.index(used)..(at.index(used) + length).min(used);
    let after = image.file(name);
    match damage {
        Damage::Flip { at, bit } => after[at.index(used)] ^= 1 << bit,
        Damage::Zero { at, length } => after[range(at, *length)].fill(0),
        Damage::Scramble { at, length, with } => after[range(at, *length)].fill(*with),
        Damage::Repeat { from, at, length } => {
            let (from, at) = (from.index(used) & !7, at.index(used) & !7);
            let length = (*length).min(used - from.max(at));
            after.copy_within(from..from + length, at);
        }
        Damage::Stale { other, at, length } => {
            let range = range(at, *length);
            let stale = image.0[other.get(&segments)][range.clone()].to_vec();
            image.file(name)[range].copy_from_slice(&stale);
        }
        Damage::Truncate { at } => after.truncate(at.index(used)),
        Damage::Remove => drop(image.0.remove(name)),
        Damage::Rename { other, exchange } => {
            let other = other.get(&segments);
            let taken = image.0.insert(other.clone(), before).unwrap();
            if *exchange {
                image.0.insert(name.to_owned(), taken);
            }
        }
    }
}

fn random_cases() -> u32 {
    std::env::var("REMORA_DAMAGE_CASES").map_or(300, |cases| cases.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: random_cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_is_read_over_in_silence(
        groups in prop::collection::vec(prop::collection::vec(0_usize..1200, 1..4), 1..8),
        damages in prop::collection::vec(damages(), 1..3),
        // The last segment, where a tear is possible, as often as all others together.
        (in_last, chosen) in (any::<bool>(), any::<Index>()),
        applied in any::<Index>(),
        note in prop_oneof![Just(Left::AsItWas), Just(Left::Missing), Just(Left::Older)],
    ) {
        let original = Original::write(STORE, 0, &groups);
        let mut image = left(&original, &original.image, note);
        for damage in &damages {
            let segments = image.segments();
            let Some(last) = segments.last() else { break };
            let name = if in_last { last.clone() } else { chosen.get(&segments).clone() };
            let used = (original.used(&name) + 40).min(image.0[&name].len());
            if used > 0 {
                inflict(&mut image, damage, &name, used);
            }
        }
        let applied = applied.index(original.records.len() + 1) as u64;
        let verdict = judge(&original, &image, applied);
        prop_assert!(verdict.is_ok(), "{verdict:?}");
    }
}

fn file(directory: &Path, first_revision: u64) -> PathBuf {
    directory.join(segment_name(first_revision))
}

/// As a power cut leaves it, before the note was written back.
fn forget(directory: &Path) {
    fs::remove_file(directory.join(NOTE)).unwrap();
}

/// A journal of `count` batches in one segment, and its only file.
fn one_segment(directory: &Path, count: u64) -> (Vec<Written>, PathBuf) {
    append_each(&open(directory).0, count, 100);
    forget(directory);
    (layout(directory), file(directory, 1))
}

fn damage_byte(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
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
        (4, written[4].bytes.start as u64)
    );
    let kept = fs::read(cut.kept_in.unwrap()).unwrap();
    assert!(kept.len() <= written[4].bytes.len());
    assert_eq!(append(&journal, payload(8, 8)), 5);
}

#[test]
fn a_torn_last_batch_is_cut_where_there_is_no_room_to_keep_it() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    damage_byte(&path, written[4].bytes.end - 20);
    arm(directory.path(), Point::CutKept, 0, Action::NoSpace);

    let (journal, recovery) = open(directory.path());
    disarm(directory.path());
    let cut = recovery.cut.unwrap();
    assert_eq!((recovery.last_revision, cut.kept_in), (4, None));
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
    assert_eq!(
        (segment, offset),
        (segment_name(1), written[3].bytes.start as u64)
    );
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
        matches!(refused, JournalError::Damaged { offset, .. } if offset == written[4].bytes.start as u64)
    );
    assert!(Journal::open(directory.path(), applied(4)).is_ok());
}

#[test]
fn a_seal_of_which_a_part_reached_the_disk_is_finished() {
    let original = original(STORE, 0);
    let seals = original.written.iter().filter(|batch| batch.is_seal);
    let applied = original.last_revision();
    for seal in seals {
        for kept in 1..seal.bytes.len() {
            for lost in [
                seal.bytes.start..seal.bytes.start + kept,
                seal.bytes.start + kept..seal.bytes.end,
            ] {
                let mut image = original.image.clone();
                image.file(&seal.segment)[lost].fill(0);
                assert_eq!(judge(&original, &image, applied), Ok(Verdict::Whole));
                let left = &image.file(&seal.segment)[seal.bytes.clone()];
                if left.iter().all(|byte| *byte == 0) {
                    continue; // It was never begun.
                }
                let directory = scratch();
                image.write(directory.path());
                drop(Journal::open(directory.path(), small_segments()).unwrap());
                let (found, whole) = (Image::read(directory.path()), &original.image);
                assert!(found.0[&seal.segment] == whole.0[&seal.segment]);
            }
        }
        let mut image = original.image.clone();
        image.file(&seal.segment)[seal.bytes.end - 1] ^= 1;
        assert_eq!(judge(&original, &image, applied), Ok(Verdict::Refused));
    }
}

/// A batch's checksum holds at its own place only, so that a copy of it is as little a batch as any other bytes.
#[test]
fn a_copy_of_a_batch_behind_the_last_one_is_cut_and_proves_nothing() {
    let directory = tempdir().unwrap();
    let (written, path) = one_segment(directory.path(), 5);
    let (copied, end) = (&written[2].bytes, written[4].bytes.end);
    let mut bytes = fs::read(&path).unwrap();
    bytes.copy_within(copied.clone(), end);
    fs::write(&path, bytes).unwrap();

    let (_, recovery) = open(directory.path());
    assert_eq!(
        (recovery.last_revision, recovery.cut.unwrap().offset),
        (5, end as u64)
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
    let last = layout(directory.path()).pop().unwrap().segment;
    fs::remove_file(directory.path().join(last)).unwrap();
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

/// After a kill the note is as new as the last sync, so that not even zeros pass for what was never written.
#[test]
fn a_process_killed_after_its_last_sync_leaves_no_end_that_may_be_torn() {
    let directory = tempdir().unwrap();
    append_each(&open(directory.path()).0, 5, 100);
    let last = layout(directory.path()).pop().unwrap().bytes;
    let path = file(directory.path(), 1);
    let mut bytes = fs::read(&path).unwrap();
    bytes[last.clone()].fill(0);
    fs::write(&path, bytes).unwrap();

    let refused = refusal(directory.path(), small_segments());
    assert!(
        matches!(&refused, JournalError::Damaged { offset, reason, .. }
            if *offset == last.start as u64 && reason.contains("revision 5 was acknowledged")),
        "{refused}"
    );
}

#[test]
fn a_journal_whose_segments_are_all_gone_is_not_begun_anew() {
    let directory = tempdir().unwrap();
    let ours = Options {
        store_id: Some(STORE),
        ..small_segments()
    };
    append_each(
        &Journal::open(directory.path(), ours.clone()).unwrap().0,
        5,
        100,
    );
    fs::remove_file(file(directory.path(), 1)).unwrap();
    assert!(matches!(
        refusal(directory.path(), ours),
        JournalError::Short {
            last: 0,
            published: 5
        }
    ));
}

#[test]
fn opening_tells_how_far_the_journal_was_applied_before() {
    let directory = tempdir().unwrap();
    let (journal, recovery) = open(directory.path());
    assert_eq!(recovery.note, Note::Absent);
    append_each(&journal, 5, 100);
    journal.mark_applied(4);
    drop(journal);

    let (_, recovery) = open(directory.path());
    let reached = Reached {
        published: 5,
        applied: 4,
    };
    assert_eq!(recovery.note, Note::Found(reached));
}
