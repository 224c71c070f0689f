"""Messages that take much more memory together than the database may use are reached after a restart, too."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.errors import NotFoundError, RemoraError
from remora.v1 import admin_service_pb2
from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message
from remora.v1.transfer_service_pb2 import Record

pytestmark = pytest.mark.slow

DATABASE_BYTES = 32 << 20
MESSAGES, LONG = 150, 250_000
"""The window of either conversation, 37 MB, is more than the database may hold."""
SETTINGS = ("--model=none", f"--database-bytes={DATABASE_BYTES}", "--window-bytes=4MiB")
WORDS = [f"word{number}" for number in range(500)]


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
    try:
        memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
    except RemoraError:
        return False
    return True


def is_applied(memory: Remora) -> bool:
    store = memory.stubs.admin.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=PATIENCE).store
    return bool(store.applied_revision == store.revision)


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
@pytest.mark.parametrize("order", [pb.PAGE_ORDER_NEWEST_FIRST, pb.PAGE_ORDER_OLDEST_FIRST])
def test_every_message_is_listed_once(
    cold: Remora, conversation: str, size: int, order: pb.PageOrder.ValueType
) -> None:
    found = list(pages(cold, conversation, size, order))

    oldest_first = found if order == pb.PAGE_ORDER_OLDEST_FIRST else found[::-1]
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
