"""Every RPC of the contract is served and has a handler of its own."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import remora_server.rpc
from remora_server.rpc.methods import snake_case
from remora_server.rpc.server import SERVICE_NAMES, SERVICES

ROOT = Path(__file__).resolve().parents[2]
SERVICE_FILES = sorted((ROOT / "proto" / "remora" / "v1").glob("*_service.proto"))
METHODS = [method.name for service in SERVICES for method in service.methods]


def services_of(path: Path) -> list[str]:
    file = import_module(f"remora.v1.{path.stem}_pb2").DESCRIPTOR
    return [service.full_name for service in file.services_by_name.values()]


def classes_of_rpc() -> Iterator[type]:
    for module in pkgutil.walk_packages(remora_server.rpc.__path__, "remora_server.rpc."):
        for _, member in inspect.getmembers(import_module(module.name), inspect.isclass):
            if member.__module__ == module.name:
                yield member


CLASSES = list(classes_of_rpc())


def test_every_service_of_the_contract_is_served() -> None:
    services = [name for path in SERVICE_FILES for name in services_of(path)]

    assert services
    assert sorted(SERVICE_NAMES) == sorted(services)


def test_there_are_methods_and_classes() -> None:
    assert METHODS
    assert CLASSES


def test_the_operator_is_checked_where_the_contract_says_so() -> None:
    contract = "".join(file.read_text("utf-8") for file in SERVICE_FILES)
    said = re.findall(r"// Operators only\..*\n(?: *//.*\n)* *rpc (\w+)", contract)
    checked = [
        method
        for method in METHODS
        for member in CLASSES
        if hasattr(vars(member).get(snake_case(method)), "is_for_operators")
    ]

    assert said
    assert sorted(checked) == sorted(said)


@pytest.mark.parametrize("method", METHODS)
def test_an_rpc_has_one_handler(method: str) -> None:
    handlers = [member.__name__ for member in CLASSES if snake_case(method) in vars(member)]

    assert len(handlers) == 1
