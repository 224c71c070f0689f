"""The RPCs of the contract by name, with their requests and replies as JSON: whichever service has them."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass
from tests.input.callers import METHODS

Json: TypeAlias = "dict[str, Any]"

TIMEOUT_SECONDS = 30.0
OF_THE_SERVER = ("revision", "nextPageToken")
"""Fields of replies that another server fills in otherwise."""
RENDERED = ("memory", "earlier", "text")
"""Fields of a context that a later version may render in another way."""


def ask(channel: grpc.Channel, tenant: str, name: str, request: Json) -> Json:
    """Call a method for a tenant; its reply without what is the server's. Raises grpc.RpcError."""
    method = METHODS[name]
    request_class, reply_class = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    call: grpc.UnaryUnaryMultiCallable[Any, Any] = channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=request_class.SerializeToString,
        response_deserializer=reply_class.FromString,
    )
    reply = call(ParseDict(request, request_class()), timeout=TIMEOUT_SECONDS, metadata=(("remora-tenant", tenant),))
    return {key: value for key, value in MessageToDict(reply).items() if key not in OF_THE_SERVER}


def answers(channel: grpc.Channel, reads: list[Json]) -> list[Json]:
    """What the server says to reads, each of which names a tenant, a method and a request."""
    return [_answer(channel, **read) for read in reads]


def _answer(channel: grpc.Channel, tenant: str, method: str, request: Json) -> Json:
    try:
        return {"reply": _kept(method, ask(channel, tenant, method, request))}
    except grpc.RpcError as error:
        return {"refused": error.code().name}


def _kept(method: str, reply: Json) -> Json:
    """What every later version replies as well."""
    if method != "ReplayContext":
        return reply
    context = {key: value for key, value in reply["context"].items() if key not in RENDERED}
    return {**{key: value for key, value in reply.items() if key != "identical"}, "context": context}
