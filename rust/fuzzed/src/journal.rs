//! Any bytes as a journal: opening it never panics and never takes more memory than its files, what is read is what was
//! written, and what is missing is reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use remora_journal::{Journal, Options, Record, Recovery};

use crate::input::Input;
use crate::segments::{Field, Forged, SEGMENT_BYTES, STORE, SegmentWriter, Written, payload};

const PATIENCE: Duration = Duration::from_secs(300);
/// Revisions at which a journal begins: the first, one in the middle of its life, a high one, and one too high.
const BEGINNINGS: [u64; 4] = [1, 1000, 1 << 61, u64::MAX];

/// A journal as it was written.
struct Original {
    records: Vec<Record>,
    segments: Vec<(u64, Written)>,
    /// Whether fields were forged, under right checksums: then the records are not those above.
    is_forged: bool,
}

/// Writes the journal that the bytes describe, damages it as they say, and opens it; one in four is written on, which is
/// slow where many threads want the processor.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let directory = scratch();
    let original = write(&mut input, directory.path());
    let applied_revision = match input.byte() {
        0..128 => 0,
        _ => original.first().saturating_add(input.below(32) as u64) - 1,
    };
    damage(&mut input, directory.path());
    let options = options(applied_revision);
    let before = files(directory.path());
    match Journal::open(directory.path(), options.clone()) {
        Ok((journal, recovery)) => {
            examine(&journal, &recovery, &original, &before);
            if bytes.len().is_multiple_of(4) {
                go_on(journal, &recovery, directory.path(), options);
            }
        }
        Err(refusal) => {
            assert_eq!(files(directory.path()), before, "changed, though {refusal}");
            assert!(
                original.is_forged
                    || before != original.files()
                    || !original.holds(applied_revision),
                "nothing was wrong, but {refusal}"
            );
        }
    }
}

fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    }
    .expect("a directory")
}

fn options(applied_revision: u64) -> Options {
    Options {
        segment_bytes: SEGMENT_BYTES as u64,
        queue_bytes: SEGMENT_BYTES,
        store_id: Some(STORE),
        applied_revision,
        ..Options::default()
    }
}

fn path_of(directory: &Path, first_revision: u64) -> PathBuf {
    directory.join(format!("{first_revision:020}.journal"))
}

fn write(input: &mut Input<'_>, directory: &Path) -> Original {
    let mut first_revision = BEGINNINGS[input.below(BEGINNINGS.len())];
    let count = 1 + input.below(3);
    let mut original = Original {
        records: Vec::new(),
        segments: Vec::new(),
        is_forged: first_revision > 1000,
    };
    for index in 0..count {
        let batches = batches(input);
        let forged = forged(input);
        let segment = SegmentWriter {
            first_revision,
            batches: &batches,
            sealed: index + 1 < count,
            forged: &forged,
        };
        original.is_forged |= !forged.is_empty();
        let written = segment.write();
        fs::write(path_of(directory, first_revision), &written.bytes).expect("written");
        original.segments.push((first_revision, written));
        for length in batches.into_iter().flatten() {
            let payload = payload(first_revision, length).into();
            original.records.push(Record {
                revision: first_revision,
                payload,
            });
            first_revision = first_revision.wrapping_add(1);
        }
    }
    original
}

/// The lengths of the payloads of each batch of a segment.
fn batches(input: &mut Input<'_>) -> Vec<Vec<usize>> {
    let count = 1 + input.below(4);
    let lengths = |input: &mut Input<'_>| (0..=input.below(3)).map(|_| input.below(700)).collect();
    (0..count).map(|_| lengths(input)).collect()
}

fn forged(input: &mut Input<'_>) -> Forged {
    let mut forged = Forged::new();
    while input.byte() > 200 {
        let batch = input.below(5);
        let field = match input.below(9) {
            0 => Field::Version,
            1 => Field::StoreId,
            2 => Field::SegmentFirstRevision,
            3 => Field::SegmentBytes,
            4 => Field::BodyBytes(batch),
            5 => Field::RecordCount(batch),
            6 => Field::BatchFirstRevision(batch),
            7 => Field::PayloadBytes(batch),
            _ => Field::RecordRevision(batch),
        };
        forged.insert(field, input.number());
    }
    forged
}

