"""Where clients look for a server."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from remora import Remora
from remora._endpoint import LONGEST_PATH, require_no_endpoint
from remora.address import default_endpoint, require_own_default
from remora.errors import InvalidFieldError

CLIENTS_TABLE = Path(__file__).parent.parent / "conformance" / "tables" / "endpoints.json"
"""Endpoints that all clients accept, and that all refuse."""
ENDPOINTS: dict[str, list[str]] = json.loads(CLIENTS_TABLE.read_text("utf-8"))


def test_the_default_is_in_the_runtime_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")

    assert default_endpoint() == "unix:/run/user/7/remora/remora.sock"


@pytest.mark.parametrize("unset", [None, "", "run", "./run"])
def test_without_a_runtime_directory_the_default_is_the_users_own(
    monkeypatch: pytest.MonkeyPatch, unset: str | None
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if unset is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", unset)

    assert default_endpoint() == f"unix:/tmp/remora-{os.getuid()}/remora.sock"


def test_an_endpoint_given_comes_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", "sidecar:7411")

    assert Remora("unix:/tmp/r.sock").endpoint == "unix:/tmp/r.sock"
    assert Remora().endpoint == "sidecar:7411"


def test_an_endpoint_that_is_no_text_is_refused_before_any_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", os.fsdecode(b"unix:/tmp/\xff"))

    with pytest.raises(ValueError, match=r"\$REMORA_ENDPOINT is .*; it must be unix:/path or host:port"):
        Remora()


@pytest.mark.parametrize("slashes", ["/", "///"])
def test_a_path_that_no_socket_can_have_is_refused_before_any_call(
    monkeypatch: pytest.MonkeyPatch, slashes: str
) -> None:
    endpoint = f"unix:{slashes}{'x' * (LONGEST_PATH - 1)}"
    assert Remora(endpoint).endpoint == endpoint

    with pytest.raises(InvalidFieldError, match=r"^endpoint has a path of 10\d bytes, and a socket's has at most 10\d"):
        Remora(f"{endpoint}y")
    monkeypatch.setenv("XDG_RUNTIME_DIR", endpoint.removeprefix("unix:"))
    said = r"^the .* endpoint has a path of 1.. bytes.*\$XDG_RUNTIME_DIR"
    with pytest.raises(InvalidFieldError, match=said):
        Remora()
    for data in (None, ":memory:", "data"):
        with pytest.raises(InvalidFieldError, match=said):
            Remora.start(data)


def test_without_any_the_default_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMORA_ENDPOINT", raising=False)

    assert Remora().endpoint == default_endpoint()


@pytest.mark.parametrize("endpoint", ENDPOINTS["accepted"])
def test_the_documented_forms_are_taken(endpoint: str) -> None:
    assert Remora(endpoint).endpoint == endpoint


@pytest.mark.parametrize("endpoint", ENDPOINTS["refused"])
def test_other_forms_are_refused(endpoint: str) -> None:
    with pytest.raises(InvalidFieldError, match="host:port"):
        Remora(endpoint)


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the default socket."""
    monkeypatch.delenv("REMORA_ENDPOINT", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "remora"


@pytest.fixture
def _others(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That directory belongs to another user: who asks is neither it nor root."""
    owner = 4_242 if os.geteuid() == 0 else os.geteuid()
    runtime.mkdir()
    if os.geteuid() == 0:
        os.chown(runtime, owner, -1)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


@pytest.mark.usefixtures("_others")
def test_a_default_socket_in_another_users_directory_is_not_called(connect: Callable[..., Remora]) -> None:
    client = connect()

    with pytest.raises(PermissionError, match="belongs to user"):
        client.status()


@pytest.mark.usefixtures("_others")
@pytest.mark.parametrize("data", [None, "somewhere", ":memory:"])
def test_no_server_is_found_or_started_in_another_users_directory(data: str | None) -> None:
    with pytest.raises(PermissionError, match="belongs to user"):
        Remora.start(data)


@pytest.fixture
def _others_link(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its place is another user's symbolic link to a directory of root's."""
    runtime.symlink_to("/usr")
    if os.geteuid() == 0:
        os.lchown(runtime, 4_242, -1)
    monkeypatch.setattr(os, "geteuid", lambda: runtime.lstat().st_uid + 1)


@pytest.mark.usefixtures("_others_link")
def test_a_default_socket_behind_another_users_link_is_not_called(connect: Callable[..., Remora]) -> None:
    client = connect()

    with pytest.raises(PermissionError, match="belongs to user"):
        client.status()


@pytest.mark.usefixtures("_others_link")
@pytest.mark.parametrize("slashes", ["//", "///"])
def test_the_default_socket_is_known_by_other_spellings_of_its_path(slashes: str) -> None:
    with pytest.raises(PermissionError, match="belongs to user"):
        require_own_default(default_endpoint().replace("unix:", f"unix:{slashes}"))


def test_a_default_socket_behind_ones_own_link_to_ones_own_directory_may_be_called(
    runtime: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    runtime.symlink_to(tmp_path / "elsewhere")

    require_own_default(default_endpoint())


@pytest.mark.usefixtures("_others")
def test_an_endpoint_that_is_named_may_be_anybodys() -> None:
    require_own_default("unix:/tmp/r.sock")


@pytest.mark.parametrize("there", [True, False])
def test_a_default_socket_in_ones_own_directory_or_in_none_may_be_called(runtime: Path, there: bool) -> None:
    if there:
        runtime.mkdir()

    require_own_default(default_endpoint())


@pytest.mark.parametrize("path", ["data", "./localhost:7441", "/data", "/notes:1", "a/b:80", "unix", "http:", "~/d"])
def test_what_no_endpoint_is_may_be_a_directory(path: str) -> None:
    require_no_endpoint(path, "data")
