"""A socket and users who share a group or do not: containers of a pod with an fsGroup."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OWNER, OTHER, STRANGER = 23_001, 23_002, 23_003
GROUP, ANOTHER_GROUP = 23_100, 23_101
BECOME = """
import os, sys
def become(user, group):
    os.setgroups([group]); os.setgid(user); os.setuid(user)
"""
# All is imported as root: others need not be able to read this interpreter.
LISTEN = """
from remora_server.rpc.identity import Identity
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.transport.listeners import parse_listener
from remora_server.rpc.transport.transports import ServerOptions
become(int(sys.argv[3]), int(sys.argv[4]))
transport = TRANSPORTS["native"](ServerOptions(), Identity())
print(parse_listener(sys.argv[1], int(sys.argv[2], 8)).bind(transport), flush=True)
sys.stdin.read()
"""
CONNECT = """
import socket
become(int(sys.argv[2]), int(sys.argv[3]))
print(socket.socket(socket.AF_UNIX).connect_ex(sys.argv[1]))
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may be several users")


@pytest.fixture
def volume() -> Iterator[Path]:
    """A directory as a volume with an fsGroup is: root's, and its group goes to what is made in it."""
    folder = Path(tempfile.mkdtemp(prefix="remora-", dir="/tmp"))
    os.chown(folder, 0, GROUP)
    folder.chmod(0o2770)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def listening(path: Path, mode: str) -> Iterator[None]:
    command = [sys.executable, "-c", BECOME + LISTEN, f"unix:{path}", mode, str(OWNER), str(GROUP)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == f"unix:{path}\n"
        yield
        server.communicate("")


def connected(path: Path, user: int, group: int) -> int:
    """The error number of a connection of a user; 0: it is made."""
    command = [sys.executable, "-c", BECOME + CONNECT, str(path), str(user), str(group)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.slow
def test_all_users_of_the_group_connect_and_no_others(volume: Path) -> None:
    path = volume / "s"
    with listening(path, "0660"):
        assert (path.stat().st_uid, path.stat().st_gid) == (OWNER, GROUP)
        assert connected(path, OWNER, GROUP) == 0
        assert connected(path, OTHER, GROUP) == 0
        assert connected(path, STRANGER, ANOTHER_GROUP) == errno.EACCES


def test_by_default_only_the_user_of_the_server_connects(volume: Path) -> None:
    path = volume / "s"
    with listening(path, "0600"):
        assert connected(path, OWNER, GROUP) == 0
        assert connected(path, OTHER, GROUP) == errno.EACCES
