"""Server reflection: tells tools such as grpcurl what the services and their messages are.

https://github.com/grpc/grpc/blob/master/doc/server-reflection.md has the protocol. Its versions v1 and v1alpha differ
only in the name of their package, so that one answer serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, TypeVar, cast

from google.protobuf import text_format
from google.protobuf.descriptor import FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import Default, DescriptorPool
from google.protobuf.message import DecodeError
from google.rpc import code_pb2
from grpc_reflection.v1alpha import reflection_pb2 as pb

from remora_server.domain.errors import InvalidField

_SERVICE = cast("ServiceDescriptor", pb.DESCRIPTOR.services_by_name["ServerReflection"])
_ALPHA, _V1 = "v1alpha", "v1"
REFLECTION_NAMES = (_SERVICE.full_name.replace(_ALPHA, _V1), _SERVICE.full_name)
REFLECTION_PATHS = tuple(f"/{name}/ServerReflectionInfo" for name in REFLECTION_NAMES)

T = TypeVar("T")


class Reflection:
    """Describes services, and whatever else the pool holds (the one of the generated code, unless another is given)."""

    def __init__(self, services: Iterable[str], pool: DescriptorPool | None = None) -> None:
        self._names = sorted((*services, *REFLECTION_NAMES))
        self._pool = pool or Default()

    def answer(self, encoded: bytes) -> bytes:
        """The reply to one message of the stream, both encoded. Raises InvalidField if it cannot be decoded."""
        try:
            request = pb.ServerReflectionRequest.FromString(encoded)
        except DecodeError:
            raise InvalidField("request", "cannot be decoded as a ServerReflectionRequest") from None
        response = self._answer(request)
        response.valid_host = request.host
        response.original_request.CopyFrom(request)
        return response.SerializeToString()

    def _answer(self, request: pb.ServerReflectionRequest) -> pb.ServerReflectionResponse:
        asked = request.WhichOneof("message_request")
        try:
            if asked == "list_services":
                return self._services()
            if asked == "all_extension_numbers_of_type":
                return self._extensions(request.all_extension_numbers_of_type)
            if asked in _FILES:
                return _files(self._find(partial(_FILES[asked], request)))
        except KeyError:
            return _error(code_pb2.NOT_FOUND, "it is not known")
        return _error(code_pb2.INVALID_ARGUMENT, "nothing is asked for that is known here")

    def _services(self) -> pb.ServerReflectionResponse:
        listed = [pb.ServiceResponse(name=name) for name in self._names]
        return pb.ServerReflectionResponse(list_services_response=pb.ListServiceResponse(service=listed))

    def _extensions(self, name: str) -> pb.ServerReflectionResponse:
        numbers = self._find(
            lambda pool: [one.number for one in pool.FindAllExtensions(pool.FindMessageTypeByName(name))]
        )
        found = pb.ExtensionNumberResponse(base_type_name=name, extension_number=sorted(numbers))
        return pb.ServerReflectionResponse(all_extension_numbers_response=found)

    def _find(self, find: Callable[[DescriptorPool], T]) -> T:
        """Looks in the pool, and then in the pool of reflection itself. Raises KeyError."""
        try:
            return find(self._pool)
        except KeyError:
            return find(self._own_pool)

    @cached_property
    def _own_pool(self) -> DescriptorPool:
        """Reflection v1, made at its first use, because it has no generated code."""
        pool = DescriptorPool()
        alpha = text_format.MessageToString(FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb))
        file = text_format.Parse(alpha.replace(_ALPHA, _V1), FileDescriptorProto())
        file.name = "grpc/reflection/v1/reflection.proto"
        file.options.ClearField("deprecated")
        pool.Add(file)
        return pool


def _named(request: pb.ServerReflectionRequest, pool: DescriptorPool) -> FileDescriptor:
    return pool.FindFileByName(request.file_by_filename)


def _defining(request: pb.ServerReflectionRequest, pool: DescriptorPool) -> FileDescriptor:
    """The file that defines a symbol of any kind. The descriptor of a method does not know its file."""
    symbol = request.file_containing_symbol
    try:
        return pool.FindFileContainingSymbol(symbol)
    except KeyError:
        return pool.FindMethodByName(symbol).containing_service.file


def _extending(request: pb.ServerReflectionRequest, pool: DescriptorPool) -> FileDescriptor:
    asked = request.file_containing_extension
    message = pool.FindMessageTypeByName(asked.containing_type)
    extension: Any = pool.FindExtensionByNumber(message, asked.extension_number)  # its type lacks `file`
    return cast("FileDescriptor", extension.file)


_FILES: dict[str, Callable[[pb.ServerReflectionRequest, DescriptorPool], FileDescriptor]] = {
    "file_by_filename": _named,
    "file_containing_symbol": _defining,
    "file_containing_extension": _extending,
}
"""The lookup of the requested file. Raises KeyError if there is none."""


def _files(file: FileDescriptor) -> pb.ServerReflectionResponse:
    """A file and all its imports."""
    found = pb.FileDescriptorResponse(file_descriptor_proto=[one.serialized_pb for one in _with_imports(file, set())])
    return pb.ServerReflectionResponse(file_descriptor_response=found)


def _with_imports(file: FileDescriptor, seen: set[str]) -> Iterator[FileDescriptor]:
    seen.add(file.name)
    yield file
    for imported in file.dependencies:
        if imported.name not in seen:
            yield from _with_imports(imported, seen)


def _error(code: code_pb2.Code.ValueType, message: str) -> pb.ServerReflectionResponse:
    return pb.ServerReflectionResponse(error_response=pb.ErrorResponse(error_code=code, error_message=message))
