//! The core for Python: commits, waits, the applier's side of the journal, and windows.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyTuple};
use remora_core::records::{Loaded, Place, Records, Selection as RecordSelection};
use remora_core::rows::unapplied_expiries;
use remora_core::windows::{
    Bounds, Cold, Head, LoadedMessage, Page, Residency, Selection, StoredConversation, Weights,
    Windows,
};
use remora_core::{CommitError, Committed, Core, Known, Settings};
use remora_journal::{self as journal, Options};
use remora_kernels::Kernels;

use super::errors::{commit_error, follow_error, journal_error, torn_error};
use super::items::PyItems;
use super::recall::{PyRecall, PyUnapplied};
use super::records::{self, PyRecordKind, RecordPage, RefreshedRow, StoredRecord};
use super::rows::{self, PyTable};
use super::vector_search::PyVectors;

/// Records up to this size are committed without releasing the GIL: that takes longer than the commit.
const BRIEF_RECORD_BYTES: usize = 16 << 10;

/// Reads that look at so many messages at most keep the GIL.
const BRIEF_MESSAGES: usize = 1_000;

/// See `_native.pyi`.
#[pyclass(name = "Core", module = "remora_server._native", frozen)]
pub(super) struct PyCore {
    core: Arc<Core>,
    kernels: &'static Kernels,
}

