"""How the server logs: one JSON object or one line of text for each event, never with contents of messages."""

from __future__ import annotations

import json
import logging
import sys
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")

# What every record of the standard library has; anything else was given as `extra`.
_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


logger = logging.getLogger(__name__)


def configure(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Send everything from a level of LEVELS on to a stream (standard error), in a format of FORMATS."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Failures that nobody handles say where they were, in this format and without their texts, as all others do.
    sys.unraisablehook = _log_unraisable
    threading.excepthook = _log_end_of_thread
    # grpcio logs each failure of a handler with its text, which may quote contents: rpc.errors does it without.
    logging.getLogger("grpc").setLevel(logging.CRITICAL)


def _log_unraisable(failure: sys.UnraisableHookArgs) -> None:
    logger.error("a failure that nobody handles", exc_info=failure.exc_value)


def _log_end_of_thread(failure: threading.ExceptHookArgs) -> None:
    ended = failure.thread.name if failure.thread else ""
    logger.error("a thread failed and ends", exc_info=failure.exc_value, extra={"failed": ended})


class JsonFormatter(logging.Formatter):
    """One object a line: time, level, logger, event, what the event is about, and where it failed."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **_about(record),
        }
        if record.exc_info:
            event["failure"] = describe(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """One line for people: time, level, event, what it is about; then where it failed."""

    def format(self, record: logging.LogRecord) -> str:
        about = "".join(f" {name}={_word(value)}" for name, value in _about(record).items())
        line = f"{_time(record)} {record.levelname.lower():7} {record.getMessage()}{about}"
        return f"{line}\n{describe(record.exc_info)}" if record.exc_info else line


def describe(exc_info: tuple[object, ...]) -> str:
    """The types of an exception and its causes and the lines that they passed, without their texts, which may quote
    contents.
    """
    error = exc_info[1]
    lines: list[str] = []
    while isinstance(error, BaseException):
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}")
        lines.extend(_frames(error.__traceback__))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)


def _frames(trace: TracebackType | None) -> list[str]:
    return [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(trace)]


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def _about(record: logging.LogRecord) -> Mapping[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _STANDARD}


def _word(value: object) -> str:
    """A value that a blank or a quote does not tear apart."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or set(text) & set(' "=\n') else text
