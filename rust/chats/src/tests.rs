use proptest::prelude::*;
use prost::Message as _;
use remora_tokens::{Encoding, count};

use super::{ChatList, Malformed, Measure};

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
