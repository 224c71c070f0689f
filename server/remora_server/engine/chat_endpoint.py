"""The chat model behind an OpenAI-compatible endpoint: `domain.chat_models.ChatModel`."""

from __future__ import annotations

import logging
import random
import threading
import time
from functools import partial

from msgspec import Struct

from remora_server.domain.chat_models import ChatModelFailed, Completion, Prompt
from remora_server.engine.breaker import Breaker
from remora_server.engine.chat_replies import NEW_LIMIT, OLD_LIMIT, WrongReply, decode_reply, encode_request
from remora_server.engine.flights import FlightFailed, Flights
from remora_server.engine.http_endpoint import OK, HttpEndpoint, HttpOptions, KeyUnusable, NoReply

ATTEMPTS = 3
PAUSE_SECONDS = 0.5
"""Before the second attempt, with jitter. Each pause is twice as long as the last."""
ANSWER_BYTES, ANSWER_BYTES_PER_TOKEN = 1 << 20, 128
"""The longest answer of an endpoint has so many bytes, and so many more for each token."""

LATE = "the endpoint does not answer in time"

_BAD_REQUEST = 400
_PASSING = (408, 409, 425, 429, 500, 502, 503, 504)
"""Statuses after which the same request may succeed."""

logger = logging.getLogger(__name__)


class ChatOptions(Struct, frozen=True):
    """An endpoint, with the URL of its `/chat/completions`, and the model to request from it. One request takes
    at most `timeout` seconds.
    """

    http: HttpOptions
    model: str
    timeout: float


class _Passing(Exception):
    """An attempt failed, and another may succeed, after `wait` seconds at the earliest."""

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(cause)
        self.wait = wait


class _OutOfTime(ChatModelFailed):
    """An attempt had less time than a request may take."""


class _FormRefused(ChatModelFailed):
    """The endpoint refuses the request, for its form or its content."""


class ChatEndpoint:
    """Asks an endpoint for completions, again where that may help, and rests while it fails. Safe to share between
    threads.
    """

    def __init__(self, options: ChatOptions) -> None:
        self._options = options
        self._http = HttpEndpoint(options.http)
        self._flights: Flights[Completion] = Flights("chat")
        self._breaker = Breaker()
        self._stopping = threading.Event()
        self._limit = OLD_LIMIT
        self._limit_works = False
        self._failure = ""
        self._not_before = 0.0

    @property
    def name(self) -> str:
        return self._options.model

    @property
    def failure(self) -> str:
        """Why the last completion failed; empty if it succeeded."""
        return self._failure

    def complete(self, prompt: Prompt, max_tokens: int, timeout: float) -> Completion:
        self._require_leave()
        try:
            completion = self._persistently(prompt, max_tokens, time.monotonic() + timeout)
        except ChatModelFailed as error:
            is_impatient = isinstance(error, _OutOfTime) and timeout < self._options.timeout
            is_for_content = isinstance(error, _FormRefused) and self._limit_works
            if is_for_content:  # the endpoint answers: others may ask it
                self._breaker.may_work_again()
            elif not is_impatient:
                self._not_before = max(self._not_before, time.monotonic() + error.wait)
                self._breaker.failed()
            if not is_impatient:
                self._note(str(error))
            raise
        self._breaker.succeeded()
        self._note("")
        return completion

    def close(self) -> None:
        """End every wait for the endpoint."""
        self._stopping.set()
        self._flights.close()
        self._http.close()

    def _require_leave(self) -> None:
        """Ask nothing of an endpoint that asked for a pause or keeps failing. Raises ChatModelFailed."""
        wait = self._not_before - time.monotonic()
        if wait > 0 or not self._breaker.allows():
            raise ChatModelFailed(self._failure or "the endpoint has failed before", max(wait, self._breaker.rest()))

    def _persistently(self, prompt: Prompt, max_tokens: int, until: float) -> Completion:
        """The completion of the first attempt that succeeds. Raises ChatModelFailed."""
        pause = PAUSE_SECONDS
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._attempt(prompt, max_tokens, until)
            except _Passing as failure:
                rest = max(failure.wait, pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret
                is_last = attempt == ATTEMPTS or time.monotonic() + rest >= until
                if is_last or self._stopping.wait(rest):
                    raise ChatModelFailed(str(failure), failure.wait) from failure
            pause *= 2
        raise AssertionError("the last attempt returns or raises")

    def _attempt(self, prompt: Prompt, max_tokens: int, until: float) -> Completion:
        """Ask once. Raises _Passing, _OutOfTime, ChatModelFailed."""
        timeout = min(self._options.timeout, until - time.monotonic())
        if timeout <= 0:
            raise _OutOfTime("there is no time left to ask the endpoint")
        end = time.monotonic() + timeout
        try:
            return self._flights.wait(partial(self._asked, prompt, max_tokens, timeout), timeout)
        except FlightFailed as error:
            raise ChatModelFailed(str(error)) from error
        except TimeoutError:
            failure = _Passing(LATE)
        except _Passing as error:
            failure = error
        if timeout < self._options.timeout and time.monotonic() >= end:
            raise _OutOfTime(LATE)
        raise failure

    def _asked(self, prompt: Prompt, max_tokens: int, timeout: float) -> Completion:
        """Ask with the name of the bound on tokens that the endpoint accepts. Raises _Passing, ChatModelFailed."""
        try:
            completion = self._posted(prompt, max_tokens, timeout, self._limit)
        except _FormRefused:
            if self._limit_works:
                raise
            completion = self._posted(prompt, max_tokens, timeout, NEW_LIMIT)
            self._limit = NEW_LIMIT
        self._limit_works = True
        return completion

    def _posted(self, prompt: Prompt, max_tokens: int, timeout: float, limit: str) -> Completion:
        """Ask once. Raises _Passing, _FormRefused, ChatModelFailed."""
        request = encode_request(self.name, prompt, max_tokens, limit)
        try:
            reply = self._http.post(request, timeout, ANSWER_BYTES + max_tokens * ANSWER_BYTES_PER_TOKEN)
        except NoReply as error:
            raise _Passing(str(error)) from error
        except KeyUnusable as error:
            raise ChatModelFailed(str(error)) from error
        if reply.status in _PASSING:
            raise _Passing(reply.describe(), reply.wait)
        if reply.status == _BAD_REQUEST:
            raise _FormRefused(reply.describe())
        if reply.status != OK:
            raise ChatModelFailed(reply.describe(), reply.wait)
        try:
            return decode_reply(reply.body, self.name)
        except WrongReply as error:
            raise _Passing(str(error)) from error

    def _note(self, failure: str) -> None:
        before, self._failure = self._failure, failure
        if failure and failure != before:
            logger.warning("the chat model does not answer", extra={"model": self.name, "cause": failure})
        elif before and not failure:
            logger.info("the chat model answers again", extra={"model": self.name})
