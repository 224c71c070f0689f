//! What a database that holds a state of the model answers.

use super::model::{Id, Row, State};
use crate::records::{Content, Found, LoadedRecord, Position};

/// The rows of a partition in an order.
pub(super) fn in_order<'a>(
    state: &'a State,
    place: &Id,
    order: usize,
    orders: &[Vec<usize>],
) -> Vec<(Position, &'a Id, &'a Row)> {
    let rows = state.iter().filter(|(id, _)| is_same_partition(id, place));
    let mut rows: Vec<_> = rows
        .map(|(id, row)| (position(id, row, order, orders), id, row))
        .collect();
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    rows
}

pub(super) fn position(id: &Id, row: &Row, order: usize, orders: &[Vec<usize>]) -> Position {
    if order == 0 {
        return Position::Key(id.key.as_slice().into());
    }
    let columns = orders[order - 1].iter();
    Position::Columns {
        values: columns.map(|column| row.columns[*column].clone()).collect(),
        revision: row.revision,
        ordinal: row.ordinal,
    }
}

pub(super) fn is_same_partition(id: &Id, other: &Id) -> bool {
    (id.kind, &id.tenant, id.uid, &id.partition)
        == (other.kind, &other.tenant, other.uid, &other.partition)
}

pub(super) fn loaded(id: &Id, row: &Row, with_body: bool) -> LoadedRecord {
    LoadedRecord {
        key: id.key.as_slice().into(),
        revision: row.revision,
        content: Content {
            ordinal: row.ordinal,
            user: row.user.as_str().into(),
            upload_id: row.upload_id.as_str().into(),
            columns: row.columns.clone().into(),
        },
        expire_time: row.expire_time,
        body: with_body.then(|| row.body.as_slice().into()),
    }
}

/// The row that was found; a body that only the database has is that of the row.
pub(super) fn row_of(found: &Found, expected: &Row) -> Row {
    let content = &found.held.content;
    let body = found.held.body.as_deref().unwrap_or(&expected.body);
    Row {
        revision: found.revision,
        ordinal: content.ordinal,
        user: content.user.to_string(),
        columns: content.columns.to_vec(),
        expire_time: found.held.expire_time,
        upload_id: content.upload_id.to_string(),
        body: body.to_vec(),
    }
}
