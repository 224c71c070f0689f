"""The sync client is derived from the async one, and the client covers the whole contract."""

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest
from tests.client.scripted_server import SERVICES

import remora
from remora import _sync

OF_STUBS = {"ReadConversation", "SaveSpans", "UpdateSpan", "SaveLogRecords", "ListThreads"}
"""What no method of the client wraps: it is called through `stubs`."""
TOOL = Path(__file__).parents[2] / "tools/derive_sync.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("derive_sync", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_sync_face_is_up_to_date(tool: ModuleType) -> None:
    expected = tool.derive_all()

    assert len(expected) > 5
    assert tool.stale(expected) == []


def test_a_derived_file_says_so(tool: ModuleType) -> None:
    files = list(Path(_sync.__path__[0]).glob("*.py"))

    assert files
    assert all(file.read_text().startswith("# Derived from remora/_async/") for file in files)


def test_nothing_async_is_left_in_the_sync_face() -> None:
    text = "".join(file.read_text() for file in Path(_sync.__path__[0]).glob("*.py"))

    assert re.findall(r"\basync\b|\bawait\b|Async\w+|asyncio|_async\.", text) == []


def test_every_rpc_of_the_contract_is_called_by_the_client() -> None:
    methods = {method.name for service in SERVICES for method in service.methods}
    package = Path(remora.__path__[0])
    text = "".join(file.read_text() for file in package.rglob("*.py") if package / "v1" not in file.parents)

    assert len(methods) > 20
    assert {name for name in methods if f".{name}" not in text} == OF_STUBS


@pytest.mark.parametrize("name", [name for name in remora.__all__ if f"Async{name}" in remora.__all__])
def test_both_faces_have_the_same_methods(name: str) -> None:
    sync, source = getattr(remora, name), getattr(remora, f"Async{name}")

    def parameters(kind: type) -> dict[str, list[str]]:
        methods = inspect.getmembers(kind, inspect.isfunction)
        return {method: list(inspect.signature(call).parameters) for method, call in methods if method[0] != "_"}

    assert parameters(sync)
    assert parameters(sync) == parameters(source)
