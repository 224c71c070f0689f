//! Messages, entries and times that come back as they were.
#![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use proptest::prelude::*;
use prost::Message as _;

use super::*;

/// A list of messages as clients read it.
#[derive(Clone, PartialEq, prost::Message)]
struct Listed {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<Message>,
}

fn scalars() -> impl Strategy<Value = Scalar> {
    let kinds = prop_oneof![
        Just(ScalarKind::Null(0)),
        any::<bool>().prop_map(ScalarKind::Boolean),
        any::<i64>().prop_map(ScalarKind::Integer),
        any::<i32>().prop_map(|number| ScalarKind::Number(number.into())),
        ".*".prop_map(ScalarKind::Text),
    ];
    kinds.prop_map(|kind| Scalar { kind: Some(kind) })
}

/// Messages with the fields that a caller sets.
fn callers() -> impl Strategy<Value = Message> {
    let attributes = prop::collection::btree_map(".{0,4}", scalars(), 0..4);
    let sent_time = prop::option::of(any::<i32>());
    (".*", ".*", ".*", attributes, sent_time).prop_map(|(role, name, text, attributes, time)| {
        Message {
            role,
            name,
            text,
            attributes,
            sent_time: time.map(|time| Timestamp::from_micros(time.into())),
            ..Message::default()
        }
    })
}

proptest! {
    #[test]
    fn a_stored_message_reads_as_the_fields_of_both(
        caller in callers(),
        id in ".*",
        sequence in any::<u64>(),
        revision in any::<u64>(),
        time in -(1_i64 << 62)..1 << 62,
        token_count in any::<i32>(),
    ) {
        let put = PutMessage {
            user_id: format!("user of {id}"),
            id,
            sequence,
            create_time: time,
            update_time: time / 2,
            token_count,
            body: caller.encode_to_vec().into(),
            ..PutMessage::default()
        };
        let stored = Message::decode(StoredDraft::new(&put).seal(revision)).unwrap();
        prop_assert_eq!(stored, Message {
            id: put.id,
            user_id: put.user_id,
            sequence,
            revision,
            create_time: Some(Timestamp::from_micros(time)),
            update_time: Some(Timestamp::from_micros(time / 2)),
            token_count,
            ..caller
        });
    }

    #[test]
    fn entries_read_as_a_list_of_messages(messages in prop::collection::vec(callers(), 0..5)) {
        let encoded: Vec<_> = messages.iter().map(Message::encode_to_vec).collect();
        let mut list = Vec::new();
        put_entries(encoded.iter().map(Vec::as_slice), &mut list);
        prop_assert_eq!(list.len(), entries_len(encoded.iter().map(Vec::as_slice)));
        prop_assert_eq!(Listed::decode(list.as_slice()).unwrap().messages, messages);
    }

    #[test]
    fn as_many_entries_fit_as_their_bytes_allow_and_always_one(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
        limits in (1_usize..8, 0_usize..600),
    ) {
        let limits = Limits { items: limits.0, bytes: limits.1 };
        let (fitting, more) = limits.fitting(messages.iter(), |message| Some(message.as_slice()));
        let length = |count: usize| entries_len(messages[..count].iter().map(Vec::as_slice));
        let fits = |count: usize| count <= limits.items && (count <= 1 || length(count) <= limits.bytes);
        prop_assert!(fits(fitting.len()));
        prop_assert_eq!(more, fitting.len() < messages.len());
        prop_assert!(!more || !fits(fitting.len() + 1));
    }

    #[test]
    fn a_message_read_apart_is_its_fields_and_the_message_without_one(caller in callers()) {
        let (fields, others): (Message, _) = read_apart(&caller.encode_to_vec(), 5).unwrap();
        let without_text = Message { text: String::new(), ..caller.clone() };
        prop_assert_eq!(Message::decode(others.as_slice()).unwrap(), without_text);
        prop_assert_eq!(fields, caller);
    }

    #[test]
    fn times_come_back_to_the_microsecond(micros in -(1_i64 << 62)..1 << 62) {
        let time = Timestamp::from_micros(micros);
        prop_assert!((0..1_000_000_000).contains(&time.nanos));
        prop_assert_eq!(time.micros(), micros);
    }
}
