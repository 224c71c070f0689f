"""The conformance cases: what a server must reply to each RPC, as protobuf's JSON, for clients in any language.

Each case starts from a tenant that holds what `given` wrote and nothing else. A reply must show what the case names and
may show more; lists have the length that the case gives them. `<any>` stands for any value but the default, `<none>`
for the default. `then` is a second call, which shows what the first has done. A case with a `refusal` in place of the
reply must fail with this code and reason.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = "dict[str, Any]"

FILE = Path(__file__).with_name("every_rpc.json")
_DOCUMENT: dict[str, list[Json]] = json.loads(FILE.read_text("utf-8"))

GIVEN, CASES = _DOCUMENT["given"], _DOCUMENT["cases"]
RPCS = [str(case["rpc"]) for case in CASES]


def difference(expected: object, found: object, path: str = "reply") -> str:
    """Where what was found is not as expected; empty where it is."""
    if expected == "<any>":
        return "" if found is not None else f"{path} is missing"
    if expected == "<none>":
        return "" if found is None else f"{path} is {found!r}"
    if isinstance(expected, dict) and isinstance(found, dict):
        return next(filter(None, (difference(expected[key], found.get(key), f"{path}.{key}") for key in expected)), "")
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return next(filter(None, (difference(*pair, f"{path}[{place}]") for place, pair in pairs)), "")
    return "" if expected == found else f"{path} is {found!r} instead of {expected!r}"
