//! What must come of opening a damaged journal, whatever was done to it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::super::reach::Note;
use super::super::super::{Inspection, inspect, salvage};
use super::super::*;
use super::image::{Image, Original, Written, scratch};

/// What came of it, where that was right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Whole,
    Cut,
    /// Nothing told that the end, zeros from the border of a batch on, had been written. Only after a power cut.
    LooksUnwritten,
    Refused,
}

macro_rules! require {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(format!($($text)+));
        }
    };
}

/// Opens the image as a journal of which `applied` was applied. The error says what was wrong about that.
pub(super) fn judge(original: &Original, image: &Image, applied: u64) -> Result<Verdict, String> {
    let directory = scratch();
    image.write(directory.path());
    let trial = Trial {
        original,
        image,
        directory: directory.path(),
        options: Options {
            applied_revision: applied,
            store_id: Some(original.store_id),
            ..small_segments()
        },
    };
    catch_unwind(AssertUnwindSafe(|| trial.run()))
        .unwrap_or_else(|_| Err("reading it panicked".to_owned()))
}

struct Trial<'a> {
    original: &'a Original,
    image: &'a Image,
    directory: &'a Path,
    options: Options,
}

impl Trial<'_> {
    fn run(&self) -> Result<Verdict, String> {
        let inspection = self.inspect()?;
        match Journal::open(self.directory, self.options.clone()) {
            Err(error) => self.check_refusal(&error, &inspection),
            Ok((journal, recovery)) => {
                require!(
                    !inspection.is_refused(),
                    "opened, but the inspection says {:?}",
                    inspection.findings
                );
                self.check_records(&journal, &recovery)?;
                let verdict = self.check_end(&recovery)?;
                self.check_going_on(journal, &recovery)?;
                Ok(verdict)
            }
        }
    }

    /// What is salvaged is what was written, and looking changes nothing.
    fn inspect(&self) -> Result<Inspection, String> {
        let mut kept = Vec::new();
        let salvaged = salvage(self.directory, &self.options, |record| {
            kept.push(record);
            ControlFlow::Continue(())
        });
        let salvaged = salvaged.map_err(|error| format!("cannot be salvaged: {error}"))?;
        let revisions: BTreeSet<_> = kept.iter().map(|record| record.revision).collect();
        require!(kept.is_sorted_by_key(|record| record.revision), "order");
        require!(revisions.len() == kept.len(), "a record twice");
        for record in &kept {
            let written = self.original.records.get(record.revision as usize - 1);
            require!(
                written == Some(record),
                "record {} is another",
                record.revision
            );
        }
        let mut missing = salvaged.missing.iter();
        let both = missing.find(|(from, to)| revisions.range(from..=to).next().is_some());
        require!(both.is_none(), "{both:?} are there and missing");
        let inspected = inspect(self.directory, &self.options);
        require!(inspected.as_ref().ok() == Some(&salvaged), "{inspected:?}");
        require!(
            Image::read(self.directory) == *self.image,
            "looking changed a file"
        );
        Ok(salvaged)
    }

    fn check_refusal(
        &self,
        error: &JournalError,
        inspection: &Inspection,
    ) -> Result<Verdict, String> {
        use JournalError::{Behind, Damaged, ForeignStore, Gap, Short, Version};
        require!(
            self.image != &self.original.image,
            "whole, but refused: {error}"
        );
        require!(inspection.is_refused(), "the inspection overlooks: {error}");
        let is_placed = match error {
            Damaged { segment, .. } | ForeignStore { segment, .. } | Version { segment, .. } => {
                self.image.0.contains_key(segment)
            }
            Gap { .. } => true,
            Behind { .. } | Short { .. } => self.image.segments().is_empty(),
            _ => false,
        };
        require!(is_placed, "names no place: {error}");
        require!(
            Image::read(self.directory) == *self.image,
            "refusing changed a file"
        );
        Ok(Verdict::Refused)
    }

    fn check_records(&self, journal: &Journal, recovery: &Recovery) -> Result<(), String> {
        let released = recovery.first_revision - 1;
        require!(
            released <= self.options.applied_revision,
            "a gap before {released}"
        );
        let mut next = released;
        while next < recovery.last_revision {
            let read = journal.records_after(next, 3000);
            let read = read.map_err(|error| format!("opened, then: {error}"))?;
            require!(!read.is_empty(), "nothing after {next}");
            for record in read {
                let written = self.original.records.get(next as usize);
                require!(Some(&record) == written, "record {} is another", next + 1);
                next += 1;
            }
        }
        Ok(())
    }

    /// What is missing is at the end, was not known to have been reached, was damaged, and is reported.
    fn check_end(&self, recovery: &Recovery) -> Result<Verdict, String> {
        let last = recovery.last_revision;
        let published = self.note().reached().published;
        let reached = self.options.applied_revision.max(published);
        require!(last >= reached, "{last} is below {reached}");
        if let Some(cut) = &recovery.cut {
            let range = cut.offset as usize..(cut.offset + cut.bytes) as usize;
            let torn = &self.image.0[&cut.segment][range];
            let kept_in = cut.kept_in.as_ref().ok_or("the cut bytes are not kept")?;
            let kept = std::fs::read(kept_in).map_err(|error| error.to_string())?;
            require!(kept == torn, "the cut bytes are not kept");
        }
        let lost = |batch: &&Written| !batch.is_seal && batch.last_revision > last;
        let Some(first) = self.original.written.iter().find(lost) else {
            let whole = recovery.cut.is_none();
            return Ok(if whole { Verdict::Whole } else { Verdict::Cut });
        };
        for batch in self.original.written.iter().filter(lost) {
            let then = &self.original.image.0[&batch.segment][batch.bytes.clone()];
            let now = self.image.0.get(&batch.segment);
            let now = now.and_then(|file| file.get(batch.bytes.clone()));
            require!(
                now != Some(then),
                "lost though untouched: {}",
                batch.last_revision
            );
        }
        let Some(cut) = &recovery.cut else {
            let behind = self.image.0.get(&first.segment);
            let behind = behind.map(|file| &file[first.bytes.start..]);
            let is_blank = behind.is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0));
            require!(is_blank, "lost from {} on without a report", last + 1);
            return Ok(Verdict::LooksUnwritten);
        };
        let place = (cut.segment.as_str(), cut.offset as usize);
        require!(
            place == (first.segment.as_str(), first.bytes.start),
            "cut at {place:?}"
        );
        Ok(Verdict::Cut)
    }

    /// The note as it was before the journal was opened.
    fn note(&self) -> Note {
        let pristine = scratch();
        self.image.write(pristine.path());
        Note::read(pristine.path(), self.original.store_id).unwrap_or(Note::Absent)
    }

    /// The journal takes the next record, and has it after the next opening.
    fn check_going_on(&self, journal: Journal, recovery: &Recovery) -> Result<(), String> {
        let revision = append(&journal, payload(7, 70));
        require!(
            revision == recovery.last_revision + 1,
            "went on at {revision}"
        );
        drop(journal);
        let again = Journal::open(self.directory, self.options.clone());
        let (journal, again) = again.map_err(|error| format!("then refused: {error}"))?;
        require!(again.cut.is_none(), "cut twice");
        require!(again.last_revision == revision, "lost what was appended");
        let read = journal.records_after(revision - 1, 1000);
        let read = read.map_err(|error| error.to_string())?;
        require!(read[0].payload == payload(7, 70), "another payload");
        Ok(())
    }
}
