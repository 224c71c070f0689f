#!/usr/bin/env python
"""Fuzzes every RPC from its encoded request to a store in memory: `python fuzz/requests.py CORPUS [options]`.

Inputs are sequences of calls (tests/input/sequences.py). Half of the mutations know what a request is: they put a value
of the table of bad input at one of its places, or add, repeat and drop calls.
"""

from __future__ import annotations

import random
import sys
from contextlib import ExitStack
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["remora_server"]):
    from tests.input.callers import METHODS, direct_caller

from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from tests.input.places import places, put
from tests.input.sequences import NAMES, Step, check, decoded, encoded
from tests.input.table import MODEL, TEMPLATES, least, values_of

RUNS_OF_A_STORE = 5_000
PLACES = {name: list(places(METHODS[name].input_type)) for name in NAMES}


def mutated(data: bytes, max_size: int, seed: int) -> bytes:
    """An input near another one."""
    choice = random.Random(seed)
    if choice.random() < 0.4:
        return bytes(atheris.Mutate(data, max_size))
    steps = list(decoded(data)) or [_new(choice)]
    at = choice.randrange(len(steps))
    match choice.randrange(8):
        case 0:
            steps.insert(at, _new(choice))
        case 1:
            steps.insert(choice.randrange(len(steps) + 1), steps[at])
        case 2 if len(steps) > 1:
            del steps[at]
        case 3:
            request = bytes(atheris.Mutate(steps[at].request, len(steps[at].request) + 16))
            steps[at] = Step(steps[at].method, request)
        case _:
            steps[at] = _with_a_value(steps[at], choice)
    return encoded(steps)[:max_size]


def _new(choice: random.Random) -> Step:
    name = choice.choice(NAMES)
    return Step(name, least(METHODS[name].input_type.name).SerializeToString())


def _with_a_value(step: Step, choice: random.Random) -> Step:
    """The call with a value that the table knows at one of its places."""
    if not PLACES[step.method]:
        return step
    place = choice.choice(PLACES[step.method])
    values = values_of(place)
    known = [value for value in (*values.accepted, *values.refused) if not _is_long(value)]
    if not known:
        return step
    request = _parsed(step)
    try:
        put(request, place, choice.choice(known), TEMPLATES)
    except (IndexError, ValueError):
        return step
    return Step(step.method, request.SerializeToString())


def _is_long(value: object) -> bool:
    return isinstance(value, bytes | str | list | dict) and len(value) > 4_096


def _parsed(step: Step) -> Message:
    try:
        return GetMessageClass(METHODS[step.method].input_type).FromString(step.request)
    except DecodeError:
        return least(METHODS[step.method].input_type.name)


class Target:
    """Checks inputs, on a new store from time to time: one that only grows becomes slow."""

    def __init__(self) -> None:
        self._runs = 0
        self._store = ExitStack()

    def __call__(self, data: bytes) -> None:
        if self._runs % RUNS_OF_A_STORE == 0:
            self._store.close()
            self._caller = self._store.enter_context(direct_caller(MODEL, receipt_days=0))
        self._runs += 1
        check(self._caller, data)


def main() -> None:
    """Fuzz until libFuzzer's options say that it is enough."""
    atheris.Setup(sys.argv, Target(), custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
