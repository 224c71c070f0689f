//! Pages: their bounds, their filters and what they say is cold.

use remora_wire as wire;

use super::model::TURNS;
use super::residency::{Keeper, turn};
use crate::records::*;

/// Ten turns whose numbers go up and down, all in memory.
fn keeper() -> Keeper {
    let mut keeper = Keeper::new(1 << 20);
    for number in 0..10_u8 {
        let put = turn(7, b"a", &[number], i64::from(number % 3));
        let wire::Kind::PutRecord(put) = put else {
            unreachable!("a turn is put");
        };
        keeper.commit(wire::Kind::PutRecord(wire::PutRecord {
            body: vec![number; 10].into(),
            upload_id: String::new(),
            ..put
        }));
    }
    load(&keeper, Extent::Whole);
    keeper
}

fn load(keeper: &Keeper, extent: Extent) {
    let loaded = Loaded {
        records: Vec::new(),
        absent: Vec::new(),
        extent,
        as_of: 0,
    };
    assert!(keeper.records.load(&keeper.place(TURNS, 7, b"a"), loaded));
}

fn list(keeper: &Keeper, selection: &Selection) -> Result<(Vec<u8>, bool), Cold> {
    let place = keeper.place(TURNS, 7, b"a");
    let page = keeper.records.list(&place, selection, || keeper.revision)?;
    let keys = page.records.iter().map(|record| record.key[0]);
    Ok((keys.collect(), page.more))
}

fn limited(limit: usize) -> Selection {
    Selection {
        limit,
        max_bytes: usize::MAX,
        ..Selection::default()
    }
}

#[test]
fn a_page_ends_where_its_bytes_do_but_has_one_record() {
    let keeper = keeper();
    // A body of 10 bytes is an entry of 12.
    let bytes = |max_bytes| {
        let selection = Selection {
            max_bytes,
            ..limited(usize::MAX)
        };
        list(&keeper, &selection).unwrap()
    };
    assert_eq!(bytes(0), (vec![0], true));
    assert_eq!(bytes(24), (vec![0, 1], true));
    assert_eq!(bytes(35), (vec![0, 1], true));
    assert!(!bytes(120).1);
}

#[test]
fn a_further_order_has_equal_records_as_they_were_written() {
    let keeper = keeper();
    let selection = Selection {
        order: 1,
        ..limited(5)
    };
    assert_eq!(list(&keeper, &selection), Ok((vec![0, 3, 6, 9, 1], true)));
    let newest = Selection {
        newest: true,
        skip: 1,
        ..selection
    };
    assert_eq!(list(&keeper, &newest), Ok((vec![1, 4, 7, 2, 5], true)));
}

#[test]
fn a_page_goes_on_behind_a_position() {
    let keeper = keeper();
    let place = keeper.place(TURNS, 7, b"a");
    let first = Selection {
        order: 1,
        ..limited(4)
    };
    let page = keeper.records.list(&place, &first, || keeper.revision);
    let last = page.unwrap().records.pop().unwrap();
    let after = Position::Columns {
        values: Box::new([last.held.content.columns[1].clone()]),
        revision: last.revision,
        ordinal: last.held.content.ordinal,
    };
    let next = Selection {
        after: Some(after),
        ..first
    };
    assert_eq!(list(&keeper, &next), Ok((vec![1, 4, 7, 2], true)));
}

#[test]
fn columns_are_filtered_by_what_they_hold() {
    let keeper = keeper();
    let filtered = |filters: &[(usize, Value)]| {
        let selection = Selection {
            filters: filters.to_vec(),
            ..limited(usize::MAX)
        };
        list(&keeper, &selection).unwrap().0
    };
    assert_eq!(filtered(&[(1, Value::Integer(2))]), [2, 5, 8]);
    assert_eq!(filtered(&[(0, Value::Text("text".into()))]).len(), 10);
    assert!(filtered(&[(0, Value::Null)]).is_empty());
    let both = [(0, Value::Text("other".into())), (1, Value::Integer(2))];
    assert!(filtered(&both).is_empty());
}

#[test]
fn bodies_are_served_as_entries_of_a_list() {
    let keeper = keeper();
    let place = keeper.place(TURNS, 7, b"a");
    let page = keeper
        .records
        .list(&place, &limited(2), || keeper.revision)
        .unwrap();
    let mut encoded = Vec::new();
    page.encode(&mut encoded);
    assert!(page.is_held());
    assert_eq!(encoded.len(), page.encoded_len());
    assert_eq!(encoded[..12], [&[10, 10][..], &[0; 10]].concat());
}

/// Of a thread of which the newest are in memory, the newest are read from there.
#[test]
fn the_newest_are_read_where_only_they_are_in_memory() {
    let mut keeper = Keeper::new(1 << 20);
    for number in 0..10_u8 {
        keeper.commit(turn(7, b"a", &[number], i64::from(number)));
    }
    let from = |number| Position::Columns {
        values: Box::new([Value::Integer(number)]),
        revision: 0,
        ordinal: 0,
    };
    let newest = |limit| Selection {
        order: 1,
        newest: true,
        ..limited(limit)
    };
    assert_eq!(list(&keeper, &newest(1)), Err(Cold { after: None }));
    load(
        &keeper,
        Extent::Range {
            order: 1,
            from: from(6),
            to: None,
        },
    );
    assert_eq!(list(&keeper, &newest(3)), Ok((vec![7, 8, 9], true)));
    let cold = Cold {
        after: Some(from(6)),
    };
    assert_eq!(list(&keeper, &newest(4)), Err(cold.clone()));
    let bounded = Selection {
        after: Some(from(7)),
        ..newest(9)
    };
    assert_eq!(list(&keeper, &bounded), Ok((vec![7, 8, 9], false)));
    assert_eq!(list(&keeper, &limited(1)), Err(Cold { after: None }));

    load(
        &keeper,
        Extent::Range {
            order: 1,
            from: from(2),
            to: Some(from(5)),
        },
    );
    assert_eq!(list(&keeper, &newest(4)), Err(cold), "a gap is left");
    load(
        &keeper,
        Extent::Range {
            order: 1,
            from: from(2),
            to: Some(from(6)),
        },
    );
    assert_eq!(list(&keeper, &newest(4)), Ok((vec![6, 7, 8, 9], true)));
}

#[test]
fn values_are_ordered_as_the_database_orders_them() {
    let ascending = [
        Value::number(f64::NEG_INFINITY),
        Value::number(-1.5),
        Value::number(0.0),
        Value::number(f64::MIN_POSITIVE),
        Value::number(f64::INFINITY),
    ];
    assert!(ascending.is_sorted_by(|left, right| left < right));
    assert_eq!(Value::number(-0.0), Value::number(0.0));
    assert!(Value::Text("Z".into()) < Value::Text("a".into()));
    assert!(Value::Text("a".into()) < Value::Text("ä".into()));
    assert!(Value::Data(b"a".as_slice().into()) < Value::Data(b"a\0".as_slice().into()));
    assert!(Value::Boolean(false) < Value::Boolean(true));
}
