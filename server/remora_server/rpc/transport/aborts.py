"""How a call of grpcio ends with a status."""

from __future__ import annotations

from typing import NoReturn

import grpc
from grpc_status import rpc_status

from remora_server.rpc.errors import logged_status


def abort(context: grpc.ServicerContext, error: BaseException, method: str) -> NoReturn:
    """End a call with the error's status."""
    context.abort_with_status(rpc_status.to_status(logged_status(error, method)))
