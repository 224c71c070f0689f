//! The tables of a run of records, column by column, in the order of the database's.

use super::{Column, F32_BYTES, Rows};

/// Rows as columns.
#[derive(Debug, Default)]
pub struct Table {
    pub rows: usize,
    pub columns: Vec<Column>,
}

impl Table {
    /// `columns` of rows that are walked through once for each.
    pub(super) fn of<R: Iterator + Clone>(rows: R, columns: impl FnOnce(R) -> Vec<Column>) -> Self {
        Self {
            rows: rows.clone().count(),
            columns: columns(rows),
        }
    }
}

/// Columns of rows, each from a closure.
macro_rules! columns {
    ($rows:expr; $($make:ident($row:pat => $value:expr)),* $(,)?) => {
        $crate::rows::Table::of($rows, |rows| {
            vec![$($crate::rows::Column::$make(rows.clone().map(|$row| $value))),*]
        })
    };
}
pub(super) use columns;

impl Rows {
    /// tenant_id, id, uid, user_id, resource_id, title, storage_limit, body, create_time.
    pub fn conversations(&self) -> Table {
        columns!(self.conversations.iter();
            bytes((_, row) => row.tenant.as_bytes()),
            bytes((_, row) => row.fields.id.as_bytes()),
            numbers((uid, _) => uid.to_ne_bytes()),
            bytes((_, row) => row.fields.user_id.as_bytes()),
            bytes((_, row) => row.fields.resource_id.as_bytes()),
            bytes((_, row) => row.fields.title.as_bytes()),
            some_numbers((_, row) => row.fields.storage_limit.map(i32::to_ne_bytes)),
            bytes((_, row) => &row.put.conversation[..]),
            numbers((_, row) => row.put.create_time.to_ne_bytes()),
        )
    }

    /// tenant_id, uid, last_sequence, message_count, last_time, update_time, revision.
    pub fn heads(&self) -> Table {
        columns!(self.heads.iter();
            bytes((_, row) => row.tenant.as_bytes()),
            numbers((uid, _) => uid.to_ne_bytes()),
            numbers((_, row) => row.put.last_sequence.to_ne_bytes()),
            numbers((_, row) => row.put.message_count.to_ne_bytes()),
            numbers((_, row) => row.put.last_time.to_ne_bytes()),
            numbers((_, row) => row.put.update_time.to_ne_bytes()),
            numbers((_, row) => row.revision.to_ne_bytes()),
        )
    }

    /// tenant_id, conversation_uid, sequence, revision, user_id, id, role, name, text, body, sent_time, session_id,
    /// create_time, update_time, token_count.
    pub fn messages(&self) -> Table {
        columns!(self.messages.iter();
            bytes((_, row) => row.tenant.as_bytes()),
            numbers(((uid, _), _) => uid.to_ne_bytes()),
            numbers(((_, sequence), _) => sequence.to_ne_bytes()),
            numbers((_, row) => row.revision.to_ne_bytes()),
            bytes((_, row) => row.put.user_id.as_bytes()),
            bytes((_, row) => row.put.id.as_bytes()),
            bytes((_, row) => row.fields.role.as_bytes()),
            bytes((_, row) => row.fields.name.as_bytes()),
            bytes((_, row) => row.fields.text.as_bytes()),
            bytes((_, row) => row.body.as_slice()),
            some_numbers((_, row) => row.fields.sent_time.map(|time| time.micros().to_ne_bytes())),
            bytes((_, row) => row.fields.session_id.as_bytes()),
            numbers((_, row) => row.put.create_time.to_ne_bytes()),
            numbers((_, row) => row.put.update_time.to_ne_bytes()),
            numbers((_, row) => row.put.token_count.to_ne_bytes()),
        )
    }

    /// tenant_id, conversation_uid, sequence, message_revision, model, by_caller, dimension, values, pieces.
    pub fn embeddings(&self) -> Table {
        let rows = self.embeddings.iter();
        let rows = rows.flat_map(|(key, models)| models.iter().map(move |row| (key, row)));
        let mut table = columns!(rows.clone();
            bytes((_, (_, row)) => row.tenant.as_bytes()),
            numbers(((uid, _), _) => uid.to_ne_bytes()),
            numbers(((_, sequence), _) => sequence.to_ne_bytes()),
            numbers((_, (_, row)) => row.message_revision.to_ne_bytes()),
            bytes((_, (model, _)) => model.as_bytes()),
            truths((_, (_, row)) => row.by_caller),
            numbers((_, (_, row)) => ((row.values.len() / F32_BYTES) as i32).to_ne_bytes()),
            some_bytes((_, (_, row)) => row.pieces.as_deref()),
        );
        let values = rows.map(|(_, (_, row))| &row.values[..]);
        table.columns.insert(7, Column::lists(values, F32_BYTES));
        table
    }

    /// tenant_id, request_id, fingerprint, revision, time, outcome.
    pub fn requests(&self) -> Table {
        columns!(self.requests.iter();
            bytes(((tenant, _), _) => tenant.as_bytes()),
            bytes(((_, id), _) => id.as_bytes()),
            bytes((_, row) => &row.fingerprint[..]),
            numbers((_, row) => row.revision.to_ne_bytes()),
            numbers((_, row) => row.time.to_ne_bytes()),
            bytes((_, row) => &row.outcome[..]),
        )
    }

    /// The conversations that go with all they hold: uid.
    pub fn deleted(&self) -> Table {
        columns!(self.deleted.iter(); numbers(uid => uid.to_ne_bytes()))
    }

    /// The conversations whose row is replaced: uid.
    pub fn replaced_conversations(&self) -> Table {
        columns!(self.conversations.keys(); numbers(uid => uid.to_ne_bytes()))
    }

    /// The conversations whose head is replaced: uid.
    pub fn replaced_heads(&self) -> Table {
        columns!(self.heads.keys(); numbers(uid => uid.to_ne_bytes()))
    }

    /// The keys of messages that go or are replaced: conversation_uid, sequence.
    pub fn moved(&self) -> Table {
        columns!(self.moved.iter();
            numbers((uid, _) => uid.to_ne_bytes()),
            numbers((_, sequence) => sequence.to_ne_bytes()),
        )
    }

    /// Whose messages go: conversation_uid, user_id.
    pub fn cleared(&self) -> Table {
        columns!(self.cleared.iter();
            numbers((uid, _) => uid.to_ne_bytes()),
            bytes((_, user) => user.as_bytes()),
        )
    }
}