/// Changes the files until the bytes end.
fn damage(input: &mut Input<'_>, directory: &Path) {
    while !input.is_empty() {
        let names = names(directory);
        let Some(path) = names.get(input.below(names.len())) else {
            return;
        };
        let mut bytes = fs::read(path).expect("read");
        let at = input.below(bytes.len());
        let length = input.below(4096).min(bytes.len() - at);
        match input.byte() % 9 {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << (input.byte() % 8),
            1 => bytes[at..at + length].fill(0),
            2 => {
                let given = input.bytes(length);
                bytes[at..at + given.len()].copy_from_slice(given);
            }
            3 => bytes.copy_within(at..at + length, 0),
            4 => bytes.truncate(at),
            5 => bytes.extend(vec![0; length]),
            6 => bytes = input.bytes(usize::MAX).to_vec(),
            7 => {
                let to = path_of(directory, input.number());
                fs::rename(path, to).expect("renamed");
                continue;
            }
            _ => {
                fs::remove_file(path).expect("removed");
                continue;
            }
        }
        fs::write(path, bytes).expect("written");
    }
}

fn names(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("listed");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("listed").path())
        .filter(|path| path.extension().is_some_and(|suffix| suffix == "journal"))
        .collect();
    names.sort();
    names
}

fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let name = |path: &Path| {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into()
    };
    let read = |path: PathBuf| (name(&path), fs::read(&path).expect("read"));
    names(directory).into_iter().map(read).collect()
}

impl Original {
    fn first(&self) -> u64 {
        self.segments[0].0
    }

    fn holds(&self, applied: u64) -> bool {
        (self.first() - 1..self.first() + self.records.len() as u64).contains(&applied)
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let file = |(first, written): &(u64, Written)| {
            (format!("{first:020}.journal"), written.bytes.clone())
        };
        self.segments.iter().map(file).collect()
    }

    /// Where a record's batch begins in the files, which begin with `segment`.
    fn batch_of(&self, revision: u64) -> (u64, usize) {
        let mut next = self.first();
        for (first, written) in &self.segments {
            for (begin, _) in &written.batches {
                let records = self.records_at(*first, *begin);
                if revision < next + records {
                    return (*first, *begin);
                }
                next += records;
            }
        }
        panic!("revision {revision} was not written");
    }

    fn records_at(&self, segment: u64, begin: usize) -> u64 {
        let (_, written) = self
            .segments
            .iter()
            .find(|(first, _)| *first == segment)
            .expect("written");
        let count = &written.bytes[begin + 16..begin + 20];
        u32::from_le_bytes(count.try_into().expect("four bytes")).into()
    }
}

/// What was read is a beginning of what was written, and the rest is reported, or was never there for all one can see.
fn examine(
    journal: &Journal,
    recovery: &Recovery,
    original: &Original,
    before: &[(String, Vec<u8>)],
) {
    let read = read_all(journal, recovery.first_revision - 1);
    assert_eq!(
        read.len() as u64,
        recovery.last_revision + 1 - recovery.first_revision
    );
    let was_written = |name: &String| original.files().iter().any(|(known, _)| known == name);
    let is_original = before.iter().all(|(name, _)| was_written(name));
    // A directory without any segment is that of a journal that was never begun.
    let Some((last, bytes)) = before.last().filter(|_| is_original && !original.is_forged) else {
        return;
    };
    let skipped = recovery.first_revision.checked_sub(original.first());
    let Some(rest) = skipped.and_then(|skipped| original.records.get(skipped as usize..)) else {
        panic!("begins at {}", recovery.first_revision);
    };
    assert_eq!(read, rest[..read.len()]);
    let Some(lost) = rest.get(read.len()) else {
        return;
    };
    let (segment, begin) = original.batch_of(lost.revision);
    assert_eq!(
        *last,
        format!("{segment:020}.journal"),
        "lost from an earlier segment"
    );
    match &recovery.cut {
        Some(cut) => assert_eq!((&cut.segment, cut.offset), (last, begin as u64)),
        None => assert!(
            bytes[begin..].iter().all(|byte| *byte == 0),
            "lost in silence"
        ),
    }
}

fn read_all(journal: &Journal, mut revision: u64) -> Vec<Record> {
    let mut records = Vec::new();
    loop {
        let read = journal
            .records_after(revision, 3000)
            .expect("what was checked can be read");
        let Some(last) = read.last() else {
            return records;
        };
        revision = last.revision;
        records.extend(read);
    }
}

/// A journal that was opened takes records, and opens again as it was.
fn go_on(journal: Journal, recovery: &Recovery, directory: &Path, options: Options) {
    let after = recovery.first_revision - 1;
    let mut records = read_all(&journal, after);
    if let Ok(revision) = journal.submit_with(payload(1, 70), |_| ()) {
        assert_eq!(revision, recovery.last_revision + 1);
        journal.wait(revision, Some(PATIENCE)).expect("published");
        records = read_all(&journal, after);
        assert_eq!(records.last().expect("a record").revision, revision);
    }
    drop(journal);
    let (journal, again) = Journal::open(directory, options).expect("opens again");
    assert_eq!(again.cut, None);
    assert_eq!(read_all(&journal, after), records);
}
