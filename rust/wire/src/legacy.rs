//! Changes that were written before records had kinds: they are read as changes of records by key, and never written.

use bytes::{BufMut, Bytes, BytesMut};
use prost::{DecodeError, Message as _};

use super::change::Kind;
use super::records::{Extent, PutRecord, RemoveRecords, Value, ValueKind};
use super::times::Timestamp;

/// The numbers of the kinds that these changes are of; the declarations in Python have the same.
pub(crate) const STEPS: u32 = 1;
pub(crate) const CONVERSATION_MEMORIES: u32 = 2;
pub(crate) const USER_MEMORIES: u32 = 3;

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Legacy {
    #[prost(message, tag = "6")]
    PutStep(PutStep),
    #[prost(message, tag = "7")]
    RemoveSteps(RemoveSteps),
    #[prost(message, tag = "8")]
    PutWorkingMemory(PutWorkingMemory),
    #[prost(message, tag = "9")]
    DeleteWorkingMemory(DeleteWorkingMemory),
}

/// An agent's step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PutStep {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    /// An encoded `remora.v1.Step`.
    #[prost(bytes = "bytes", tag = "2")]
    pub step: Bytes,
}

/// A user's steps that go.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RemoveSteps {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub user_id: String,
}

/// The working memory of a user, or of a conversation where the user is empty.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PutWorkingMemory {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub user_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub content: Bytes,
    #[prost(int64, tag = "4")]
    pub update_time: i64,
}

/// The end of a working memory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DeleteWorkingMemory {
    #[prost(uint64, tag = "1")]
    pub conversation_uid: u64,
    #[prost(string, tag = "2")]
    pub user_id: String,
}

/// What is read of a `remora.v1.Step`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Step {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "3")]
    pub(crate) user_id: String,
    #[prost(string, tag = "6")]
    pub(crate) operation_id: String,
    #[prost(int32, tag = "7")]
    pub(crate) step_index: i32,
}

/// A `remora.v1.WorkingMemoryRecord` without its scope, which the place of the record says.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct WorkingMemory {
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) content: Bytes,
    #[prost(message, optional, tag = "3")]
    pub(crate) update_time: Option<Timestamp>,
}

impl Legacy {
    /// The change as it would be written today.
    pub(super) fn translate(self) -> Result<Kind, DecodeError> {
        Ok(match self {
            Self::PutStep(put) => Kind::PutRecord(step(put)?),
            Self::RemoveSteps(remove) => Kind::RemoveRecords(RemoveRecords {
                kind: STEPS,
                conversation_uid: remove.conversation_uid,
                extent: Extent::Partition.into(),
                partition: text(&remove.user_id),
                key: Bytes::new(),
            }),
            Self::PutWorkingMemory(put) => Kind::PutRecord(memory(put)),
            Self::DeleteWorkingMemory(delete) => {
                let (kind, partition) = memory_place(&delete.user_id);
                Kind::RemoveRecords(RemoveRecords {
                    kind,
                    conversation_uid: delete.conversation_uid,
                    extent: Extent::Record.into(),
                    partition,
                    key: Bytes::new(),
                })
            }
        })
    }
}

fn step(put: PutStep) -> Result<PutRecord, DecodeError> {
    let step = Step::decode(put.step.clone())?;
    let columns = [
        ValueKind::Text(step.operation_id),
        ValueKind::Integer(step.step_index.into()),
    ];
    Ok(PutRecord {
        kind: STEPS,
        conversation_uid: put.conversation_uid,
        partition: text(&step.user_id),
        key: text(&step.id),
        user_id: step.user_id,
        columns: columns.map(|kind| Value { kind: Some(kind) }).into(),
        body: put.step,
        replaces: true,
        ..PutRecord::default()
    })
}

fn memory(put: PutWorkingMemory) -> PutRecord {
    let (kind, partition) = memory_place(&put.user_id);
    let body = WorkingMemory {
        content: put.content,
        update_time: Some(Timestamp::from_micros(put.update_time)),
    };
    PutRecord {
        kind,
        conversation_uid: put.conversation_uid,
        partition,
        user_id: put.user_id,
        body: body.encode_to_vec().into(),
        replaces: true,
        ..PutRecord::default()
    }
}

/// Kind and partition of a working memory.
fn memory_place(user_id: &str) -> (u32, Bytes) {
    if user_id.is_empty() {
        (CONVERSATION_MEMORIES, Bytes::new())
    } else {
        (USER_MEMORIES, text(user_id))
    }
}

