//! How long reads of records in memory take: `cargo run --release --package remora-core --example record_reads -- [keys of a partition]`.

use std::time::{Duration, Instant};

use remora_core::records::{
    ColumnType, Content, Extent, Kind, Kinds, Loaded, LoadedRecord, Place, Records, Selection,
    Value,
};

const BODY_BYTES: usize = 600;
const STATUSES: i64 = 5;

fn main() {
    let keys = std::env::args().nth(1);
    let keys = keys.map_or(20_000, |keys| keys.parse().expect("a number of keys"));
    let kind = Kind {
        number: 1,
        columns: vec![ColumnType::Integer],
        orders: vec![vec![], vec![0]],
        of_conversation: false,
        of_user: true,
        is_searched: false,
        holds_items: false,
    };
    let kinds = Kinds::new([kind]).expect("one kind");
    let records = Records::new(kinds, 1 << 30, 0);
    let kind = records.kinds().get(1).expect("the kind");
    let place = Place {
        kind,
        tenant: "acme",
        conversation_uid: 0,
        partition: b"thread",
    };
    let loaded = load(keys);
    let start = Instant::now();
    assert!(records.load(&place, loaded));
    println!("load of {keys} keys: {:.1?}", start.elapsed());
    println!("bytes a key: {}", records.bytes() / keys as usize);

    let newest = Selection {
        order: 1,
        newest: true,
        limit: 10,
        max_bytes: usize::MAX,
        ..Selection::default()
    };
    let by_status = Selection {
        filters: vec![(0, Value::Integer(3))],
        ..newest.clone()
    };
    let rare = Selection {
        filters: vec![(0, Value::Integer(STATUSES))],
        ..newest.clone()
    };
    let list = |selection: &Selection| {
        let page = records.list(&place, selection, || 1).expect("in memory");
        let mut encoded = Vec::with_capacity(page.encoded_len());
        page.encode(&mut encoded);
    };
    let mut next = 0_u32;
    measure("get", || {
        next = next.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let key = (next % keys).to_be_bytes();
        let found = records.get(&place, &key, 0, || 1).expect("in memory");
        assert!(found.0.is_some());
    });
    measure("newest 10", || list(&newest));
    measure("newest 10 of a fifth", || list(&by_status));
    measure("newest 10 where none passes", || list(&rare));
    measure("count of a fifth", || {
        let counted = records.count_records(&place, &by_status.filters, 0, || 1);
        assert!(counted.expect("in memory").0 > 0);
    });
}

fn load(keys: u32) -> Loaded {
    let record = |number: u32| LoadedRecord {
        key: number.to_be_bytes().as_slice().into(),
        revision: 1,
        content: Content {
            ordinal: number,
            user: "ann".into(),
            upload_id: "".into(),
            columns: Box::new([Value::Integer(i64::from(number) % STATUSES)]),
        },
        expire_time: None,
        body: Some(vec![0; BODY_BYTES].into()),
    };
    Loaded {
        records: (0..keys).map(record).collect(),
        absent: Vec::new(),
        extent: Extent::Whole,
        as_of: 1,
    }
}

/// Prints the mean time of a call over half a second.
fn measure(name: &str, mut call: impl FnMut()) {
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < Duration::from_millis(500) {
        call();
        calls += 1;
    }
    println!("{name}: {:.2?}", start.elapsed() / calls);
}
