"""The core from Python: records go in, windows and the journal show them, also after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import PATIENCE

from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import ListMessagesResponse
from remora.v1.message_pb2 import Message
from remora_server._native import (
    Core,
    Head,
    InvalidRecord,
    JournalError,
    JournalFailed,
    JournalTimeout,
    MessagePage,
    RecordTooLarge,
)
from remora_server.storage.v1.record_pb2 import (
    Change,
    DeleteConversation,
    PutConversation,
    PutEmbedding,
    PutHead,
    PutMessage,
    Record,
    RemoveMessages,
)

TENANT = "acme"
CHAT = "chat"
ANN = "ann"
STORE_ID = bytes(range(16))
SECOND = 1_000_000
HOUR = 3_600 * SECOND


def open_core(
    directory: Path | None = None,
    *,
    segment_bytes: int = 64 << 20,
    queue_bytes: int = 16 << 20,
    window_bytes: int = 64 << 20,
    applied_revision: int = 0,
) -> Core:
    return Core(
        directory,
        store_id=STORE_ID,
        applied_revision=applied_revision,
        segment_bytes=segment_bytes,
        queue_bytes=queue_bytes,
        window_bytes=window_bytes,
    )


def record(*changes: Change, **fields: object) -> bytes:
    return Record(tenant_id=TENANT, changes=changes, **fields).SerializeToString()  # type: ignore[arg-type]


def creation(time: int = 1, title: str = "") -> Change:
    row = Conversation(id=CHAT, user_id=ANN, title=title)
    return Change(put_conversation=PutConversation(conversation=row, create_time=time))


def head(uid: int, last_sequence: int, count: int, time: int = 1) -> Change:
    return Change(
        put_head=PutHead(
            conversation_uid=uid,
            conversation_id=CHAT,
            last_sequence=last_sequence,
            message_count=count,
            last_time=time,
            update_time=time,
        )
    )


def message(uid: int, sequence: int, text: str = "", *, id: str = "", user: str = ANN, **fields: Any) -> Change:  # noqa: ANN401
    return Change(
        put_message=PutMessage(
            conversation_uid=uid,
            conversation_id=CHAT,
            user_id=user,
            id=id or f"m{sequence}",
            sequence=sequence,
            create_time=sequence * SECOND,
            update_time=sequence * SECOND,
            token_count=sequence,
            body=Message(**{"role": "user", "text": text, **fields}).SerializeToString(),
        )
    )


def removal(uid: int, *sequences: int, all: bool = False) -> Change:
    gone = RemoveMessages(conversation_uid=uid, conversation_id=CHAT, user_id=ANN, sequences=sequences, all=all)
    return Change(remove_messages=gone)


def deletion(uid: int) -> Change:
    return Change(delete_conversation=DeleteConversation(conversation_uid=uid, conversation_id=CHAT))


def write(core: Core, *changes: Change, **fields: object) -> int:
    revision, outcome = core.commit(record(*changes, **fields), 5.0)
    assert outcome == "committed"
    assert core.wait(revision, 5.0)
    return revision


def page(
    core: Core,
    *,
    user: str = ANN,
    roles: tuple[str, ...] = (),
    sent: tuple[int | None, int | None] = (None, None),
    received: tuple[int | None, int | None] = (None, None),
    before_sequence: int | None = None,
    newest: bool = True,
    limit: int = 100,
    max_bytes: int = 3 << 20,
) -> MessagePage:
    return core.list_messages(
        TENANT,
        CHAT,
        user,
        roles=roles,
        sent=sent,
        received=received,
        after_sequence=None,
        before_sequence=before_sequence,
        window=(0, 0),
        newest=newest,
        limit=limit,
        max_bytes=max_bytes,
    )


def messages(found: MessagePage) -> list[Message]:
    return list(ListMessagesResponse.FromString(found.encoded).messages)


def texts(core: Core) -> list[str]:
    return [listed.text for listed in messages(page(core))]


def test_a_committed_message_is_served_with_the_fields_of_caller_and_server() -> None:
    core = open_core()

    revision = write(core, creation(), message(0, 1, "hello", id="first"), head(0, 1, 1))

    served = messages(page(core))[0]
    assert (served.id, served.user_id, served.role, served.text) == ("first", ANN, "user", "hello")
    assert (served.sequence, served.revision, served.token_count) == (1, revision, 1)
    assert served.create_time.ToMicroseconds() == served.update_time.ToMicroseconds() == SECOND


def test_a_head_holds_the_row_and_the_counters() -> None:
    core = open_core()

    uid = write(core, creation(7, "a title"), head(0, 0, 0, 7))
    revision = write(core, message(uid, 1), head(uid, 1, 1, 9))

    seen = core.head(TENANT, CHAT, accepted=False)
    assert seen is not None
    assert seen == core.head(TENANT, CHAT, accepted=True)
    assert Conversation.FromString(seen.body) == Conversation(id=CHAT, user_id=ANN, title="a title")
    assert (seen.uid, seen.user_id, seen.create_time) == (uid, ANN, 7)
    assert (seen.last_sequence, seen.message_count, seen.last_time, seen.update_time) == (1, 1, 9, 9)
    assert seen.revision == revision


def test_a_replaced_message_keeps_its_place() -> None:
    core = open_core()
    uid = write(core, creation(), message(0, 1, "a"), message(0, 2, "b"), head(0, 2, 2))

    write(core, message(uid, 1, "changed"), head(uid, 2, 2))

    assert texts(core) == ["changed", "b"]
    assert core.find_messages(TENANT, CHAT, ANN, ["m2", "none", "m1"]) == [(2, 2 * SECOND), None, (1, SECOND)]


def test_removed_messages_are_gone_for_readers_and_writers() -> None:
    core = open_core()
    uid = write(core, creation(), *(message(0, n, str(n)) for n in range(1, 6)), head(0, 5, 5))

    write(core, removal(uid, 1, 4), head(uid, 5, 3))

    assert texts(core) == ["2", "3", "5"]
    assert core.live_sequences(TENANT, CHAT, None) == [2, 3, 5]
    assert core.live_sequences(TENANT, CHAT, "another") == []
    assert core.oldest_messages(TENANT, CHAT, 2) == [(2, ANN), (3, ANN)]


def test_clearing_a_user_leaves_the_others() -> None:
    core = open_core()
    uid = write(core, creation(), message(0, 1), message(0, 2, "mine", user="bob"), message(0, 3), head(0, 3, 3))

    write(core, removal(uid, all=True), head(uid, 3, 1))

    assert texts(core) == []
    assert [listed.text for listed in messages(page(core, user="bob"))] == ["mine"]
    assert core.live_sequences(TENANT, CHAT, None) == [2]


def test_a_conversation_that_is_created_again_is_empty() -> None:
    core = open_core()
    old = write(core, creation(), message(0, 1, "old"), head(0, 1, 1))

    write(core, deletion(old))
    assert core.head(TENANT, CHAT, accepted=False) is None
    assert texts(core) == []
    new = write(core, creation(), head(0, 0, 0))

    seen = core.head(TENANT, CHAT, accepted=False)
    assert seen is not None
    assert seen.uid == new != old
    assert texts(core) == []
    assert core.find_messages(TENANT, CHAT, ANN, ["m1"]) == [None]


def test_a_page_says_where_it_begins_and_ends_and_whether_more_follow() -> None:
    core = open_core()
    uid = write(core, creation(), *(message(0, n, str(n)) for n in range(1, 11)), head(0, 10, 10))

    newest = page(core, limit=3)
    oldest = page(core, newest=False, limit=3)

    assert (newest.first_sequence, newest.last_sequence, newest.count, newest.more) == (8, 10, 3, True)
    assert (oldest.first_sequence, oldest.last_sequence, oldest.count, oldest.more) == (1, 3, 3, True)
    assert not page(core, before_sequence=4).more
    assert newest.tokens == 8 + 9 + 10
    assert (newest.uid, newest.revision, newest.missing) == (uid, core.published(), [])


def test_filters_see_roles_and_times() -> None:
    core = open_core()
    roles = ["user", "assistant", "tool", "user"]
    write(core, creation(), *(message(0, n, role=role) for n, role in enumerate(roles, 1)), head(0, 4, 4))

    both = page(core, roles=("user", "tool"), received=(SECOND, None))

    assert [listed.sequence for listed in messages(both)] == [3, 4]
    assert page(core, roles=("system",)).count == 0


def test_a_message_was_sent_when_the_caller_says_and_else_when_it_was_received() -> None:
    core = open_core()
    sent: list[dict[str, Any]] = [{"sent_time": Timestamp(seconds=9)}, {}, {"sent_time": Timestamp(seconds=-1)}]
    write(core, creation(), *(message(0, n, **fields) for n, fields in enumerate(sent, 1)), head(0, 3, 3))

    assert [listed.sequence for listed in messages(page(core, sent=(0, 3 * SECOND)))] == [2]
    assert [listed.sequence for listed in messages(page(core, sent=(SECOND, None)))] == [1, 2]
    assert [listed.sequence for listed in messages(page(core, received=(None, 3 * SECOND)))] == [1, 2]


def test_a_page_ends_before_its_bytes_run_out_but_holds_one_message() -> None:
    core = open_core()
    write(core, creation(), *(message(0, n, "x" * 100) for n in range(1, 6)), head(0, 5, 5))
    entry = len(page(core, limit=1).encoded)

    assert page(core, max_bytes=2 * entry).count == 2
    assert page(core, max_bytes=2 * entry + 1).more
    assert page(core, max_bytes=1).last_sequence == 5


def test_a_long_conversation_leaves_old_bodies_to_the_database_once_they_are_applied() -> None:
    core = open_core()
    write(core, creation(), *(message(0, n, str(n)) for n in range(1, 301)), head(0, 300, 300))
    assert page(core, limit=300).missing == []

    core.mark_applied(core.published())

    found = page(core, limit=300)
    assert found.missing == list(range(1, 45))
    assert found.missing_revision == core.published()
    assert [listed.sequence for listed in messages(found)] == list(range(45, 301))
    assert (found.count, found.first_sequence) == (300, 1)


def test_a_conversation_is_absent_until_it_is_known() -> None:
    core = open_core()

    assert core.conversation_state(TENANT, CHAT) == "absent"
    assert core.head(TENANT, CHAT, accepted=True) is None
    core.know_conversations([(TENANT, CHAT)])

    assert core.conversation_state(TENANT, CHAT) == "cold"
    calls: list[Callable[[], object]] = [
        lambda: core.head(TENANT, CHAT, accepted=False),
        lambda: core.find_messages(TENANT, CHAT, ANN, ["m1"]),
        lambda: core.live_sequences(TENANT, CHAT, None),
        lambda: core.oldest_messages(TENANT, CHAT, 1),
        lambda: page(core),
    ]
    for call in calls:
        with pytest.raises(KeyError):
            call()


def stored(sequence: int, revision: int) -> bytes:
    return Message(role="user", text=str(sequence), sequence=sequence, revision=revision).SerializeToString()


def load(core: Core, *, uid: int, sequences: range, bodies: range, as_of: int, with_journal: bool = False) -> bool:
    loaded = Head(
        uid=uid,
        user_id=ANN,
        body=Conversation(id=CHAT, user_id=ANN).SerializeToString(),
        create_time=1,
        last_sequence=sequences.stop - 1,
        message_count=len(sequences),
        last_time=1,
        update_time=1,
        revision=uid,
    )
    rows = [(n, uid, ANN, f"m{n}", "user", n * SECOND, n * SECOND, n) for n in sequences]
    encoded = [stored(n, uid) for n in bodies]
    return core.load_conversation(TENANT, CHAT, loaded, rows, encoded, as_of=as_of, with_journal=with_journal)


def test_a_loaded_conversation_is_as_the_database_has_it() -> None:
    core = open_core()
    write(core)
    core.know_conversations([(TENANT, CHAT)])

    assert load(core, uid=1, sequences=range(1, 11), bodies=range(8, 11), as_of=1)

    assert core.conversation_state(TENANT, CHAT) == "resident"
    found = page(core, limit=5)
    assert (found.missing, texts(core)) == ([6, 7], ["8", "9", "10"])
    assert core.find_messages(TENANT, CHAT, ANN, ["m3"]) == [(3, 3 * SECOND)]


def test_a_load_is_refused_where_the_conversation_changed_after_the_database_was_asked() -> None:
    core = open_core()
    core.know_conversations([(TENANT, CHAT)])

    revision = write(core, deletion(1))

    assert not load(core, uid=1, sequences=range(1, 3), bodies=range(1, 3), as_of=revision - 1)
    assert core.conversation_state(TENANT, CHAT) == "cold"
    assert core.load_conversation(TENANT, CHAT, None, [], [], as_of=revision)
    assert core.conversation_state(TENANT, CHAT) == "resident"
    assert core.head(TENANT, CHAT, accepted=True) is None


def test_more_bodies_than_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="2 bodies for 1 messages"):
        load(open_core(), uid=1, sequences=range(1, 2), bodies=range(1, 3), as_of=1)


def test_what_is_not_applied_is_never_evicted() -> None:
    core = open_core(window_bytes=1)
    write(core, creation(), message(0, 1, "kept"), head(0, 1, 1))
    for other in range(40):
        core.load_conversation(TENANT, f"other-{other}", None, [], [], as_of=core.published())
        core.conversation_state(TENANT, f"other-{other}")
    assert texts(core) == ["kept"]

    for other in range(40):
        core.conversation_state(TENANT, f"other-{other}")
    core.mark_applied(core.published())

    assert core.conversation_state(TENANT, CHAT) == "cold"


def test_an_embedding_changes_no_window() -> None:
    core = open_core()
    write(core, creation(), message(0, 1, "text"), head(0, 1, 1))
    before = core.head(TENANT, CHAT, accepted=False)

    embedding = PutEmbedding(conversation_uid=1, conversation_id=CHAT, sequence=1, message_revision=1, model="m")
    write(core, Change(put_embedding=embedding))

    assert core.head(TENANT, CHAT, accepted=False) == before


def test_a_repeated_request_gets_the_first_revision_and_writes_nothing() -> None:
    core = open_core()
    request = {"request_id": "r", "fingerprint": bytes(16)}
    first = write(core, creation(), head(0, 0, 0), **request)

    assert core.commit(record(creation(), head(0, 0, 0), **request), 5.0) == (first, "repeated")
    assert core.commit(record(creation(), request_id="r", fingerprint=bytes(15) + b"1"), 5.0) == (first, "reused")

    assert core.accepted() == first
    assert core.find_request(TENANT, "r", bytes(16)) == (first, True)
    assert core.find_request(TENANT, "r", bytes(15) + b"1") == (first, False)
    assert core.find_request("another", "r", bytes(16)) is None


def test_a_request_id_is_forgotten_after_an_hour() -> None:
    core = open_core()
    core.load_requests([(TENANT, "old", bytes(16), 7, HOUR + 1), (TENANT, "young", bytes(16), 8, HOUR - 600_000_000)])
    core.end_load_of_requests()

    again = [core.commit(record(request_id=name, fingerprint=bytes(16)), 5.0) for name in ("old", "young")]

    assert again == [(1, "committed"), (8, "repeated")]
    assert core.oldest_request() == 8


def test_a_request_id_is_not_forgotten_when_the_wall_clock_is_set() -> None:
    core = open_core()
    first = write(core, request_id="r", fingerprint=bytes(16), time=0)
    write(core, request_id="later", fingerprint=bytes(16), time=2 * HOUR)

    assert core.commit(record(request_id="r", fingerprint=bytes(16), time=2 * HOUR), 5.0) == (first, "repeated")


def test_loaded_requests_are_recognised() -> None:
    core = open_core()

    core.load_requests([(TENANT, "r", bytes(16), 7, 0)])
    core.end_load_of_requests()

    assert core.commit(record(request_id="r", fingerprint=bytes(16)), 5.0) == (7, "repeated")


def test_requests_are_known_when_the_last_of_them_is_loaded() -> None:
    core = open_core()
    core.load_requests([(TENANT, "r", bytes(16), 7, 0)])
    write(core, request_id="new", fingerprint=bytes(16))

    before = (core.has_loaded_requests(), core.find_request(TENANT, "r", bytes(16)), core.oldest_request())
    core.end_load_of_requests()

    assert before == (False, None, None)
    assert core.has_loaded_requests()
    assert core.find_request(TENANT, "r", bytes(16)) == (7, True)
    assert core.find_request(TENANT, "new", bytes(16)) == (1, True)
    assert core.oldest_request() == 7


@pytest.mark.parametrize(
    "refused",
    [
        b"\xff",
        record(Change(put_message=PutMessage(conversation_id=CHAT, sequence=1, body=b"\xff"))),
        record(Change(put_message=PutMessage(conversation_id=CHAT))),
        record(Change(put_message=PutMessage(sequence=1))),
        record(Change(put_embedding=PutEmbedding(conversation_id=CHAT, model="m", values=b"123"))),
        record(request_id="r", fingerprint=b"short"),
    ],
)
def test_a_record_that_cannot_be_applied_is_refused_and_not_written(refused: bytes) -> None:
    core = open_core()

    with pytest.raises(InvalidRecord):
        core.commit(refused, 5.0)

    assert core.accepted() == 0


def test_a_record_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    core = open_core(tmp_path, segment_bytes=1 << 16)

    with pytest.raises(RecordTooLarge):
        core.commit(record(creation(title="x" * (1 << 16))), 5.0)


def test_a_commit_times_out_while_the_queue_is_full(tmp_path: Path) -> None:
    core = open_core(tmp_path, queue_bytes=1)
    encoded = record(creation())

    def commit_without_waiting() -> None:
        for _ in range(10_000):
            core.commit(encoded, 0.0)

    with pytest.raises(JournalTimeout):
        commit_without_waiting()


def test_the_applier_gets_the_records_that_were_committed(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    records = [record(creation(time)) for time in range(1, 4)]
    for encoded in records:
        core.wait(core.commit(encoded, 5.0)[0], 5.0)

    assert core.records_after(0, 1 << 20) == list(enumerate(records, 1))
    assert core.records_after(1, 1) == [(2, records[1])]


def test_after_a_restart_the_records_are_there_and_the_windows_empty(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    encoded = record(creation(), message(0, 1, "durable"), head(0, 1, 1))
    core.wait(core.commit(encoded, 5.0)[0], 5.0)
    del core

    core = open_core(tmp_path)
    core.know_conversations([(TENANT, CHAT)])

    assert (core.recovery.first_revision, core.recovery.last_revision, core.recovery.cut) == (1, 1, None)
    assert core.records_after(0, 1 << 20) == [(1, encoded)]
    assert core.conversation_state(TENANT, CHAT) == "cold"
    core.mark_applied(1)
    assert load(core, uid=1, sequences=range(1, 2), bodies=range(1, 2), as_of=1)
    assert write(core, message(1, 2, "next"), head(1, 2, 2)) == 2
    assert texts(core) == ["1", "next"]


def test_what_the_database_lacks_after_a_restart_is_in_the_journal(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    core.wait(write(core, creation(), message(0, 1, "1"), head(0, 1, 1)), 5.0)
    core.wait(write(core, message(1, 2, "2"), head(1, 2, 2)), 5.0)
    del core

    core = open_core(tmp_path, applied_revision=1)
    core.know_conversations([(TENANT, CHAT)])
    assert core.follow_unapplied(1, now=0) == 1

    assert not load(core, uid=1, sequences=range(1, 2), bodies=range(1, 2), as_of=1)
    assert load(core, uid=1, sequences=range(1, 2), bodies=range(1, 2), as_of=1, with_journal=True)
    assert texts(core) == ["1", "2"]
    unapplied = core.unapplied(TENANT, 1)
    assert unapplied is not None
    assert [(user, unapplied.parts(user)) for user in unapplied.users()] == [(ANN, [(1, CHAT)])]


def test_a_journal_of_another_store_is_refused(tmp_path: Path) -> None:
    open_core(tmp_path)

    with pytest.raises(JournalError, match="belongs to store"):
        Core(tmp_path, store_id=bytes(16), applied_revision=0)


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    assert core.failure() is None

    core.close()

    with pytest.raises(JournalFailed):
        core.commit(record(creation()), 5.0)
    assert core.failure() == "the journal is closed"


def test_who_follows_is_told_of_what_is_published_and_of_the_end(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    told: SimpleQueue[tuple[int, bool]] = SimpleQueue()
    assert core.follow(lambda: told.put((core.published(), core.has_ended())))
    assert not core.follow(lambda: None), "one follows already"

    revision = write(core, creation())
    assert told.get(timeout=PATIENCE) == (revision, False)
    core.close()

    while told.get(timeout=PATIENCE) != (revision, True):
        continue


def test_a_wait_ends_with_its_timeout() -> None:
    assert not open_core().wait(1, 0.01)


def test_threads_that_repeat_a_request_write_it_once() -> None:
    core = open_core()
    encoded = record(creation(), request_id="r", fingerprint=bytes(16))
    outcomes: list[tuple[int, str]] = []
    threads = [threading.Thread(target=lambda: outcomes.append(core.commit(encoded, 5.0))) for _ in range(8)]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == [(1, "committed"), *[(1, "repeated")] * 7]


def test_figures_count_what_is_held(tmp_path: Path) -> None:
    core = open_core(tmp_path)
    empty = core.statistics()

    write(core, creation(), message(0, 1, "x" * 1000), head(0, 1, 1))

    held, journal = core.statistics(), core.journal_statistics()
    assert (empty.conversations, empty.window_bytes, held.conversations) == (0, 0, 1)
    assert held.window_bytes > 1000
    assert (journal.records, journal.batches, journal.segments) == (1, 1, 1)
    assert journal.bytes >= 64 << 20


@given(
    drafts=st.lists(
        st.builds(
            Message,
            role=st.text(min_size=1, max_size=8),
            text=st.text(),
            name=st.text(max_size=8),
            parts=st.binary(),
            metadata=st.binary(),
        ),
        max_size=20,
    )
)
def test_what_a_caller_sets_comes_back_byte_for_byte(drafts: list[Message]) -> None:
    core = open_core()
    changes = [message(0, sequence) for sequence in range(1, len(drafts) + 1)]
    for change, draft in zip(changes, drafts, strict=True):
        change.put_message.body = draft.SerializeToString()

    write(core, creation(), *changes, head(0, len(drafts), len(drafts)))

    served = messages(page(core))
    for found in served:
        for field in ("id", "user_id", "sequence", "revision", "create_time", "update_time", "token_count"):
            found.ClearField(field)
    assert served == drafts
