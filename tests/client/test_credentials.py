"""Who a client is to its server: as it is told, else as the environment says."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENCE
from tests.tokens import token_file

from remora import AsyncRemora, Remora, testing
from remora.errors import InvalidFieldError, TenantMismatchError, UnauthenticatedError

HELLO = {"role": "user", "content": "hello"}


@pytest.fixture(scope="module")
def open_server() -> Iterator[str]:
    """A server that requires no token."""
    with testing.serve("--model=none") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tokens = token_file(tmp_path_factory.mktemp("tokens") / "tokens", "of-ana ana", "of-bob bob")
    with testing.serve("--model=none", f"--token-file={tokens}") as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REMORA_TOKEN", "REMORA_TENANT"):
        monkeypatch.delenv(name, raising=False)


def wrote(client: Remora) -> str:
    """The id of a conversation that this client has written."""
    with client:
        conversation = client.create_conversation()
    return conversation.id


def is_there(conversation_id: str, client: Remora) -> bool:
    with client:
        return conversation_id in [found.id for found in client.list_conversations(limit=None)]


def test_the_token_is_that_of_the_environment(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")

    written = wrote(Remora(guarded, timeout=PATIENCE))

    assert is_there(written, Remora(guarded, token="of-ana", timeout=PATIENCE))


def test_the_async_client_reads_it_too(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")

    async def write() -> str:
        async with AsyncRemora(guarded, timeout=PATIENCE) as client:
            return (await client.create_conversation()).id

    assert is_there(asyncio.run(write()), Remora(guarded, token="of-ana", timeout=PATIENCE))


def test_a_given_token_goes_before_the_environments_token_and_tenant(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")
    monkeypatch.setenv("REMORA_TENANT", "ana")

    written = wrote(Remora(guarded, token="of-bob", timeout=PATIENCE))

    assert is_there(written, Remora(guarded, token="of-bob", tenant="bob", timeout=PATIENCE))
    assert not is_there(written, Remora(guarded, timeout=PATIENCE))


def test_a_tenant_beside_a_token_must_be_the_tokens_wherever_they_are_from(
    guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")
    with pytest.raises(TenantMismatchError):
        wrote(Remora(guarded, tenant="bob", timeout=PATIENCE))

    monkeypatch.setenv("REMORA_TENANT", "bob")
    with pytest.raises(TenantMismatchError):
        wrote(Remora(guarded, timeout=PATIENCE))


def test_the_tenant_is_that_of_the_environment(open_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_TENANT", "acme")

    written = wrote(Remora(open_server, timeout=PATIENCE))

    assert is_there(written, Remora(open_server, tenant="acme", timeout=PATIENCE))
    assert not is_there(written, Remora(open_server, tenant="other", timeout=PATIENCE))


def test_an_empty_variable_is_as_good_as_none(open_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_TENANT", "")
    monkeypatch.setenv("REMORA_TOKEN", "")

    written = wrote(Remora(open_server, timeout=PATIENCE))

    assert is_there(written, Remora(open_server, tenant="default", timeout=PATIENCE))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("REMORA_TOKEN", "a\nb", "must be printable ASCII"),
        ("REMORA_TENANT", "tén", "must be printable ASCII"),
        ("REMORA_TENANT", " ", "must have more than white space"),
        ("REMORA_TENANT", "x" * 513, "at most 512 are allowed"),
    ],
)
def test_a_variable_that_cannot_be_sent_is_refused_by_its_name(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)

    for make in (Remora, AsyncRemora, Remora.start):
        with pytest.raises(InvalidFieldError, match=rf"^\${name} .*{said}$"):
            make()


def test_a_missing_token_is_told_with_what_gives_one(guarded: str) -> None:
    with pytest.raises(UnauthenticatedError) as caught:
        wrote(Remora(guarded, timeout=PATIENCE))

    assert str(caught.value).endswith("; `token=` or $REMORA_TOKEN gives one")
    assert caught.value.finding == "a token is needed: metadata `authorization: Bearer <token>`"


def test_a_server_of_ones_own_gets_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = token_file(tmp_path / "tokens", "of-ana ana")
    monkeypatch.setenv("REMORA_TOKEN_FILE", str(tokens))
    monkeypatch.setenv("REMORA_MODEL", "none")
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")

    with Remora.start(":memory:", timeout=PATIENCE) as memory, pytest.raises(UnauthenticatedError):
        memory.conversation("c").append(HELLO)


def test_the_server_of_the_usual_address_gets_both(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", guarded)
    monkeypatch.setenv("REMORA_TOKEN", "of-ana")

    with Remora.start(timeout=PATIENCE) as memory:
        written = memory.create_conversation().id

    assert is_there(written, Remora(guarded, token="of-ana", timeout=PATIENCE))
