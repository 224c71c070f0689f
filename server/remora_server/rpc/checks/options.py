"""What the contract says of its fields in protovalidate's options (https://protovalidate.com).

The generated stubs do not have the options, so that clients need no protovalidate. The server has an image of the
contract with them, which is read here into its own pool of descriptors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, TypeAlias

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

Stated: TypeAlias = Mapping[str, Any]
"""Options by name: those that are set."""


class ContractOptions:
    """The options, by the full name of their message, field or oneof."""

    def __init__(self, image: bytes) -> None:
        self._pool = DescriptorPool()
        for file in FileDescriptorSet.FromString(image).file:
            self._pool.Add(file)
        self._of_messages = self._reader("MessageOptions", "message")
        self._of_fields = self._reader("FieldOptions", "field")
        self._of_oneofs = self._reader("OneofOptions", "oneof")

    def of_message(self, name: str) -> Stated:
        """The options of a message. Raises KeyError if the contract has no such message."""
        return self._of_messages(self._pool.FindMessageTypeByName(name))

    def of_field(self, name: str) -> Stated:
        """The options of a field. Raises KeyError if the contract has no such field."""
        return self._of_fields(self._pool.FindFieldByName(name))

    def of_oneof(self, name: str) -> Stated:
        """The options of a oneof. Raises KeyError if the contract has no such oneof."""
        return self._of_oneofs(self._pool.FindOneofByName(name))

    def _reader(self, kind: str, name: str) -> Callable[[Any], Stated]:
        options_type = GetMessageClass(self._pool.FindMessageTypeByName(f"google.protobuf.{kind}"))
        extension: Any = self._pool.FindExtensionByName(f"buf.validate.{name}")

        def read(described: Any) -> Stated:  # noqa: ANN401 - a descriptor of any kind
            encoded = described.GetOptions().SerializeToString()
            return stated(options_type.FromString(encoded).Extensions[extension]) if encoded else {}

        return read


def stated(options: Message) -> Stated:
    """The options that are set in a message of options."""
    return {field.name: value for field, value in options.ListFields()}


def of_contract() -> ContractOptions:
    """The options of the contract that this server serves."""
    return ContractOptions((resources.files("remora_server.rpc") / "contract" / "image.binpb").read_bytes())
