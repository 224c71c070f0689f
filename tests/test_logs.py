"""What a line of the log says."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from remora_server import logs


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, of_grpc = logging.getLogger(), logging.getLogger("grpc")
    before = (root.level, root.handlers[:], of_grpc.level)
    yield
    root.setLevel(before[0])
    root.handlers[:] = before[1]
    of_grpc.setLevel(before[2])


def logged(log_format: str, level: str = "info") -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    logs.configure(level, log_format, stream)
    return logging.getLogger("remora_server.test"), stream


def test_a_line_of_json_holds_what_an_event_is_about() -> None:
    logger, stream = logged("json")

    logger.info("serving", extra={"revision": 7, "data": "/d é"})

    event = json.loads(stream.getvalue())
    assert event.pop("time").endswith("+00:00")
    assert event == {
        "level": "info",
        "logger": "remora_server.test",
        "event": "serving",
        "revision": 7,
        "data": "/d é",
    }


def test_a_line_of_text_can_be_taken_apart() -> None:
    logger, stream = logged("text")

    logger.warning("stopping", extra={"revision": 7, "why": 'it "must"', "empty": ""})

    assert stream.getvalue().endswith('warning stopping revision=7 why="it \\"must\\"" empty=""\n')


def fail(text: str) -> None:
    try:
        int(text)
    except ValueError as error:
        raise KeyError(text) from error


@pytest.mark.parametrize("log_format", logs.FORMATS)
def test_a_failure_is_told_by_its_type_and_place_without_its_text(log_format: str) -> None:
    logger, stream = logged(log_format)

    try:
        fail("secret")
    except KeyError as error:
        logger.exception("call failed", exc_info=error)

    line = stream.getvalue()
    assert "builtins.ValueError" in line
    assert "builtins.KeyError" in line
    assert __file__ in line
    assert "secret" not in line


def test_a_level_leaves_out_what_is_below() -> None:
    logger, stream = logged("text", level="warning")

    logger.info("unheard")

    assert stream.getvalue() == ""
