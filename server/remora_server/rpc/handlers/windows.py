"""The RPCs of windows."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import short_term_pb2
from remora_server import wire
from remora_server.domain.windows import WindowStore
from remora_server.rpc.calls import Call
from remora_server.rpc.methods import quick


class WindowHandlers(Struct, frozen=True):
    """Answers the RPCs of windows. `failure_of` says why one, by tenant and conversation, cannot be moved."""

    windows: WindowStore
    failure_of: Callable[[str, str], str]

    @quick
    def get_window(self, call: Call, request: pb.GetWindowRequest) -> pb.GetWindowResponse:
        read = call.read(request)
        found, revision = self.windows.get(read, request.conversation_id, request.user_id)
        window = short_term_pb2.Window(
            first_sequence=found.first_sequence,
            system_sequence=found.system_sequence,
            window_revision=found.revision,
            move_time=wire.timestamp(found.move_time) if found.revision else None,
            failure=self.failure_of(read.tenant_id, request.conversation_id),
        )
        return pb.GetWindowResponse(window=window, revision=revision)
