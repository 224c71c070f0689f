"""The queue of receipts: written behind replies, and at the end as far as there is time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence

import pytest
from msgspec import Struct
from tests.patience import PATIENCE, eventually

from remora_server.domain.calls import Read, Write
from remora_server.domain.errors import DeadlineExceeded
from remora_server.domain.receipts import Content, Receipt, ReceiptDraft, ReceiptPage, ReceiptQuery
from remora_server.engine import receipt_book
from remora_server.engine.receipt_book import BATCH, ReceiptBook


class SlowStore:
    """A store whose writes take until they are let go on."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.writing, self.may_go_on = threading.Event(), threading.Event()

    def write(self, _write: Write, drafts: Sequence[ReceiptDraft], _lifetime: int) -> None:
        self.writing.set()
        assert self.may_go_on.wait(PATIENCE)
        self.written += [draft.id for draft in drafts]

    def get(self, _read: Read, _receipt_id: str, _user_id: str) -> tuple[Receipt, int]:
        raise NotImplementedError

    def list(self, _read: Read, _query: ReceiptQuery) -> ReceiptPage:
        raise NotImplementedError

    def contents(self, _read: Read, _receipt: Receipt) -> Sequence[Content | None]:
        raise NotImplementedError


class Queued(Struct):
    """A book with receipts that wait behind a write."""

    store: SlowStore
    book: ReceiptBook
    ids: list[str]


@pytest.fixture
def queued() -> Iterator[Queued]:
    store = SlowStore()
    book = ReceiptBook(store, days=30)
    book.start()
    ids = [book.new_id() for _ in range(4 * BATCH)]
    book.leave(_draft(ids[0]))
    assert store.writing.wait(PATIENCE)
    for receipt_id in ids[1:]:
        book.leave(_draft(receipt_id))
    yield Queued(store, book, ids)
    store.may_go_on.set()
    book.close()


def _draft(receipt_id: str) -> ReceiptDraft:
    return ReceiptDraft(receipt_id, "", "u", "c", 1, 0, 1, True, b"", b"", ())


def test_all_that_wait_are_written_at_the_end(queued: Queued) -> None:
    queued.store.may_go_on.set()
    queued.book.close()
    assert queued.store.written == queued.ids


def test_no_write_begins_when_the_time_to_stop_is_over(queued: Queued, caplog: pytest.LogCaptureFixture) -> None:
    closing = threading.Thread(target=queued.book.close, args=(0.0,))
    with caplog.at_level(logging.WARNING, receipt_book.__name__):
        closing.start()
        eventually(queued.book.new_id, until=lambda made: not made)  # it is closing
        queued.store.may_go_on.set()
        closing.join(PATIENCE)
    assert not closing.is_alive()
    assert queued.store.written == queued.ids[:1]
    [lost] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert vars(lost)["receipts"] == len(queued.ids) - 1


def test_whoever_wants_a_receipt_waits_for_no_later_one(queued: Queued, monkeypatch: pytest.MonkeyPatch) -> None:
    write = queued.store.write

    def only_first(given: Write, drafts: Sequence[ReceiptDraft], lifetime: int) -> None:
        if drafts[0].id != queued.ids[0]:
            assert may_write_others.wait(PATIENCE)
        write(given, drafts, lifetime)

    may_write_others = threading.Event()
    monkeypatch.setattr(queued.store, "write", only_first)
    queued.store.may_go_on.set()

    queued.book.settle(time.monotonic() + PATIENCE, queued.ids[0])

    assert queued.store.written == queued.ids[:1]
    may_write_others.set()


def test_whoever_wants_a_receipt_waits_only_where_it_is_not_written_yet(queued: Queued) -> None:
    at_once = time.monotonic()

    queued.book.settle(at_once, "written long ago")

    for wanted in ([], queued.ids[-1:], ["written long ago", queued.ids[0]]):
        with pytest.raises(DeadlineExceeded):
            queued.book.settle(at_once, *wanted)
    queued.store.may_go_on.set()
    queued.book.settle(time.monotonic() + PATIENCE, queued.ids[-1])
    assert queued.store.written == queued.ids


class BrokenStore(SlowStore):
    """A store that fails, in a way that nobody expects, with one receipt."""

    def __init__(self, broken: str) -> None:
        super().__init__()
        self.broken = broken

    def write(self, _write: Write, drafts: Sequence[ReceiptDraft], _lifetime: int) -> None:
        if any(draft.id == self.broken for draft in drafts):
            raise ZeroDivisionError
        self.written += [draft.id for draft in drafts]


def test_what_cannot_be_written_keeps_the_others_waiting_for_one_repeat_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(receipt_book, "BATCH", 1)
    store = BrokenStore("broken")
    book = ReceiptBook(store, days=30)
    for receipt_id in ("first", "broken", "last"):
        book.leave(_draft(receipt_id))
    book.start()

    book.settle(time.monotonic() + PATIENCE)

    assert store.written == ["first", "last"]
    assert book.failure == ""
    assert [record for record in caplog.records if record.getMessage().startswith("receipts are lost")]
    book.close()