#[pymethods]
impl PyCore {
    #[new]
    #[pyo3(signature = (directory, *, store_id, applied_revision, start_after = None, segment_bytes = 67_108_864,
                        queue_bytes = 16_777_216, window_bytes = 67_108_864, recall_bytes = 268_435_456, kernels = None,
                        kinds = Vec::new(), record_bytes = 67_108_864, vector_bytes = 268_435_456))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        directory: Option<PathBuf>,
        store_id: &[u8],
        applied_revision: u64,
        start_after: Option<u64>,
        segment_bytes: u64,
        queue_bytes: usize,
        window_bytes: usize,
        recall_bytes: usize,
        kernels: Option<&str>,
        kinds: Vec<PyRef<'_, PyRecordKind>>,
        record_bytes: usize,
        vector_bytes: usize,
    ) -> PyResult<Self> {
        let journal = Options {
            segment_bytes,
            queue_bytes,
            store_id: Some(sixteen_bytes("store_id", store_id)?),
            applied_revision,
            start_after,
            ..Options::default()
        };
        let windows = Bounds {
            total_bytes: window_bytes,
            ..Bounds::default()
        };
        let kernels = kernels.map_or_else(|| Ok(Kernels::best()), super::kernels::kernels_named)?;
        let settings = Settings {
            journal,
            kinds: records::kinds(&kinds)?,
            record_bytes,
            windows,
            recall_bytes,
            vector_bytes,
            kernels,
            ..Settings::default()
        };
        let core = py.detach(|| Core::open(directory.as_deref(), &settings));
        let core = Arc::new(core.map_err(journal_error)?);
        Ok(Self { core, kernels })
    }

    #[getter]
    fn recovery(&self) -> Recovery {
        let found = self.core.recovery();
        let cut = found.cut.as_ref();
        Recovery {
            first_revision: found.first_revision,
            last_revision: found.last_revision,
            segments: found.segments,
            noted_applied: found.note.reached().applied,
            cut: cut.map(|cut| {
                let kept_in = cut.kept_in.as_ref();
                let kept_in = kept_in.map(|file| file.display().to_string());
                (cut.segment.clone(), cut.offset, cut.bytes, kept_in)
            }),
        }
    }

    #[getter]
    fn recall(&self) -> PyRecall {
        PyRecall::of(Arc::clone(&self.core))
    }

    #[getter]
    fn items(&self) -> PyItems {
        PyItems::of(Arc::clone(&self.core))
    }

    #[getter]
    fn vectors(&self) -> PyVectors {
        PyVectors::of(Arc::clone(&self.core))
    }

    fn accepted(&self) -> u64 {
        self.core.journal().accepted()
    }

    fn published(&self) -> u64 {
        self.core.journal().published()
    }

    fn has_ended(&self) -> bool {
        self.core.journal().ended().is_some()
    }

    fn follow(&self, changed: Py<PyAny>) -> bool {
        self.core.journal().follow(Arc::new(move || {
            Python::attach(|py| {
                if let Err(error) = changed.bind(py).call0() {
                    error.write_unraisable(py, None);
                }
            });
        }))
    }

    fn failure(&self) -> Option<String> {
        Some(self.core.journal().ended()?.to_string())
    }

    fn is_whole(&self) -> bool {
        self.core.require_whole().is_ok()
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.core.journal().close())
            .map_err(journal_error)
    }

    fn commit(
        &self,
        py: Python<'_>,
        record: &Bound<'_, PyBytes>,
        timeout: Option<f64>,
    ) -> PyResult<(u64, &'static str)> {
        let record = Bytes::copy_from_slice(record.as_bytes());
        let timeout = duration(timeout)?;
        let committed = self.commit_at_once(&record);
        let committed =
            committed.unwrap_or_else(|| py.detach(|| self.core.commit(record, timeout)));
        Ok(match committed.map_err(commit_error)? {
            Committed::New(revision) => (revision, "committed"),
            Committed::Known(Known {
                revision,
                is_same: true,
            }) => (revision, "repeated"),
            Committed::Known(Known { revision, .. }) => (revision, "reused"),
        })
    }

    fn wait(&self, py: Python<'_>, revision: u64, timeout: Option<f64>) -> PyResult<bool> {
        let timeout = duration(timeout)?;
        if self.core.journal().published() >= revision {
            return Ok(true);
        }
        py.detach(|| self.core.wait(revision, timeout))
            .map_err(journal_error)
    }

    fn find_request(
        &self,
        tenant: &str,
        request_id: &str,
        fingerprint: &[u8],
    ) -> PyResult<Option<(u64, bool)>> {
        let fingerprint = sixteen_bytes("fingerprint", fingerprint)?;
        let known = self.core.find_request(tenant, request_id, fingerprint);
        Ok(known.map(|known| (known.revision, known.is_same)))
    }

    fn load_requests(
        &self,
        requests: Vec<(PyBackedStr, PyBackedStr, PyBackedBytes, u64, u64)>,
    ) -> PyResult<()> {
        for (tenant, request_id, fingerprint, revision, age) in requests {
            let fingerprint = sixteen_bytes("fingerprint", &fingerprint)?;
            let age = Duration::from_micros(age);
            self.core
                .load_request(&tenant, &request_id, fingerprint, revision, age);
        }
        Ok(())
    }

    fn end_load_of_requests(&self) {
        self.core.end_load_of_requests();
    }

    fn has_loaded_requests(&self) -> bool {
        self.core.has_loaded_requests()
    }

    fn oldest_request(&self) -> Option<u64> {
        self.core.oldest_request()
    }

    fn records_after<'py>(
        &self,
        py: Python<'py>,
        revision: u64,
        max_bytes: usize,
    ) -> PyResult<Vec<(u64, Bound<'py, PyBytes>)>> {
        let records = py.detach(|| self.core.journal().records_after(revision, max_bytes));
        let records = records.map_err(journal_error)?.into_iter();
        let numbered =
            |record: journal::Record| (record.revision, PyBytes::new(py, &record.payload));
        Ok(records.map(numbered).collect())
    }

    fn unapplied_bytes(&self) -> usize {
        self.core.journal().memory_bytes()
    }

    fn is_behind(&self) -> bool {
        self.core.is_behind()
    }

    #[pyo3(signature = (revision, *, durable = true))]
    fn mark_applied(&self, py: Python<'_>, revision: u64, durable: bool) {
        py.detach(|| {
            self.core.mark_applied(revision);
            if durable {
                self.core.journal().mark_applied(revision);
            }
        });
    }

    fn release(&self, py: Python<'_>, revision: u64) -> PyResult<()> {
        py.detach(|| self.core.journal().release(revision))
            .map_err(journal_error)
    }

    fn journal_statistics(&self) -> JournalStatistics {
        let found = self.core.journal().statistics();
        JournalStatistics {
            bytes: found.disk_bytes,
            segments: found.segments,
            records: found.records,
            batches: found.batches,
            sync_micros: found.mean_sync_micros(),
            refusing: found.refusing.map(|reason| reason.to_string()),
        }
    }

    fn know_conversations(&self, py: Python<'_>, keys: Vec<(PyBackedStr, PyBackedStr)>) {
        py.detach(|| {
            for (tenant, id) in &keys {
                self.core.windows().know(tenant, id);
            }
        });
    }

    fn conversation_state(&self, tenant: &str, conversation_id: &str) -> PyResult<&'static str> {
        Ok(match self.windows()?.residency(tenant, conversation_id) {
            Residency::Absent => "absent",
            Residency::Cold => "cold",
            Residency::Resident => "resident",
        })
    }

    #[pyo3(signature = (tenant, conversation_id, head, messages, bodies, *, as_of, with_journal = false))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn load_conversation(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        head: Option<&PyHead>,
        messages: Vec<MessageRow>,
        bodies: Vec<Bound<'_, PyBytes>>,
        as_of: u64,
        with_journal: bool,
    ) -> PyResult<bool> {
        let head = head.map(|head| head.0.clone());
        let bodies: Vec<Bytes> = bodies
            .iter()
            .map(|body| Bytes::copy_from_slice(body.as_bytes()))
            .collect();
        let loaded = py.detach(|| {
            let messages: Vec<_> = messages.iter().map(loaded_message).collect();
            let stored = StoredConversation {
                head,
                messages: &messages,
                bodies,
            };
            let core = &self.core;
            core.load_conversation(tenant, conversation_id, as_of, stored, with_journal)
        });
        loaded.map_err(follow_error)
    }

    #[pyo3(signature = (applied, *, now))]
    fn follow_unapplied(&self, py: Python<'_>, applied: u64, now: i64) -> PyResult<u64> {
        py.detach(|| self.core.follow_unapplied(applied, now))
            .map_err(follow_error)
    }

    fn unapplied(&self, py: Python<'_>, tenant: &str, after: u64) -> PyResult<Option<PyUnapplied>> {
        let found = py.detach(|| self.core.unapplied(tenant, after));
        Ok(found.map_err(follow_error)?.map(PyUnapplied))
    }

    #[pyo3(signature = (tenant, conversation_id, *, accepted))]
    fn head(
        &self,
        tenant: &str,
        conversation_id: &str,
        accepted: bool,
    ) -> PyResult<Option<PyHead>> {
        let windows = self.windows()?;
        let head = if accepted {
            windows.accepted_head(tenant, conversation_id)
        } else {
            let published = || self.core.journal().published();
            windows.published_head(tenant, conversation_id, published)
        };
        let head = head.map_err(|cold| cold_error(cold, conversation_id))?;
        Ok(head.map(|head| PyHead(Head::clone(&head))))
    }

    fn find_messages(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        user_id: &str,
        ids: Vec<PyBackedStr>,
    ) -> PyResult<Vec<Option<(u64, i64)>>> {
        let windows = self.windows()?;
        briefly(py, ids.len(), || {
            windows.find_messages(tenant, conversation_id, user_id, &ids)
        })
        .map_err(|cold| cold_error(cold, conversation_id))
    }

    fn live_sequences(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        user_id: Option<&str>,
    ) -> PyResult<Vec<u64>> {
        let windows = self.windows()?;
        let messages = windows.resident_messages(tenant, conversation_id);
        briefly(py, messages, || {
            windows.live_sequences(tenant, conversation_id, user_id)
        })
        .map_err(|cold| cold_error(cold, conversation_id))
    }

    fn oldest_messages(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        count: usize,
    ) -> PyResult<Vec<(u64, String)>> {
        let windows = self.windows()?;
        let oldest = briefly(py, count, || {
            windows.oldest_messages(tenant, conversation_id, count)
        });
        let oldest = oldest.map_err(|cold| cold_error(cold, conversation_id))?;
        let owned = oldest.into_iter();
        Ok(owned
            .map(|(sequence, user)| (sequence, user.to_string()))
            .collect())
    }

    #[pyo3(signature = (tenant, conversation_id, user_id, *, roles, sent, received, after_sequence, before_sequence,
                        window, newest, limit, max_bytes))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn list_messages(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        user_id: String,
        roles: Vec<String>,
        sent: (Option<i64>, Option<i64>),
        received: (Option<i64>, Option<i64>),
        after_sequence: Option<u64>,
        before_sequence: Option<u64>,
        window: (u64, u64),
        newest: bool,
        limit: usize,
        max_bytes: usize,
    ) -> PyResult<MessagePage> {
        let selection = Selection {
            user: user_id,
            roles,
            sent: sent.into(),
            received: received.into(),
            after_sequence,
            before_sequence,
            window,
            newest,
            limit,
            max_bytes,
        };
        let windows = self.windows()?;
        let messages = windows.resident_messages(tenant, conversation_id);
        let page = briefly(py, messages, || {
            let published = || self.core.journal().published();
            windows.list_messages(tenant, conversation_id, &selection, published)
        });
        let page = page.map_err(|cold| cold_error(cold, conversation_id))?;
        MessagePage::new(py, page)
    }

    fn weigh_messages(
        &self,
        py: Python<'_>,
        tenant: &str,
        conversation_id: &str,
        user_id: &str,
        window: (u64, u64),
        apart: Vec<String>,
    ) -> PyResult<MessageWeights> {
        let windows = self.windows()?;
        let messages = windows.resident_messages(tenant, conversation_id);
        let weights = briefly(py, messages, || {
            let published = || self.core.journal().published();
            windows.weigh(tenant, conversation_id, user_id, window, &apart, published)
        });
        let weights = weights.map_err(|cold| cold_error(cold, conversation_id))?;
        Ok(MessageWeights::from(weights))
    }

    #[pyo3(signature = (kind, tenant, conversation_uid, partition, key, *, accepted, now = 0))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn get_record(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        key: &[u8],
        accepted: bool,
        now: i64,
    ) -> PyResult<(Option<StoredRecord>, u64)> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let journal = self.core.journal();
        let found = self.with_records(|records| {
            if accepted {
                let revision = journal.accepted();
                records.accepted(&place, key).map(|found| (found, revision))
            } else {
                records.get(&place, key, now, || journal.published())
            }
        })?;
        let (found, revision) = found.map_err(|cold| records::cold_error(py, &cold))?;
        Ok((found.map(StoredRecord::from), revision))
    }

    fn knows_record(
        &self,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        key: &[u8],
    ) -> PyResult<Option<bool>> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let found = self.with_records(|records| records.accepted(&place, key))?;
        Ok(found.ok().map(|found| found.is_some()))
    }

    #[pyo3(signature = (kind, tenant, conversation_uid, partition, *, order, newest = false, after = None, before = None,
                        r#where = Vec::new(), last = None, skip = 0, limit, max_bytes, now))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn list_records(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        order: usize,
        newest: bool,
        after: Option<Bound<'_, PyTuple>>,
        before: Option<Bound<'_, PyTuple>>,
        r#where: Vec<(usize, Bound<'_, PyAny>)>,
        last: Option<usize>,
        skip: usize,
        limit: usize,
        max_bytes: usize,
        now: i64,
    ) -> PyResult<RecordPage> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let order = records::order(place.kind, order)?;
        let position = |found: Option<Bound<'_, PyTuple>>| {
            let found = found.as_ref();
            let found = found.map(|found| records::position(place.kind, order, found));
            found.transpose()
        };
        let selection = RecordSelection {
            order,
            newest,
            after: position(after)?,
            before: position(before)?,
            filters: records::filters(place.kind, &r#where)?,
            last,
            skip,
            limit,
            max_bytes,
            now,
        };
        let looks = match selection.filters.is_empty() {
            true => skip.saturating_add(last.unwrap_or(limit)),
            false => usize::MAX,
        };
        let looks = looks.min(self.core.records().resident_entries(&place));
        let published = || self.core.journal().published();
        let page = briefly(py, looks, || {
            self.with_records(|records| records.list(&place, &selection, published))
        });
        let page = page?.map_err(|cold| records::cold_error(py, &cold))?;
        Ok(RecordPage::from(page))
    }

    #[pyo3(signature = (kind, tenant, conversation_uid, partition, *, r#where = Vec::new(), now))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn count_records(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        r#where: Vec<(usize, Bound<'_, PyAny>)>,
        now: i64,
    ) -> PyResult<(usize, u64)> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let filters = records::filters(place.kind, &r#where)?;
        let looks = self.core.records().resident_entries(&place);
        let published = || self.core.journal().published();
        let count = briefly(py, looks, || {
            self.with_records(|records| records.count_records(&place, &filters, now, published))
        });
        count?.map_err(|cold| records::cold_error(py, &cold))
    }

    #[pyo3(signature = (kind, tenant, conversation_uid, partition, rows, *, absent = Vec::new(), order = 0,
                        complete_from = None, complete_to = None, whole = false, as_of))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn load_records(
        &self,
        py: Python<'_>,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        rows: Vec<Bound<'_, PyTuple>>,
        absent: Vec<Bound<'_, PyBytes>>,
        order: usize,
        complete_from: Option<Bound<'_, PyTuple>>,
        complete_to: Option<Bound<'_, PyTuple>>,
        whole: bool,
        as_of: u64,
    ) -> PyResult<bool> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let range = (order, complete_from.as_ref(), complete_to.as_ref());
        let rows = rows.iter();
        let rows = rows.map(|row| records::loaded_record(place.kind, row));
        let loaded = Loaded {
            records: rows.collect::<PyResult<_>>()?,
            absent: absent.iter().map(|key| key.as_bytes().into()).collect(),
            extent: records::extent(place.kind, range, whole)?,
            as_of,
        };
        py.detach(|| self.with_records(|records| records.load(&place, loaded)))
    }

    fn kind_touched(&self, kind: u32) -> PyResult<u64> {
        let kind = records::kind(self.core.records(), kind)?;
        self.with_records(|records| records.touched(kind))
    }

    #[pyo3(signature = (kind, tenant, conversation_uid, partition, key, *, revision, expire_time, now))]
    #[expect(clippy::too_many_arguments, reason = "the last are keywords in Python")]
    fn refresh_record(
        &self,
        kind: u32,
        tenant: &str,
        conversation_uid: u64,
        partition: &[u8],
        key: &[u8],
        revision: u64,
        expire_time: Option<i64>,
        now: i64,
    ) -> PyResult<bool> {
        let place = self.place(kind, tenant, conversation_uid, partition)?;
        let is_refreshed =
            self.with_records(|records| records.refresh(&place, key, revision, expire_time, now))?;
        if is_refreshed && place.kind.holds_items {
            let op = remora_items::Op::Expire {
                namespace: Bytes::copy_from_slice(partition),
                key: Bytes::copy_from_slice(key),
                revision,
                expire_time,
            };
            self.core.items().deliver_expiry(kind, tenant, op);
        }
        Ok(is_refreshed)
    }

    #[pyo3(signature = (*, older_than, now))]
    fn take_refreshed<'py>(
        &self,
        py: Python<'py>,
        older_than: i64,
        now: i64,
    ) -> PyResult<Vec<RefreshedRow<'py>>> {
        let taken =
            py.detach(|| self.with_records(|records| records.take_refreshed(older_than, now)))?;
        let rows = taken.iter();
        Ok(rows
            .map(|record| records::refreshed_row(py, record))
            .collect())
    }

    fn unapplied_expiries<'py>(
        &self,
        py: Python<'py>,
        kind: u32,
        tenant: &str,
    ) -> PyResult<PyTable<'py>> {
        let kind = records::kind(self.core.records(), kind)?;
        let found = py.detach(|| {
            self.with_records(|records| {
                unapplied_expiries(&records.unapplied_expiries(kind, tenant))
            })
        })?;
        Ok(rows::buffers_of(py, &found))
    }

    fn statistics(&self, py: Python<'_>) -> EngineStatistics {
        let windows = self.core.windows();
        py.detach(|| {
            let recall = self.core.recall().statistics();
            let vectors = self.core.vectors().statistics();
            let items = self.core.items().statistics();
            EngineStatistics {
                conversations: windows.conversations(),
                window_bytes: windows.bytes(),
                partitions: self.core.records().partitions(),
                record_bytes: self.core.records().bytes(),
                parts: recall.parts,
                recall_bytes: recall.bytes,
                vector_parts: vectors.parts + items.parts,
                vector_bytes: vectors.bytes + items.bytes,
                kernels: self.kernels.level().name(),
            }
        })
    }
}

