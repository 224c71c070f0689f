"""What tools learn of the services by reflection, in both versions of the protocol and over both transports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import grpc
import pytest
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.text_format import Parse
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_reflection.v1alpha import reflection_pb2 as pb
from tests.patience import PATIENCE
from tests.rpc.running_server import RunningServer, detail

from remora_server.rpc.reflection import REFLECTION_NAMES, REFLECTION_PATHS, Reflection
from remora_server.rpc.server import SERVICES, TRANSPORTS
from remora_server.rpc.transport.transports import ServerOptions

Streams: TypeAlias = "grpc.StreamStreamMultiCallable[bytes, bytes]"

NOT_FOUND, INVALID_ARGUMENT = grpc.StatusCode.NOT_FOUND.value[0], grpc.StatusCode.INVALID_ARGUMENT.value[0]


@pytest.fixture(scope="module", params=TRANSPORTS)
def server(request: pytest.FixtureRequest) -> Iterator[RunningServer]:
    with RunningServer(options=ServerOptions(transport=request.param)) as running:
        yield running


@pytest.fixture(params=REFLECTION_PATHS)
def path(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def asked(server: RunningServer, path: str, *requests: pb.ServerReflectionRequest) -> list[pb.ServerReflectionResponse]:
    """The replies of one stream."""
    ask: Streams = server.channel.stream_stream(path)
    encoded = iter([request.SerializeToString() for request in requests])
    return [pb.ServerReflectionResponse.FromString(reply) for reply in ask(encoded, timeout=PATIENCE)]


def files(response: pb.ServerReflectionResponse) -> list[FileDescriptorProto]:
    assert response.WhichOneof("message_response") == "file_descriptor_response", response
    return [FileDescriptorProto.FromString(one) for one in response.file_descriptor_response.file_descriptor_proto]


def symbols_of(file: FileDescriptor) -> Iterator[str]:
    """Everything in a file that has a full name."""
    for service in file.services_by_name.values():
        yield service.full_name
        yield from (method.full_name for method in service.methods)
    for message in file.message_types_by_name.values():
        yield from _of_message(message)
    for enum in file.enum_types_by_name.values():
        yield enum.full_name
        yield from (f"{file.package}.{value.name}" for value in enum.values)


def _of_message(message: Descriptor) -> Iterator[str]:
    yield message.full_name
    yield from (field.full_name for field in message.fields)
    yield from (oneof.full_name for oneof in message.oneofs)
    for enum in message.enum_types:
        yield enum.full_name
        yield from (f"{message.full_name}.{value.name}" for value in enum.values)
    for nested in message.nested_types:
        yield from _of_message(nested)


def imported(file: FileDescriptor) -> Iterator[FileDescriptor]:
    yield file
    for one in file.dependencies:
        yield from imported(one)


FILES = {one.name: one for service in SERVICES for one in imported(service.file)}


def test_every_service_is_listed(server: RunningServer, path: str) -> None:
    [reply] = asked(server, path, pb.ServerReflectionRequest(list_services=""))

    names = [service.name for service in reply.list_services_response.service]
    assert names == sorted([*(one.full_name for one in SERVICES), "grpc.health.v1.Health", *REFLECTION_NAMES])


@pytest.mark.slow
def test_every_symbol_leads_to_the_file_that_defines_it(server: RunningServer, path: str) -> None:
    symbols = [(symbol, file.name) for file in FILES.values() for symbol in symbols_of(file)]
    requests = [pb.ServerReflectionRequest(file_containing_symbol=symbol) for symbol, _ in symbols]

    replies = asked(server, path, *requests)

    assert len(symbols) > 500
    assert ("remora.v1.MemoryService.SearchMessages", "remora/v1/memory_service.proto") in symbols
    assert [(reply.original_request, files(reply)[0].name) for reply in replies] == [
        (request, name) for request, (_, name) in zip(requests, symbols, strict=True)
    ]


def add_with_imports(pool: DescriptorPool, files: dict[str, FileDescriptorProto], name: str) -> None:
    """Raises KeyError where an import is missing."""
    for imported_name in files[name].dependency:
        add_with_imports(pool, files, imported_name)
    pool.Add(files[name])


def test_a_listed_service_is_described_by_the_files_that_come(server: RunningServer, path: str) -> None:
    [listed] = asked(server, path, pb.ServerReflectionRequest(list_services=""))
    names = [service.name for service in listed.list_services_response.service]

    for reply in asked(server, path, *(pb.ServerReflectionRequest(file_containing_symbol=name) for name in names)):
        pool, sent = DescriptorPool(), {file.name: file for file in files(reply)}
        add_with_imports(pool, sent, next(iter(sent)))
        service = pool.FindServiceByName(reply.original_request.file_containing_symbol)
        assert all(method.input_type.fields is not None for method in service.methods)


def test_a_file_comes_by_its_name_with_all_that_it_imports(server: RunningServer, path: str) -> None:
    name = "remora/v1/memory_service.proto"

    [reply] = asked(server, path, pb.ServerReflectionRequest(file_by_filename=name, host="h"))

    found = [file.name for file in files(reply)]
    assert found[0] == name
    assert sorted(found) == sorted({one.name for one in imported(FILES[name])})
    assert (reply.valid_host, reply.original_request.host) == ("h", "h")


def test_what_is_not_there_is_told_and_does_not_end_the_stream(server: RunningServer, path: str) -> None:
    extension = pb.ExtensionRequest(containing_type="remora.v1.Message", extension_number=100)
    unknown = [
        pb.ServerReflectionRequest(file_containing_symbol="remora.v1.MemoryService.Forget"),
        pb.ServerReflectionRequest(file_containing_symbol=""),
        pb.ServerReflectionRequest(file_by_filename="nowhere.proto"),
        pb.ServerReflectionRequest(file_containing_extension=extension),
        pb.ServerReflectionRequest(all_extension_numbers_of_type="remora.v1.Nothing"),
    ]

    *replies, none, last = asked(
        server, path, *unknown, pb.ServerReflectionRequest(), pb.ServerReflectionRequest(list_services="")
    )

    assert [reply.error_response.error_code for reply in replies] == [NOT_FOUND] * len(unknown)
    assert [reply.original_request for reply in replies] == unknown
    assert none.error_response.error_code == INVALID_ARGUMENT
    assert last.list_services_response.service


def test_a_message_that_nothing_extends_has_no_extensions(server: RunningServer, path: str) -> None:
    [reply] = asked(server, path, pb.ServerReflectionRequest(all_extension_numbers_of_type="remora.v1.Message"))

    assert reply.all_extension_numbers_response == pb.ExtensionNumberResponse(base_type_name="remora.v1.Message")


def test_a_malformed_request_is_refused_with_its_field(server: RunningServer, path: str) -> None:
    ask: Streams = server.channel.stream_stream(path)

    with pytest.raises(grpc.RpcError) as raised:
        next(ask(iter([b"\xff"]), timeout=PATIENCE))

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert detail(raised.value, ErrorInfo) == ErrorInfo(
        reason="INVALID_FIELD", domain="remora.dev", metadata={"field": "request"}
    )


EXTENDED = """
name: "base.proto" package: "t" syntax: "proto2"
message_type { name: "Base" extension_range { start: 100 end: 200 } }
"""
EXTENDING = """
name: "more.proto" package: "t" syntax: "proto2" dependency: "base.proto"
extension { name: "top" number: 120 label: LABEL_OPTIONAL type: TYPE_INT32 extendee: ".t.Base" }
message_type {
  name: "Scope"
  extension { name: "inner" number: 110 label: LABEL_OPTIONAL type: TYPE_INT32 extendee: ".t.Base" }
}
"""


@pytest.fixture
def extended() -> Reflection:
    """Reflection of a message that another file extends."""
    pool = DescriptorPool()
    for text in (EXTENDED, EXTENDING):
        pool.Add(Parse(text, FileDescriptorProto()))
    return Reflection([], pool)


def answer(reflection: Reflection, **asked: object) -> pb.ServerReflectionResponse:
    request = pb.ServerReflectionRequest(**asked)  # type: ignore[arg-type]
    return pb.ServerReflectionResponse.FromString(reflection.answer(request.SerializeToString()))


@pytest.mark.parametrize("number", [110, 120])
def test_an_extension_leads_to_the_file_that_defines_it(extended: Reflection, number: int) -> None:
    wanted = pb.ExtensionRequest(containing_type="t.Base", extension_number=number)

    assert [file.name for file in files(answer(extended, file_containing_extension=wanted))] == [
        "more.proto",
        "base.proto",
    ]


def test_an_extension_that_is_not_there_is_not_found(extended: Reflection) -> None:
    wanted = pb.ExtensionRequest(containing_type="t.Base", extension_number=130)

    assert answer(extended, file_containing_extension=wanted).error_response.error_code == NOT_FOUND


@pytest.mark.parametrize("symbol", ["t.top", "t.Scope.inner"])
def test_an_extension_is_a_symbol(extended: Reflection, symbol: str) -> None:
    assert files(answer(extended, file_containing_symbol=symbol))[0].name == "more.proto"


def test_the_extensions_of_a_message_are_listed(extended: Reflection) -> None:
    reply = answer(extended, all_extension_numbers_of_type="t.Base").all_extension_numbers_response

    assert (reply.base_type_name, list(reply.extension_number)) == ("t.Base", [110, 120])
