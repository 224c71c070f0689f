"""The errors that the contract tells callers of: pairs of a code and a reason in the comments of its .proto files."""

from __future__ import annotations

import re
from pathlib import Path

from google.rpc.code_pb2 import Code

CONTRACT = Path(__file__).parents[2] / "proto" / "remora" / "v1"
CODES = frozenset(Code.keys())
_COMMENT = re.compile(r"//(.*)")
_PAIR = re.compile(r"\b([A-Z_]+),\s+([A-Z_]+)\b")


_RPC = re.compile(r"((?: *//.*\n)+) *rpc (\w+)\((\w+)\)")
_MESSAGE = r"\nmessage {} \{{.*?\n}}"


def _texts() -> dict[str, str]:
    return {file.stem: file.read_text("utf-8") for file in sorted(CONTRACT.glob("*.proto"))}


def _errors_in(text: str) -> set[tuple[str, str]]:
    pairs = _PAIR.findall("\n".join(_COMMENT.findall(text)))
    return {(code, reason) for code, reason in pairs if code in CODES}


def documented_errors() -> set[tuple[str, str]]:
    """Each code with each reason that stands behind it: `NOT_FOUND, CONVERSATION_NOT_FOUND`."""
    return set[tuple[str, str]]().union(*map(_errors_in, _texts().values()))


def documented_errors_by_rpc() -> dict[str, set[tuple[str, str]]]:
    """The same for each RPC: in its own comment, in those of its request's fields, and among those of all calls."""
    texts = _texts()
    return {
        rpc: _errors_in(texts["calls"]) | _errors_in(comment) | _errors_in(_message(request, text))
        for text in texts.values()
        for comment, rpc, request in _RPC.findall(text)
    }


def _message(name: str, text: str) -> str:
    found = re.search(_MESSAGE.format(name), text, re.DOTALL)
    assert found, name
    return found.group()
