"""The writes of the contract, by name, from its descriptors."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pb2 import MethodOptions
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from tests.faults.sidecar import ROOT

OF_OPERATORS = {"CreateBackup", "DeleteBackup"}
"""They leave the store as it is."""


def _methods() -> dict[str, MethodDescriptor]:
    paths = (ROOT / "proto" / "remora" / "v1").glob("*_service.proto")
    files = [import_module(f"remora.v1.{path.stem}_pb2").DESCRIPTOR for path in paths]
    services = [service for file in files for service in file.services_by_name.values()]
    return {method.name: method for service in services for method in service.methods}


def _is_write(method: MethodDescriptor) -> bool:
    options = method.GetOptions()
    assert isinstance(options, MethodOptions)
    return options.idempotency_level != MethodOptions.NO_SIDE_EFFECTS and method.name not in OF_OPERATORS


WRITES = {name: method for name, method in _methods().items() if _is_write(method)}


def request_from(method: str, encoded: bytes) -> Message:
    """The request of a write."""
    return GetMessageClass(WRITES[method].input_type).FromString(encoded)


def reply_from(method: str, encoded: bytes) -> Message:
    """The reply of a write."""
    return GetMessageClass(WRITES[method].output_type).FromString(encoded)


def call(channel: grpc.Channel, method: str, request: Message, timeout: float) -> Any:  # noqa: ANN401 - of the method
    """Send a write. Raises grpc.RpcError."""
    descriptor = WRITES[method]
    ask = channel.unary_unary(
        f"/{descriptor.containing_service.full_name}/{method}",
        request_serializer=type(request).SerializeToString,
        response_deserializer=GetMessageClass(descriptor.output_type).FromString,
    )
    return ask(request, timeout=timeout)
