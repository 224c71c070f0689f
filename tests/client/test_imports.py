"""What the package gives, and what it imports for that."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import remora

CLIENTS = ("remora._async.client", "remora._sync.client", "grpc")


def imported_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after a statement."""
    script = f"{statement}\nimport sys; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    )


def promised_to_type_checkers() -> dict[str, str]:
    """The names that the package imports for type checkers alone, with their modules."""
    tree = ast.parse(Path(remora.__file__).read_text("utf-8"))
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in guarded.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


def test_every_name_is_what_type_checkers_are_told() -> None:
    promised = promised_to_type_checkers()

    assert sorted(promised) == remora.__all__
    for name, module in promised.items():
        assert getattr(remora, name) is getattr(import_module(module), name)
        assert name in dir(remora)


def test_the_modules_need_no_import_of_their_own() -> None:
    assert remora.errors.RemoraError is remora.RemoraError


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'remora' has no attribute 'nothing'"):
        remora.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_the_messages_need_no_client() -> None:
    imported = imported_by("import remora.v1.message_pb2")

    assert "remora.v1.message_pb2" in imported
    assert not imported & set(CLIENTS)


def test_one_face_does_not_bring_the_other() -> None:
    imported = imported_by("from remora import Remora")

    assert "remora._sync.client" in imported
    assert "remora._async.client" not in imported


def test_a_server_starts_without_a_client() -> None:
    imported = imported_by("import remora_server.application")

    assert "remora_server.rpc.transport.native_transport" in imported
    assert not imported & set(CLIENTS)
