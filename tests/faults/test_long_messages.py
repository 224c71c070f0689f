"""Messages that take much more memory together than the database may use are reached after a restart, too."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import duckdb
import pytest
from tests.faults.sidecar import Sidecar, is_applied
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.errors import NotFoundError, RemoraError
from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora.v1.transfer_service_pb2 import Record
from remora_server.storage.database.database import FILE_NAME

pytestmark = pytest.mark.slow

DATABASE_BYTES = 32 << 20
MESSAGES, LONG = 150, 250_000
"""The window of either conversation, 37 MB, is more than the database may hold."""
OLDEST_FIRST = pb.PAGE_ORDER_OLDEST_FIRST
COMPRESSIONS = """
SELECT DISTINCT column_name, compression FROM pragma_storage_info('messages')
WHERE column_name IN ('text', 'body') AND segment_type IN ('VARCHAR', 'BLOB')
"""
SETTINGS = ("--model=none", f"--database-bytes={DATABASE_BYTES}", "--window-bytes=4MiB")
LETTERS = random.Random(0)
WORDS = ["".join(LETTERS.choices("abcdefghijklmnopqrstuvwxyz", k=LETTERS.randint(2, 9))) for _ in range(5_000)]


@cache
def message(conversation: str, number: int) -> Message:
    """The same one for the same number: its parts are long, or its text."""
    choice = random.Random(number)
    if conversation == "parts":
        return Message(id=f"m{number}", role="user", text=f"unique{number}", parts=choice.randbytes(LONG))
    text = " ".join([f"unique{number}", *choice.choices(WORDS, k=LONG // 8)])
    return Message(id=f"m{number}", role="user", text=text)


def append(memory: Remora, conversation: str, number: int) -> bool:
    request = pb.AppendMessagesRequest(
        conversation_id=conversation,
        messages=[message(conversation, number)],
        create_if_missing=Conversation(user_id=f"of-{conversation}"),
    )
    return is_accepted(memory, request)


def is_accepted(memory: Remora, request: pb.AppendMessagesRequest) -> bool:
    try:
        memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
    except RemoraError:
        return False
    return True


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a server that was stopped, with a conversation of long parts and one of long texts."""
    sidecar = Sidecar(tmp_path_factory.mktemp("filled"), *SETTINGS)
    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for number in range(MESSAGES):
            for conversation in ("parts", "texts"):
                eventually(partial(append, memory, conversation, number))
        eventually(lambda: is_applied(memory))
    assert sidecar.stop() == 0
    return sidecar.directory / "data"


@pytest.fixture
def cold(filled: Path, tmp_path: Path) -> Iterator[Remora]:
    """A server that has just been started on a copy of the data."""
    shutil.copytree(filled, tmp_path / "data")
    sidecar = Sidecar(tmp_path, *SETTINGS)
    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        yield memory
    sidecar.kill()


def pages(memory: Remora, conversation: str, size: int, order: pb.PageOrder.ValueType) -> Iterator[list[Message]]:
    request = pb.ListMessagesRequest(conversation_id=conversation, page_size=size, page_order=order)
    while True:
        page = memory.stubs.conversations.ListMessages(request, timeout=PATIENCE)
        yield list(page.messages)
        request.page_token = page.next_page_token
        if not request.page_token:
            return


def content(found: Message) -> tuple[str, str, bytes]:
    return found.id, found.text, found.parts


@pytest.mark.parametrize("conversation", ["parts", "texts"])
@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize("order", [pb.PAGE_ORDER_NEWEST_FIRST, OLDEST_FIRST])
def test_every_message_is_listed_once(
    cold: Remora, conversation: str, size: int, order: pb.PageOrder.ValueType
) -> None:
    found = list(pages(cold, conversation, size, order))

    oldest_first = found if order == OLDEST_FIRST else found[::-1]
    listed = [content(each) for page in oldest_first for each in page]
    assert listed == [content(message(conversation, number)) for number in range(MESSAGES)]


@pytest.mark.parametrize("conversation", ["parts", "texts"])
def test_a_search_finds_them(cold: Remora, conversation: str) -> None:
    found = cold.conversation(conversation, user_id=f"of-{conversation}").search("unique7", k=1)

    assert [hit.message.id for hit in found] == ["m7"]


@pytest.mark.parametrize("conversation", ["parts", "texts"])
def test_a_context_holds_the_newest(cold: Remora, conversation: str) -> None:
    context = cold.conversation(conversation, user_id=f"of-{conversation}").context(500_000, query="unique7")

    assert f"unique{MESSAGES - 1}" in str(context.messages)


def test_an_export_holds_all(cold: Remora) -> None:
    records: list[Record] = []
    token = ""
    while True:
        page = cold.export_records(page_token=token)
        records += page.records
        token = page.next_page_token
        if not token:
            break

    exported = [record.message for record in records if record.HasField("message")]
    assert {(each.conversation_id, *content(each.message)) for each in exported} == {
        (conversation, *content(message(conversation, number)))
        for conversation in ("parts", "texts")
        for number in range(MESSAGES)
    }


def test_they_are_appended_to_and_deleted(cold: Remora) -> None:
    assert append(cold, "parts", MESSAGES)
    assert append(cold, "texts", MESSAGES)

    cold.conversation("parts", user_id="of-parts").delete_messages(["m0"])
    cold.conversation("parts", user_id="of-parts").delete()
    cold.user("of-texts").delete()

    eventually(lambda: is_applied(cold))
    for conversation in ("parts", "texts"):
        with pytest.raises(NotFoundError):
            cold.conversation(conversation).messages(1)


PACKED = 2_500


def packed(number: int) -> Message:
    """One whose text and parts are as long as those that DuckDB compresses: it decodes 2,048 of them to read one."""
    text = " ".join([f"unique{number}", *random.Random(number).choices(WORDS, k=2_400)])
    return Message(id=f"m{number}", role="user", text=text, parts=text.encode()[::-1])


def test_compressed_messages_are_read_where_decoding_takes_more_than_there_is(tmp_path: Path) -> None:
    written = Sidecar(tmp_path, "--model=none", "--database-bytes=256MiB")
    written.start()
    with Remora(written.endpoint, timeout=PATIENCE) as memory:
        for first in range(0, PACKED, 50):
            request = pb.AppendMessagesRequest(
                conversation_id="packed",
                messages=[packed(number) for number in range(first, first + 50)],
                create_if_missing=Conversation(user_id="sarah"),
            )
            eventually(partial(is_accepted, memory, request))
        eventually(lambda: is_applied(memory))
        assert written.stop() == 0
        with duckdb.connect(str(tmp_path / "data" / FILE_NAME), read_only=True) as connection:
            assert dict(connection.execute(COMPRESSIONS).fetchall()) == {"text": "DICT_FSST", "body": "DICT_FSST"}

        sidecar = Sidecar(tmp_path, *SETTINGS)
        sidecar.start()
        listed = [content(found) for page in pages(memory, "packed", 1_000, OLDEST_FIRST) for found in page]
        exported = memory.export_records(conversation_id="packed").records
    sidecar.kill()

    assert listed == [content(packed(number)) for number in range(PACKED)]
    assert content(exported[1].message.message) == content(packed(0))
