//! One chat message.

use super::wire::{Fields, Malformed};

pub(super) const ROLE: u32 = 3;
pub(super) const NAME: u32 = 4;
pub(super) const TEXT: u32 = 5;
pub(super) const PARTS: u32 = 6;
pub(super) const TOOL_CALLS: u32 = 9;
pub(super) const TOOL_RESULT_IDS: u32 = 10;
pub(super) const MEDIA: u32 = 20;

const CALL_ID: u32 = 1;
const CALL_NAME: u32 = 2;
const CALL_ARGUMENTS: u32 = 3;

/// What a model is sent of a message, as bytes that should be UTF-8: whoever reads a text checks it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatMessage<'a> {
    pub role: &'a [u8],
    pub name: &'a [u8],
    pub text: &'a [u8],
    pub tool_calls: Vec<ToolCall<'a>>,
    /// The ids of the calls that it answers.
    pub tool_result_ids: Vec<&'a [u8]>,
    /// Whether it holds anything else for a model: what `media` says, or parts of which nothing is known.
    pub holds_more: bool,
}

/// One call of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall<'a> {
    pub id: &'a [u8],
    pub name: &'a [u8],
    pub arguments: &'a [u8],
}

impl<'a> ChatMessage<'a> {
    pub(crate) fn read(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut message = Self::default();
        let (mut parts, mut media): (&[u8], Option<&[u8]>) = (&[], None);
        for field in Fields(encoded) {
            let (tag, value) = field?;
            match tag {
                ROLE => message.role = value,
                NAME => message.name = value,
                TEXT => message.text = value,
                PARTS => parts = value,
                TOOL_CALLS => message.tool_calls.push(ToolCall::read(value)?),
                TOOL_RESULT_IDS => message.tool_result_ids.push(value),
                MEDIA => media = Some(value),
                _ => {}
            }
        }
        message.holds_more = !media.unwrap_or(parts).is_empty();
        Ok(message)
    }
}

impl<'a> ToolCall<'a> {
    fn read(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut call = Self::default();
        for field in Fields(encoded) {
            let (tag, value) = field?;
            match tag {
                CALL_ID => call.id = value,
                CALL_NAME => call.name = value,
                CALL_ARGUMENTS => call.arguments = value,
                _ => {}
            }
        }
        Ok(call)
    }
}
