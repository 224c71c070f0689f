//! Messages that hold nothing but text: most of a conversation.

use super::message::{MEDIA, NAME, PARTS, ROLE, TEXT, TOOL_CALLS, TOOL_RESULT_IDS};
use super::wire::{Value, next_field};

const ID: u32 = 1;
const SENT_TIME: u32 = 11;
const SESSION_ID: u32 = 12;
const SEQUENCE: u32 = 15;
const CREATE_TIME: u32 = 17;
const TOKEN_COUNT: u32 = 19;

const SECONDS: u32 = 1;
const NANOS: u32 = 2;

/// A message without tools, parts and media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainMessage<'a> {
    pub id: &'a str,
    pub role: &'a str,
    pub name: &'a str,
    pub text: &'a str,
    pub session_id: &'a str,
    pub sequence: u64,
    pub token_count: i32,
    /// In microseconds; the create time, if the caller gave none.
    pub sent_time: i64,
}

impl<'a> PlainMessage<'a> {
    /// `None` for a message that holds more, or that only a complete reader of the format can read or refuse.
    #[must_use]
    pub fn read(mut encoded: &'a [u8]) -> Option<Self> {
        let mut message = Self::default();
        let (mut sent, mut created) = (None, None);
        while let Some(field) = next_field(&mut encoded).transpose() {
            match field.ok()? {
                (ID, value) => message.id = text(value)?,
                (ROLE, value) => message.role = text(value)?,
                (NAME, value) => message.name = text(value)?,
                (TEXT, value) => message.text = text(value)?,
                (SESSION_ID, value) => message.session_id = text(value)?,
                (SEQUENCE, value) => message.sequence = number(value)?,
                (TOKEN_COUNT, value) => message.token_count = int32(number(value)?)?,
                (SENT_TIME, value) => sent = Some(once(sent, micros(bytes(value)?)?)?),
                (CREATE_TIME, value) => created = Some(once(created, micros(bytes(value)?)?)?),
                (PARTS, value) if bytes(value)?.is_empty() => {}
                (PARTS | TOOL_CALLS | TOOL_RESULT_IDS | MEDIA, _) => return None,
                _ => {}
            }
        }
        message.sent_time = sent.or(created).unwrap_or(0);
        Some(message)
    }
}

/// The only value of a field whose values would be merged.
fn once<T>(before: Option<T>, value: T) -> Option<T> {
    before.is_none().then_some(value)
}

/// A timestamp. What is finer than a microsecond is cut off.
fn micros(mut encoded: &[u8]) -> Option<i64> {
    let (mut seconds, mut nanos) = (0, 0);
    while let Some(field) = next_field(&mut encoded).transpose() {
        match field.ok()? {
            (SECONDS, value) => seconds = number(value)?.cast_signed(),
            (NANOS, value) => nanos = int32(number(value)?)?,
            _ => {}
        }
    }
    let rest = i64::from(nanos).div_euclid(1_000);
    seconds.checked_mul(1_000_000)?.checked_add(rest)
}

fn text(value: Value<'_>) -> Option<&str> {
    str::from_utf8(bytes(value)?).ok()
}

fn bytes(value: Value<'_>) -> Option<&[u8]> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::Number(_) | Value::Other => None,
    }
}

fn number(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Number(number) => Some(number),
        Value::Bytes(_) | Value::Other => None,
    }
}

fn int32(number: u64) -> Option<i32> {
    i32::try_from(number.cast_signed()).ok()
}
