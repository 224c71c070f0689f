use proptest::prelude::*;
use prost::Message as _;
use remora_tokens::{Encoding, count};

use super::{ChatList, Malformed, Measure, PlainMessage};

/// As the contract has them; `other` is a field between the others that is not read.
#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "3")]
    role: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    text: String,
    #[prost(bytes, tag = "6")]
    parts: Vec<u8>,
    #[prost(message, repeated, tag = "9")]
    tool_calls: Vec<ToolCall>,
    #[prost(string, repeated, tag = "10")]
    tool_result_ids: Vec<String>,
    #[prost(fixed64, tag = "15")]
    other: u64,
    #[prost(message, optional, tag = "20")]
    media: Option<Media>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Media {
    #[prost(string, repeated, tag = "2")]
    uncounted: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ToolCall {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(bytes, tag = "3")]
    arguments: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct List {
    #[prost(message, repeated, tag = "1")]
    messages: Vec<Message>,
    #[prost(int32, tag = "2")]
    other: i32,
}

/// All that a plain message is read for, and `other` fields that are passed over.
#[derive(Clone, PartialEq, prost::Message)]
struct Stored {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    other_text: String,
    #[prost(string, tag = "3")]
    role: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    text: String,
    #[prost(message, optional, tag = "11")]
    sent_time: Option<Timestamp>,
    #[prost(string, tag = "12")]
    session_id: String,
    #[prost(uint64, tag = "15")]
    sequence: u64,
    #[prost(message, optional, tag = "17")]
    create_time: Option<Timestamp>,
    #[prost(int32, tag = "19")]
    token_count: i32,
    #[prost(fixed32, tag = "30")]
    other_number: u32,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

fn stored() -> impl Strategy<Value = Stored> {
    let time = (-(1_i64 << 40)..(1 << 40), 0..1_000_000_000);
    let time = time.prop_map(|(seconds, nanos)| Timestamp { seconds, nanos });
    let times = (prop::option::of(time.clone()), prop::option::of(time));
    let texts = (".{0,9}", ".{0,9}", ".{0,9}", ".{0,9}", ".{0,9}");
    let numbers = (any::<u64>(), any::<i32>(), any::<u32>());
    (texts, numbers, times).prop_map(|(texts, numbers, (sent_time, create_time))| Stored {
        id: texts.0.clone(),
        other_text: texts.0,
        role: texts.1,
        name: texts.2,
        text: texts.3,
        session_id: texts.4,
        sequence: numbers.0,
        token_count: numbers.1,
        other_number: numbers.2,
        sent_time,
        create_time,
    })
}

fn calls() -> impl Strategy<Value = Vec<ToolCall>> {
    let call = (
        "[a-c]",
        "[a-z ]{1,9}",
        prop::collection::vec(any::<u8>(), 0..9),
    );
    let call = call.prop_map(|(id, name, arguments)| ToolCall {
        id,
        name,
        arguments,
    });
    prop::collection::vec(call, 0..3)
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let results = prop::collection::vec("[a-c]", 0..3);
    let media = prop::option::of(prop::collection::vec("[a-z]{1,5}", 0..2));
    let more = (any::<bool>(), media, any::<u64>());
    let message = (
        "[a-z]{1,9}",
        "[a-z]{0,3}",
        ".{0,20}",
        calls(),
        results,
        more,
    )
        .prop_map(
            |(role, name, text, tool_calls, tool_result_ids, (parts, media, other))| Message {
                id: "m".into(),
                role,
                name,
                text,
                parts: if parts { vec![0xFF] } else { vec![] },
                tool_calls,
                tool_result_ids,
                other,
                media: media.map(|uncounted| Media { uncounted }),
            },
        );
    prop::collection::vec(message, 0..5)
}

fn cost(message: &Message, count: impl Fn(&str) -> usize) -> usize {
    let calls = message.tool_calls.iter();
    let calls =
        calls.map(|call| count(&call.name) + count(&String::from_utf8_lossy(&call.arguments)));
    let name = if message.name.is_empty() {
        0
    } else {
        1 + count(&message.name)
    };
    3 + count(&message.role) + count(&message.text) + name + calls.sum::<usize>()
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written(messages in messages(), other in any::<i32>()) {
        let encoded = List { messages: messages.clone(), other }.encode_to_vec();
        let list = ChatList::read(encoded).expect("a list");

        let read = list.messages(0..messages.len()).expect("all of them");
        let read = read.collect::<Result<Vec<_>, _>>().expect("messages");

        prop_assert_eq!(list.len(), messages.len());
        for (message, given) in read.iter().zip(&messages) {
            prop_assert_eq!(message.role, given.role.as_bytes());
            prop_assert_eq!(message.text, given.text.as_bytes());
            let results = given.tool_result_ids.iter().map(String::as_bytes);
            prop_assert!(results.eq(message.tool_result_ids.iter().copied()));
            let ids = message.tool_calls.iter().map(|call| call.id);
            prop_assert!(ids.eq(given.tool_calls.iter().map(|call| call.id.as_bytes())));
            let holds_more = match &given.media {
                Some(media) => !media.uncounted.is_empty(),
                None => !given.parts.is_empty(),
            };
            prop_assert_eq!(message.holds_more, holds_more);
        }
    }

    #[test]
    fn a_plain_message_is_read_as_it_was_written(stored in stored()) {
        let encoded = stored.encode_to_vec();

        let read = PlainMessage::read(&encoded).expect("a plain message");

        let time = stored.sent_time.or(stored.create_time).unwrap_or_default();
        prop_assert_eq!(read, PlainMessage {
            id: &stored.id,
            role: &stored.role,
            name: &stored.name,
            text: &stored.text,
            session_id: &stored.session_id,
            sequence: stored.sequence,
            token_count: stored.token_count,
            sent_time: time.seconds * 1_000_000 + i64::from(time.nanos / 1_000),
        });
    }

    #[test]
    fn a_message_with_tools_parts_or_media_is_not_plain(messages in messages()) {
        for mut message in messages {
            message.other = 0;
            let is_plain = message.tool_calls.is_empty()
                && message.tool_result_ids.is_empty()
                && message.parts.is_empty()
                && message.media.is_none();

            prop_assert_eq!(PlainMessage::read(&message.encode_to_vec()).is_some(), is_plain);
        }
    }

    #[test]
    fn what_a_complete_reader_refuses_or_merges_is_no_plain_message(stored in stored()) {
        let whole = stored.encode_to_vec();
        let is_plain_with = |more: &[u8]| PlainMessage::read(&[&whole, more].concat()).is_some();

        prop_assert!(is_plain_with(&[5 << 3 | 2, 1, b'x']));
        prop_assert!(!is_plain_with(&[5 << 3 | 2, 9, 0]), "a text that ends early");
        prop_assert!(!is_plain_with(&[5 << 3 | 2, 1, 0xFF]), "not UTF-8");
        prop_assert!(!is_plain_with(&[5 << 3, 1]), "another type");
        prop_assert!(!is_plain_with(&[0x8A, 1, 0, 0x8A, 1, 0]), "field 17, a time, twice");
    }

    #[test]
    fn a_message_costs_its_format_and_all_of_its_texts(messages in messages()) {
        let encoded = List { messages: messages.clone(), other: 0 }.encode_to_vec();
        let list = ChatList::read(encoded).expect("a list");
        let costs = |measure| list.costs(0..messages.len(), measure).expect("all").expect("messages").tokens;

        for encoding in Encoding::ALL {
            let expected = messages.iter().map(|message| cost(message, |text| count(encoding, text)));
            prop_assert_eq!(costs(Measure::Exact(encoding)), expected.collect::<Vec<_>>());
        }
        let quarter = |text: &str| text.chars().count().div_ceil(4);
        let expected = messages.iter().map(|message| cost(message, quarter)).collect::<Vec<_>>();
        prop_assert_eq!(costs(Measure::Approximate), expected);
    }

    #[test]
    fn bytes_that_are_no_list_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(list) = ChatList::read(&bytes) {
            let messages = list.messages(0..list.len()).expect("all of them");
            prop_assert!(messages.count() == list.len());
        }
    }
}

#[test]
fn messages_that_are_not_there_are_none() {
    let encoded = List {
        messages: vec![Message::default()],
        other: 0,
    }
    .encode_to_vec();
    let list = ChatList::read(encoded).expect("a list");

    assert!(list.costs(0..2, Measure::Approximate).is_none());
    assert!(list.messages(1..1).is_some());
}

#[test]
fn a_list_that_ends_early_is_malformed() {
    let encoded = List {
        messages: vec![Message {
            role: "user".into(),
            ..Message::default()
        }],
        other: 0,
    }
    .encode_to_vec();

    assert_eq!(
        ChatList::read(&encoded[..encoded.len() - 1]).err(),
        Some(Malformed)
    );
}