/// A text as a part of a key: 00 stands as 00 FF, and 00 01 is the end.
fn text(text: &str) -> Bytes {
    let mut encoded = BytesMut::with_capacity(text.len() + 2);
    for byte in text.bytes() {
        encoded.put_u8(byte);
        if byte == 0 {
            encoded.put_u8(0xff);
        }
    }
    encoded.put_slice(&[0, 1]);
    encoded.freeze()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed expectation fails the test")]

    use super::*;

    fn put(legacy: Legacy) -> PutRecord {
        match legacy.translate().unwrap() {
            Kind::PutRecord(put) => put,
            kind => panic!("{kind:?}"),
        }
    }

    fn removal(legacy: Legacy) -> RemoveRecords {
        match legacy.translate().unwrap() {
            Kind::RemoveRecords(remove) => remove,
            kind => panic!("{kind:?}"),
        }
    }

    fn encoded_step() -> Bytes {
        let step = Step {
            id: "s\0tep".to_owned(),
            user_id: "ann".to_owned(),
            operation_id: "run".to_owned(),
            step_index: -3,
        };
        step.encode_to_vec().into()
    }

    #[test]
    fn a_step_is_a_record_of_its_user_with_its_message_as_the_body() {
        let put = put(Legacy::PutStep(PutStep {
            conversation_uid: 7,
            step: encoded_step(),
        }));
        let columns = [ValueKind::Text("run".to_owned()), ValueKind::Integer(-3)];
        assert_eq!(
            put,
            PutRecord {
                kind: STEPS,
                conversation_uid: 7,
                partition: Bytes::from_static(b"ann\0\x01"),
                key: Bytes::from_static(b"s\0\xfftep\0\x01"),
                user_id: "ann".to_owned(),
                columns: columns.map(|kind| Value { kind: Some(kind) }).into(),
                body: encoded_step(),
                replaces: true,
                ..PutRecord::default()
            }
        );
    }

    #[test]
    fn a_users_steps_go_as_a_partition() {
        let removal = removal(Legacy::RemoveSteps(RemoveSteps {
            conversation_uid: 7,
            user_id: "ann".to_owned(),
        }));
        assert_eq!(
            removal,
            RemoveRecords {
                kind: STEPS,
                conversation_uid: 7,
                extent: Extent::Partition.into(),
                partition: Bytes::from_static(b"ann\0\x01"),
                key: Bytes::new(),
            }
        );
    }

    #[test]
    fn a_working_memory_is_its_owners_one_record() {
        let memory = |conversation_uid, user_id: &str| {
            put(Legacy::PutWorkingMemory(PutWorkingMemory {
                conversation_uid,
                user_id: user_id.to_owned(),
                content: Bytes::from_static(b"content"),
                update_time: -1_500_000,
            }))
        };
        let of_conversation = memory(7, "");
        let body = WorkingMemory::decode(of_conversation.body.clone()).unwrap();
        assert_eq!(&body.content[..], b"content");
        assert_eq!(body.update_time.unwrap().micros(), -1_500_000);
        assert_eq!(
            of_conversation,
            PutRecord {
                kind: CONVERSATION_MEMORIES,
                conversation_uid: 7,
                body: of_conversation.body.clone(),
                replaces: true,
                ..PutRecord::default()
            }
        );
        assert_eq!(
            memory(0, "ann"),
            PutRecord {
                kind: USER_MEMORIES,
                partition: Bytes::from_static(b"ann\0\x01"),
                user_id: "ann".to_owned(),
                body: of_conversation.body.clone(),
                replaces: true,
                ..PutRecord::default()
            }
        );
    }

    #[test]
    fn a_working_memory_that_goes_is_one_record() {
        let gone = |conversation_uid, user_id: &str| {
            removal(Legacy::DeleteWorkingMemory(DeleteWorkingMemory {
                conversation_uid,
                user_id: user_id.to_owned(),
            }))
        };
        let record = RemoveRecords {
            extent: Extent::Record.into(),
            ..RemoveRecords::default()
        };
        assert_eq!(
            gone(7, ""),
            RemoveRecords {
                kind: CONVERSATION_MEMORIES,
                conversation_uid: 7,
                ..record.clone()
            }
        );
        assert_eq!(
            gone(0, "ann"),
            RemoveRecords {
                kind: USER_MEMORIES,
                partition: Bytes::from_static(b"ann\0\x01"),
                ..record
            }
        );
    }

    #[test]
    fn a_step_that_cannot_be_read_is_refused() {
        let broken = Legacy::PutStep(PutStep {
            conversation_uid: 7,
            step: Bytes::from_static(b"\x0a\xff"),
        });
        assert!(broken.translate().is_err());
    }
}
