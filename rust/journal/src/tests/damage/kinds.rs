//! Every kind of damage to every field, and to segments as a whole.

use super::image::{Field, Image, NOTE, Original, fields};

/// A damaged journal, and what was done to it.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) image: Image,
}

/// What is done to the bytes of a field.
const KINDS: [&str; 12] = [
    "truncated before",
    "truncated inside",
    "zeroed",
    "zeroed from there on",
    "filled with ones",
    "first bit flipped",
    "middle bit flipped",
    "last bit flipped",
    "duplicated behind itself",
    "taken out",
    "swapped with the other segment's",
    "swapped with its neighbour",
];

/// All cases. `other` is another store's journal of the same layout.
pub(super) fn cases(original: &Original, other: &Original) -> Vec<Case> {
    let mut cases = Vec::new();
    for field in fields(original) {
        for kind in KINDS {
            let mut image = original.image.clone();
            damage_field(&mut image, &field, kind);
            let Field { segment, name, .. } = &field;
            add(
                &mut cases,
                original,
                format!("{segment} {name} {kind}"),
                image,
            );
        }
    }
    damage_segments(&mut cases, original, other);
    damage_batches(&mut cases, original, other);
    cases
}

fn add(cases: &mut Vec<Case>, original: &Original, name: String, image: Image) {
    if image != original.image {
        cases.push(Case { name, image });
    }
}

fn damage_field(image: &mut Image, field: &Field, kind: &str) {
    let segments = image.segments();
    let index = segments
        .iter()
        .position(|name| *name == field.segment)
        .unwrap();
    let other = &segments[(index + 1) % segments.len()];
    let (range, length) = (field.bytes.clone(), field.bytes.len());
    let file = image.file(&field.segment);
    let end = file.len();
    match kind {
        "truncated before" => file.truncate(range.start),
        "truncated inside" => file.truncate(range.start + length.div_ceil(2)),
        "zeroed" => file[range].fill(0),
        "zeroed from there on" => file[range.start..].fill(0),
        "filled with ones" => file[range].fill(0xff),
        "first bit flipped" => file[range.start] ^= 1,
        "middle bit flipped" => file[range.start + length / 2] ^= 0x10,
        "last bit flipped" => file[range.end - 1] ^= 0x80,
        "duplicated behind itself" => {
            let copy = file[range.clone()].to_vec();
            file.splice(range.end..range.end, copy);
            file.truncate(end);
        }
        "taken out" => {
            file.drain(range);
            file.resize(end, 0);
        }
        "swapped with the other segment's" => swap(image, &field.segment, other, range),
        "swapped with its neighbour" => {
            let length = length.min(end - range.end);
            let (left, right) = file.split_at_mut(range.end);
            left[range.start..][..length].swap_with_slice(&mut right[..length]);
        }
        _ => unreachable!("{kind}"),
    }
}

fn swap(image: &mut Image, one: &str, other: &str, range: std::ops::Range<usize>) {
    let mine = image.file(one)[range.clone()].to_vec();
    let theirs = image.file(other)[range.clone()].to_vec();
    image.file(one)[range.clone()].copy_from_slice(&theirs);
    image.file(other)[range].copy_from_slice(&mine);
}

fn damage_segments(cases: &mut Vec<Case>, original: &Original, other: &Original) {
    let segments = original.image.segments();
    let mut damaged = |name: String, damage: &dyn Fn(&mut Image)| {
        let mut image = original.image.clone();
        damage(&mut image);
        add(cases, original, name, image);
    };
    for (index, name) in segments.iter().enumerate() {
        let bytes = original.image.0[name].clone();
        damaged(format!("{name} missing"), &|image| {
            image.0.remove(name);
        });
        damaged(format!("{name} and all after it missing"), &|image| {
            segments[index..].iter().for_each(|name| {
                image.0.remove(name);
            });
        });
        damaged(format!("{name} and all before it missing"), &|image| {
            segments[..=index].iter().for_each(|name| {
                image.0.remove(name);
            });
        });
        damaged(format!("{name} empty"), &|image| image.file(name).clear());
        damaged(format!("{name} all zeros"), &|image| {
            image.file(name).fill(0)
        });
        damaged(format!("{name} longer"), &|image| {
            image.file(name).extend([0; 4096]);
        });
        damaged(format!("{name} of another store"), &|image| {
            *image.file(name) = other.image.0[name].clone();
        });
        damaged(format!("batches of {name} of another store"), &|image| {
            let theirs = &other.image.0[name][4096..];
            image.file(name)[4096..].copy_from_slice(theirs);
        });
        for number in [0, 2, 1_000] {
            let renamed = format!("{:020}.journal", number + index * 7);
            damaged(format!("{name} renamed {renamed}"), &|image| {
                image.0.remove(name);
                image.0.insert(renamed.clone(), bytes.clone());
            });
            damaged(format!("{name} copied to {renamed}"), &|image| {
                image.0.insert(renamed.clone(), bytes.clone());
            });
        }
        for second in &segments[index + 1..] {
            damaged(format!("{name} and {second} exchanged"), &|image| {
                let (one, two) = (image.0[name].clone(), image.0[second].clone());
                image.0.insert(name.clone(), two);
                image.0.insert(second.clone(), one);
            });
        }
    }
    damaged("all segments missing, the note too".to_owned(), &|image| {
        image.0.clear();
    });
    damaged("the note damaged".to_owned(), &|image| {
        if let Some(note) = image.0.get_mut(NOTE) {
            note[40] ^= 1;
        }
    });
}

fn damage_batches(cases: &mut Vec<Case>, original: &Original, other: &Original) {
    for pair in original.written.windows(2) {
        let [one, two] = pair else { continue };
        let segment = &one.segment;
        if segment != &two.segment || one.is_seal || two.is_seal {
            continue;
        }
        let mut damaged = |kind: &str, damage: &dyn Fn(&mut Vec<u8>)| {
            let mut image = original.image.clone();
            damage(image.file(segment));
            let name = format!("{segment} batch at {} {kind}", one.bytes.start);
            add(cases, original, name, image);
        };
        damaged("swapped with the next", &|file| {
            file[one.bytes.start..two.bytes.end].rotate_left(one.bytes.len());
        });
        damaged("over the next", &|file| {
            let copy = file[one.bytes.clone()].to_vec();
            file.splice(two.bytes.clone(), copy);
            file.resize(original.image.0[segment].len(), 0);
        });
        damaged("once more behind all", &|file| {
            let copy = file[one.bytes.clone()].to_vec();
            let begin = original.used(segment);
            let fits = copy.len().min(file.len() - begin);
            file[begin..][..fits].copy_from_slice(&copy[..fits]);
        });
        damaged("zeroed with the next", &|file| {
            file[one.bytes.start..two.bytes.end].fill(0);
        });
        damaged("of another store", &|file| {
            let theirs = &other.image.0[segment][one.bytes.clone()];
            file[one.bytes.clone()].copy_from_slice(theirs);
        });
    }
}