impl PyCore {
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The windows, unless a panic may have left half of a change in memory.
    fn windows(&self) -> PyResult<&Windows> {
        self.core.require_whole().map_err(torn_error)?;
        Ok(self.core.windows())
    }

    /// Works on the records in memory, unless a panic may have left half of a change there.
    fn with_records<T>(&self, work: impl FnOnce(&Records) -> T) -> PyResult<T> {
        self.core.with_records(work).map_err(torn_error)
    }

    fn place<'a>(
        &'a self,
        kind: u32,
        tenant: &'a str,
        conversation_uid: u64,
        partition: &'a [u8],
    ) -> PyResult<Place<'a>> {
        Ok(Place {
            kind: records::kind(self.core.records(), kind)?,
            tenant,
            conversation_uid,
            partition,
        })
    }

    /// A commit that need not wait; `None` if it is left to one that may.
    fn commit_at_once(&self, record: &Bytes) -> Option<Result<Committed, CommitError>> {
        if record.len() > BRIEF_RECORD_BYTES {
            return None;
        }
        match self.core.commit(record.clone(), Some(Duration::ZERO)) {
            Err(CommitError::Journal(journal::JournalError::Busy) | CommitError::Behind) => None,
            committed => Some(committed),
        }
    }
}

/// (sequence, revision, user id, id, role, create time, sent time, token count).
type MessageRow = (
    u64,
    u64,
    PyBackedStr,
    PyBackedStr,
    PyBackedStr,
    i64,
    i64,
    i32,
);

