//! What is left of a part when a panic interrupts a change of it, or its load.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Change, Cold, Content, Name, Parts, Shown};

const NAME: Name<'_> = named(b"p");

const fn named(partition: &[u8]) -> Name<'_> {
    Name {
        kind: 1,
        tenant: "t",
        partition,
    }
}

/// Numbers, of which 0 cannot be taken in.
#[derive(Default)]
struct Numbers(Vec<u32>);

struct Number(u32);

impl Change for Number {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl Content for Numbers {
    type Change = Number;

    fn apply(&mut self, change: Number) {
        self.0.push(change.0);
        assert_ne!(change.0, 0, "half of a change");
    }

    fn bytes(&self) -> usize {
        size_of_val(self.0.as_slice())
    }
}

fn load(parts: &Parts<Numbers>, numbers: &[u32]) {
    load_as(parts, &NAME, numbers);
}

fn load_as(parts: &Parts<Numbers>, name: &Name<'_>, numbers: &[u32]) {
    let load = parts.begin(name, "sarah", Numbers::default());
    load.fill(numbers.iter().copied().map(Number));
    load.finish();
}

fn read(parts: &Parts<Numbers>, published: u64) -> Result<Shown<Vec<u32>>, Cold> {
    parts.read(&NAME, || published, |numbers| numbers.0.clone())
}

fn panics<T>(call: impl FnOnce() -> T) -> bool {
    catch_unwind(AssertUnwindSafe(call)).is_err()
}

#[test]
fn half_of_a_change_is_never_shown_and_the_part_is_loaded_again() {
    let parts = Parts::new(1 << 20);
    load(&parts, &[1]);
    for (number, revision) in [(2, 1), (0, 2), (3, 3)] {
        parts.deliver(&NAME, Number(number), revision);
    }
    assert_eq!(read(&parts, 1).map(|shown| shown.found), Ok(vec![1, 2]));

    assert!(panics(|| read(&parts, 3)));

    assert_eq!(read(&parts, 3), Err(Cold));
    assert_eq!(read(&parts, 1), Err(Cold));
    load(&parts, &[1, 2, 3]);
    parts.deliver(&NAME, Number(4), 4);
    let shown = read(&parts, 4);
    assert_eq!(shown.map(|shown| shown.found), Ok(vec![1, 2, 3, 4]));
}

#[test]
fn a_part_that_panics_while_it_is_settled_holds_up_no_other() {
    let parts = Parts::new(1 << 20);
    let changes = [(named(b"before"), 2), (NAME, 0), (named(b"behind"), 2)];
    for (name, number) in &changes {
        load_as(&parts, name, &[1]);
        parts.deliver(name, Number(*number), 1);
    }
    let waiting = parts.statistics().bytes;

    parts.settle(1);

    let taken_in = changes.len() * size_of::<(u64, Number)>() - 2 * size_of::<u32>();
    assert_eq!(parts.statistics().bytes, waiting - taken_in);
    assert_eq!(read(&parts, 1), Err(Cold));
    load(&parts, &[5]);
    assert_eq!(read(&parts, 1).map(|shown| shown.found), Ok(vec![5]));
}

#[test]
fn a_load_that_panics_is_made_again() {
    let parts = Parts::new(1 << 20);

    assert!(panics(|| load(&parts, &[1, 0, 2])));

    assert_eq!(read(&parts, 1), Err(Cold));
    load(&parts, &[1, 2]);
    assert_eq!(read(&parts, 1).map(|shown| shown.found), Ok(vec![1, 2]));
}
