"""The errors that the contract tells callers of: pairs of a code and a reason in the comments of its .proto files."""

from __future__ import annotations

import re
from pathlib import Path

from google.rpc.code_pb2 import Code

CONTRACT = Path(__file__).parents[2] / "proto" / "remora" / "v1"
CODES = frozenset(Code.keys())
_COMMENT = re.compile(r"//(.*)")
_PAIR = re.compile(r"\b([A-Z_]+),\s+([A-Z_]+)\b")


def _comments() -> list[str]:
    return ["\n".join(_COMMENT.findall(file.read_text("utf-8"))) for file in sorted(CONTRACT.glob("*.proto"))]


def documented_errors() -> set[tuple[str, str]]:
    """Each code with each reason that stands behind it: `NOT_FOUND, CONVERSATION_NOT_FOUND`."""
    pairs = {pair for comments in _comments() for pair in _PAIR.findall(comments)}
    return {(code, reason) for code, reason in pairs if code in CODES}
