"""Where clients look for a server."""

import os

import pytest

from remora import Remora
from remora.address import default_endpoint, resolve_endpoint


def test_the_default_is_in_the_runtime_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")

    assert default_endpoint() == "unix:/run/user/7/remora/remora.sock"


@pytest.mark.parametrize("unset", [None, ""])
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


def test_without_any_the_default_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REMORA_ENDPOINT", raising=False)

    assert Remora().endpoint == default_endpoint()


@pytest.mark.parametrize("endpoint", ["localhost:7411", "127.0.0.1:1", "[::1]:7411", "unix:/x", "unix:///x"])
def test_the_documented_forms_are_taken(endpoint: str) -> None:
    assert resolve_endpoint(endpoint) == endpoint


@pytest.mark.parametrize("endpoint", ["localhost", "unix:", ":7411", "localhost:", "localhost:http", "http://h:1/x"])
def test_other_forms_are_refused(endpoint: str) -> None:
    with pytest.raises(ValueError, match="host:port"):
        resolve_endpoint(endpoint)
