//! Rows against small records; what the database makes of them, tests of the store compare with its model.

#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

mod records;

use remora_wire::Change;

use super::*;

fn record(kinds: impl IntoIterator<Item = Kind>) -> Bytes {
    let record = Record {
        tenant_id: "tenant".to_owned(),
        changes: kinds.into_iter().map(Change::from).collect(),
        ..Record::default()
    };
    record.encode_to_vec().into()
}

fn rows(records: impl IntoIterator<Item = Bytes>) -> Rows {
    let mut rows = Rows::new(Kinds::default());
    for (revision, payload) in (1..).zip(records) {
        rows.add(revision, payload).unwrap();
    }
    rows
}

fn message(uid: Uid, sequence: u64, text: &str) -> Kind {
    let fields = Message {
        text: text.to_owned(),
        ..Message::default()
    };
    Kind::PutMessage(PutMessage {
        conversation_uid: uid,
        sequence,
        user_id: "user".to_owned(),
        body: fields.encode_to_vec().into(),
        ..PutMessage::default()
    })
}

fn with_vector(kind: Kind, replaces: bool) -> Kind {
    let Kind::PutMessage(put) = kind else {
        return kind;
    };
    Kind::PutMessage(PutMessage {
        embedding_model: "model".to_owned(),
        embedding: vec![0; 8].into(),
        replaces,
        ..put
    })
}

fn embedding(uid: Uid, sequence: u64, message_revision: u64) -> Kind {
    Kind::PutEmbedding(PutEmbedding {
        conversation_uid: uid,
        sequence,
        message_revision,
        model: "model".to_owned(),
        values: vec![1; 12].into(),
        pieces: Some(Bytes::new()),
        ..PutEmbedding::default()
    })
}

fn removal(uid: Uid, sequences: Vec<u64>) -> Kind {
    Kind::RemoveMessages(RemoveMessages {
        conversation_uid: uid,
        all: sequences.is_empty(),
        sequences,
        user_id: "user".to_owned(),
        ..RemoveMessages::default()
    })
}

fn numbers(column: &Column) -> Vec<u64> {
    let numbers = column.values.chunks_exact(8);
    numbers
        .map(|number| u64::from_ne_bytes(number.try_into().unwrap()))
        .collect()
}

fn texts(column: &Column) -> Vec<&str> {
    let ends = column.offsets.as_ref().unwrap().chunks_exact(8);
    let ends: Vec<_> = ends
        .map(|end| i64::from_ne_bytes(end.try_into().unwrap()) as usize)
        .collect();
    let texts = ends.windows(2).map(|ends| &column.values[ends[0]..ends[1]]);
    texts
        .map(|text| std::str::from_utf8(text).unwrap())
        .collect()
}

#[test]
fn a_uid_of_zero_is_the_revision_of_the_record() {
    let rows = rows([
        record([message(0, 1, "a")]),
        record([message(0, 1, "b"), message(9, 2, "c")]),
    ]);
    let table = rows.messages();
    assert_eq!(table.rows, 3);
    assert_eq!(numbers(&table.columns[1]), [1, 2, 9]);
    assert_eq!(numbers(&table.columns[3]), [1, 2, 2]);
    assert_eq!(texts(&table.columns[0]), ["tenant"; 3]);
    assert_eq!(texts(&table.columns[8]), ["a", "b", "c"]);
}

#[test]
fn the_last_change_of_a_row_wins() {
    let rows = rows([
        record([message(5, 1, "first")]),
        record([message(5, 1, "last")]),
    ]);
    assert_eq!(texts(&rows.messages().columns[8]), ["last"]);
    assert_eq!(rows.moved().rows, 0);
}

