"""The RPCs of users."""

from __future__ import annotations

from msgspec import Struct

from remora.v1 import user_service_pb2 as pb
from remora_server.domain.users import UserStore
from remora_server.rpc.calls import Call


class UserHandlers(Struct, frozen=True):
    """Answers the RPCs of users."""

    users: UserStore

    def delete_user(self, call: Call, request: pb.DeleteUserRequest) -> pb.DeleteUserResponse:
        outcome = self.users.delete(call.write(request), request.user_id)
        return pb.DeleteUserResponse(
            deleted_conversations=outcome.deleted_conversations,
            deleted_messages=outcome.deleted_messages,
            revision=outcome.revision,
        )