fn loaded_message(row: &MessageRow) -> LoadedMessage<'_> {
    let (sequence, revision, user, id, role, create_time, sent_time, token_count) = row;
    LoadedMessage {
        sequence: *sequence,
        revision: *revision,
        user,
        id,
        role,
        create_time: *create_time,
        sent_time: *sent_time,
        token_count: *token_count,
    }
}

/// See `_native.pyi`.
#[pyclass(name = "Head", module = "remora_server._native", frozen, eq)]
#[derive(PartialEq)]
struct PyHead(Head);

#[pymethods]
impl PyHead {
    #[new]
    #[pyo3(signature = (*, uid, user_id, body, create_time, last_sequence, message_count, last_time, update_time, revision))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        uid: u64,
        user_id: &str,
        body: &[u8],
        create_time: i64,
        last_sequence: u64,
        message_count: i64,
        last_time: i64,
        update_time: i64,
        revision: u64,
    ) -> Self {
        Self(Head {
            uid,
            user_id: user_id.into(),
            body: Bytes::copy_from_slice(body),
            create_time,
            last_sequence,
            message_count,
            last_time,
            update_time,
            revision,
        })
    }

    #[getter]
    fn uid(&self) -> u64 {
        self.0.uid
    }

    #[getter]
    fn user_id(&self) -> &str {
        &self.0.user_id
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.body)
    }

    #[getter]
    fn storage_limit(&self) -> PyResult<Option<i32>> {
        let limit = self.0.storage_limit();
        limit.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn has_short_term(&self) -> PyResult<bool> {
        let found = self.0.has_short_term();
        found.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn create_time(&self) -> i64 {
        self.0.create_time
    }

    #[getter]
    fn last_sequence(&self) -> u64 {
        self.0.last_sequence
    }

    #[getter]
    fn message_count(&self) -> i64 {
        self.0.message_count
    }

    #[getter]
    fn last_time(&self) -> i64 {
        self.0.last_time
    }

    #[getter]
    fn update_time(&self) -> i64 {
        self.0.update_time
    }

    #[getter]
    fn revision(&self) -> u64 {
        self.0.revision
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct MessagePage {
    uid: u64,
    revision: u64,
    encoded: Py<PyBytes>,
    count: usize,
    first_sequence: u64,
    last_sequence: u64,
    tokens: i64,
    more: bool,
    missing: Vec<u64>,
    missing_revision: u64,
}

impl MessagePage {
    fn new(py: Python<'_>, page: Page) -> PyResult<Self> {
        let encoded = PyBytes::new_with(py, page.encoded_len(), |buffer| {
            page.encode(buffer);
            Ok(())
        })?;
        Ok(Self {
            uid: page.uid,
            revision: page.revision,
            encoded: encoded.unbind(),
            count: page.count,
            first_sequence: page.first_sequence,
            last_sequence: page.last_sequence,
            tokens: page.tokens,
            more: page.more,
            missing: page.missing,
            missing_revision: page.missing_revision,
        })
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct MessageWeights {
    uid: u64,
    revision: u64,
    sequences: Vec<u64>,
    tokens: Vec<i32>,
    newest_apart: u64,
    may_use_tools: bool,
}

impl From<Weights> for MessageWeights {
    fn from(weights: Weights) -> Self {
        Self {
            uid: weights.uid,
            revision: weights.revision,
            sequences: weights.sequences,
            tokens: weights.tokens,
            newest_apart: weights.newest_apart,
            may_use_tools: weights.may_use_tools,
        }
    }
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct Recovery {
    first_revision: u64,
    last_revision: u64,
    segments: usize,
    cut: Option<(String, u64, u64, Option<String>)>,
    noted_applied: u64,
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct JournalStatistics {
    bytes: u64,
    segments: usize,
    records: u64,
    batches: u64,
    sync_micros: u64,
    refusing: Option<String>,
}

/// See `_native.pyi`.
#[pyclass(module = "remora_server._native", frozen, get_all)]
struct EngineStatistics {
    conversations: usize,
    window_bytes: usize,
    partitions: usize,
    record_bytes: usize,
    parts: usize,
    recall_bytes: usize,
    vector_parts: usize,
    vector_bytes: usize,
    kernels: &'static str,
}

/// Runs work on `messages` messages; other threads of the interpreter run meanwhile, unless it is over sooner than that.
fn briefly<T: Send>(py: Python<'_>, messages: usize, work: impl FnOnce() -> T + Send) -> T {
    if messages <= BRIEF_MESSAGES {
        work()
    } else {
        py.detach(work)
    }
}

/// Seconds; negative ones are none.
fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let parse = |seconds: f64| Duration::try_from_secs_f64(seconds.max(0.0));
    let parsed = seconds.map(parse).transpose();
    parsed.map_err(|_| PyValueError::new_err("the timeout is not a number of seconds"))
}

pub(super) fn sixteen_bytes(name: &str, bytes: &[u8]) -> PyResult<[u8; 16]> {
    let length = bytes.len();
    bytes
        .try_into()
        .map_err(|_| PyValueError::new_err(format!("{name} must be 16 bytes, not {length}")))
}

fn cold_error(cold: Cold, conversation_id: &str) -> PyErr {
    PyKeyError::new_err(format!("{cold}: {conversation_id}"))
}

/// Adds the names of this module.
pub(super) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyCore>()?;
    module.add_class::<PyHead>()?;
    module.add_class::<MessagePage>()?;
    module.add_class::<MessageWeights>()?;
    module.add_class::<Recovery>()?;
    module.add_class::<JournalStatistics>()?;
    module.add_class::<EngineStatistics>()
}
