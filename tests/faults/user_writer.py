"""A process that writes as one user and logs, outside of the server, what it asked and what was acknowledged.

`python -m tests.faults.user_writer ENDPOINT USER SHARED SEED LOG`: at each line on its input, a number, it writes until
a call is not answered, and says on its output when so many were answered, and when one was not. Each request is in the
log before it is sent, its answer when it has come.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import sys
from pathlib import Path

import grpc
from google.protobuf.message import Message
from tests.faults.contract import call
from tests.faults.user_requests import UserRequests
from tests.patience import PATIENCE

OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "localhost")]
UNANSWERED = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED}
"""What a call ends with whose connection broke: the server may have done it, or not."""


class Log:
    """Lines that are with the system when `add` returns, whatever becomes of this process or the server."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, kind: str, *content: str) -> None:
        """One event."""
        os.write(self._file, (json.dumps([kind, *content]) + "\n").encode())

    def sync(self) -> None:
        """Bring it to the disk."""
        os.fdatasync(self._file)


def encoded(message: Message) -> str:
    """A message as text."""
    return base64.b64encode(message.SerializeToString()).decode()


def write_until_unanswered(endpoint: str, requests: UserRequests, log: Log, answers: int) -> None:
    """Write, one request after the other, until one is not answered, and say when so many were."""
    with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        for number in itertools.count(1):
            method, request = requests.draw()
            log.add("ask", method, encoded(request))
            try:
                reply = call(channel, method, request, PATIENCE)
            except grpc.RpcError as error:
                if error.code() in UNANSWERED:
                    return
                log.add("refused", error.code().name, error.details() or "")
            else:
                log.add("reply", encoded(reply))
            if number == answers:
                say("answered")


def say(word: str) -> None:
    """Tell the process that started this one."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    endpoint, user, shared, seed, path = sys.argv[1:]
    requests, log = UserRequests(user, shared, seed), Log(Path(path))
    say("ready")
    for line in sys.stdin:
        write_until_unanswered(endpoint, requests, log, int(line))
        log.sync()
        say("unanswered")


if __name__ == "__main__":
    main()