#[test]
fn a_message_that_replaces_another_takes_its_place_and_its_vector() {
    let rows = rows([
        record([with_vector(message(5, 1, "first"), false)]),
        record([with_vector(message(5, 1, "last"), true)]),
    ]);
    assert_eq!(numbers(&rows.moved().columns[1]), [1]);
    let embeddings = rows.embeddings();
    assert_eq!(numbers(&embeddings.columns[3]), [2]);
    assert_eq!(embeddings.columns[5].values, [1]);
    assert_eq!(
        numbers(
            embeddings.columns[7]
                .offsets
                .as_ref()
                .map(|offsets| Column {
                    values: offsets.clone(),
                    ..Column::default()
                })
                .as_ref()
                .unwrap()
        ),
        [0, 2]
    );
}

#[test]
fn the_callers_vector_of_a_text_stays_and_a_newer_texts_wins() {
    let put = || record([with_vector(message(5, 1, "text"), false)]);
    let by_caller = |record| rows([put(), record]).embeddings().columns[5].values.clone();
    assert_eq!(by_caller(record([embedding(5, 1, 1)])), [1]);
    assert_eq!(by_caller(record([embedding(5, 1, 2)])), [0]);
}

#[test]
fn pieces_that_were_made_of_nothing_are_not_missing() {
    let made = rows([record([embedding(5, 1, 1)])]).embeddings();
    assert_eq!(made.columns[8].validity, Some(vec![1]));
    let missing = rows([record([with_vector(message(5, 1, "text"), false)])]).embeddings();
    assert_eq!(missing.columns[8].validity, Some(vec![0]));
}

#[test]
fn messages_that_go_take_their_vectors_along() {
    let put = |uid| {
        record([
            with_vector(message(uid, 1, "text"), false),
            message(uid, 2, "kept"),
        ])
    };
    let some = rows([put(5), record([removal(5, vec![1, 7])])]);
    assert_eq!(texts(&some.messages().columns[8]), ["kept"]);
    assert_eq!(some.embeddings().rows, 0);
    assert_eq!(numbers(&some.moved().columns[1]), [1, 7]);
    let all = rows([put(5), put(6), record([removal(5, vec![])])]);
    assert_eq!(numbers(&all.messages().columns[1]), [6, 6]);
    assert_eq!(texts(&all.cleared().columns[1]), ["user"]);
}

#[test]
fn a_conversation_goes_with_all_it_holds() {
    let head = |uid| {
        Kind::PutHead(PutHead {
            conversation_uid: uid,
            ..PutHead::default()
        })
    };
    let row = |uid| {
        Kind::PutConversation(PutConversation {
            conversation_uid: uid,
            ..PutConversation::default()
        })
    };
    let put = |uid| {
        record([
            row(uid),
            head(uid),
            with_vector(message(uid, 1, "text"), false),
        ])
    };
    let gone = remora_wire::DeleteConversation {
        conversation_uid: 5,
        ..Default::default()
    };
    let rows = rows([put(5), put(6), record([Kind::DeleteConversation(gone)])]);
    for table in [
        rows.conversations(),
        rows.heads(),
        rows.messages(),
        rows.embeddings(),
    ] {
        assert_eq!(table.rows, 1);
    }
    assert_eq!(numbers(&rows.deleted().columns[0]), [5]);
}

#[test]
fn a_request_keeps_its_outcome_as_it_is() {
    let asked = Record {
        request_id: "request".to_owned(),
        outcome: Bytes::from_static(b"outcome"),
        ..Record::default()
    };
    let rows = rows([asked.encode_to_vec().into(), record([])]);
    let table = rows.requests();
    assert_eq!(table.rows, 1);
    assert_eq!(texts(&table.columns[5]), ["outcome"]);
}

#[test]
fn an_unknown_change_and_a_broken_record_are_refused() {
    let unknown = Record {
        changes: vec![Change::default()],
        ..Record::default()
    };
    let added = Rows::new(Kinds::default()).add(3, unknown.encode_to_vec().into());
    assert!(matches!(added, Err(RowsError::UnknownChange(3))));
    let added = Rows::new(Kinds::default()).add(4, Bytes::from_static(b"\x0a\xff"));
    assert!(matches!(added, Err(RowsError::Malformed(4, _))));
}
