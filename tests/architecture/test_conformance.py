"""Every RPC of the contract has a conformance case that runs against the real server."""

from importlib import import_module
from pathlib import Path

from tests.conformance.cases import RPCS

ROOT = Path(__file__).resolve().parents[2]
SERVICE_FILES = sorted((ROOT / "proto" / "remora" / "v1").glob("*_service.proto"))


def methods_of(path: Path) -> list[str]:
    file = import_module(f"remora.v1.{path.stem}_pb2").DESCRIPTOR
    return [method.full_name for service in file.services_by_name.values() for method in service.methods]


def test_every_rpc_has_a_conformance_case() -> None:
    methods = [method for path in SERVICE_FILES for method in methods_of(path)]

    assert methods
    assert set(methods) - set(RPCS) == set(), "RPCs without a case in tests/conformance/every_rpc.json"
    assert set(RPCS) <= set(methods), "cases of RPCs that are not in the contract"
