"""Completions through an endpoint: a real server on a real port, which does everything that endpoints do wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.engine.chat_server import ChatServer, completion, instruction_of, text_of
from tests.engine.endpoint_server import Answer, Asked, error
from tests.patience import PATIENCE

from remora_server.chat_model import open_chat_model
from remora_server.domain.chat_models import ChatModelFailed, Completion, Prompt
from remora_server.engine.breaker import FAILURES
from remora_server.engine.chat_endpoint import ATTEMPTS, ChatEndpoint
from remora_server.settings.chat import ChatSettings

PROMPT = Prompt("Say it in short.", "tea is ready")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora_server.engine.chat_endpoint.PAUSE_SECONDS", 0.001)


@pytest.fixture
def models() -> Iterator[Callable[..., ChatEndpoint]]:
    """Opens models, which are closed in the end."""
    opened: list[ChatEndpoint] = []

    def make(server: ChatServer, timeout: float = PATIENCE, **key: object) -> ChatEndpoint:
        opened.append(open_chat_model(ChatSettings(server.url, "scribe", timeout, **key)))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for model in opened:
        model.close()


@pytest.fixture
def model(server: ChatServer, models: Callable[..., ChatEndpoint]) -> ChatEndpoint:
    return models(server)


def answers(*each: Answer | None) -> Callable[[Asked], Answer | None]:
    """One after the other, the last for ever."""
    left = list(each)
    return lambda _asked: left.pop(0) if len(left) > 1 else left[0]


def complete(model: ChatEndpoint, timeout: float = PATIENCE) -> Completion:
    return model.complete(PROMPT, 100, timeout)


def test_a_prompt_reaches_the_model_and_its_text_comes_back(server: ChatServer, model: ChatEndpoint) -> None:
    found = complete(model)

    assert found == Completion("In short: tea is ready", "scribe")
    [asked] = server.asked
    assert asked.path == "/v1/chat/completions"
    assert (instruction_of(asked), text_of(asked)) == (PROMPT.instruction, PROMPT.text)
    assert (asked.body["model"], asked.body["max_tokens"]) == ("scribe", 100)
    assert "authorization" not in asked.headers
    assert model.failure == ""


def test_a_text_that_was_cut_off_says_so(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(completion(" Half a ", "length"))

    assert complete(model) == Completion("Half a", "scribe", truncated=True)


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>\nThey met.\n</think>\n\nTea is ready", "Tea is ready"),
        (" <think></think>Tea is ready", "Tea is ready"),
        ("They met: so it is tea.\n</think>\nTea is ready ", "Tea is ready"),
        ("<think>What is <think>?</think>\n<think>Tea.</think> Tea is ready", "Tea is ready"),
        ("Sarah asked what </think> means.", "Sarah asked what </think> means."),
        ('[{"fact": "uses </think> tags"}]', '[{"fact": "uses </think> tags"}]'),
        ("Tea is ready, and <think>it</think> is hot", "Tea is ready, and <think>it</think> is hot"),
        ("Tea is <think> ready", "Tea is <think> ready"),
    ],
)
def test_what_the_model_reasons_before_its_answer_is_left_out(
    server: ChatServer, model: ChatEndpoint, said: str, answer: str
) -> None:
    server.behaviour = answers(completion(said))

    assert complete(model) == Completion(answer, "scribe")


def test_the_key_comes_from_its_file_as_it_is_now(
    server: ChatServer, models: Callable[..., ChatEndpoint], tmp_path: Path
) -> None:
    file = tmp_path / "key"
    model = models(server, api_key_file=file)
    for key in ("one", "two"):
        file.write_text(f"{key}\n")
        complete(model)
    file.unlink()
    with pytest.raises(ChatModelFailed, match="cannot be read"):
        complete(model)

    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer one", "Bearer two"]


def test_an_endpoint_that_wants_the_newer_name_of_the_bound_gets_it_from_then_on(
    server: ChatServer, model: ChatEndpoint
) -> None:
    server.behaviour = lambda asked: error(400, "unsupported_parameter") if "max_tokens" in asked.body else None

    complete(model)
    complete(model)

    assert ["max_tokens" in asked.body for asked in server.asked] == [True, False, False]


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: ChatServer, model: ChatEndpoint, status: int) -> None:
    server.behaviour = answers(error(status, "busy"), None)

    assert complete(model).text
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Answer(status=None), "the connection to the endpoint broke"),
        (Answer(body=b"no JSON"), "not a chat completion"),
        (Answer(body=b"[" * 100_000), "not a chat completion"),
        (Answer(body=b"{}"), "not a chat completion"),
        (Answer(body=b'{"choices": []}'), "not a chat completion"),
        (Answer(body=b'{"choices": [{"message": {}}]}'), "not a chat completion"),
        (completion(None), "no text"),
        (completion(" \n"), "no text"),
        (completion(["a"]), "no text"),
        (completion("<think>They met", "length"), "reasoning and no answer"),
        (completion("<think>They met</think>"), "reasoning and no answer"),
        (completion("x" * (2 << 20)), "longer than"),
        (error(500, "boom"), r"answered 500 \(boom\)"),
        (error(429), r"answered 429 \(some_error\)"),
    ],
)
def test_nonsense_is_a_failure_after_some_attempts(
    server: ChatServer, model: ChatEndpoint, answer: Answer, complaint: str
) -> None:
    server.behaviour = answers(answer)

    with pytest.raises(ChatModelFailed, match=complaint) as raised:
        complete(model)

    assert len(server.asked) == ATTEMPTS
    assert "secret" not in str(raised.value), "what was sent is not quoted"
    assert model.failure == str(raised.value)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_cannot_pass_is_not_tried_again(server: ChatServer, model: ChatEndpoint, status: int) -> None:
    complete(model)
    server.behaviour = answers(error(status, "no"))

    with pytest.raises(ChatModelFailed, match=f"answered {status}"):
        complete(model)

    assert len(server.asked) == 2


def test_a_redirection_is_not_followed(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(Answer(302, b"", {"location": f"{server.url}/elsewhere"}))

    with pytest.raises(ChatModelFailed, match="answered 302"):
        complete(model)
    assert len(server.asked) == 1


@pytest.mark.slow
def test_a_pause_that_the_endpoint_asks_for_is_kept(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(error(429, "slow_down", retry_after="1"), None)

    complete(model)

    first, second = server.asked
    assert second.time - first.time >= 1


def test_an_endpoint_that_asks_for_a_long_pause_is_left_alone(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(error(429, "slow_down", retry_after="5000"))

    for _ in range(2):
        with pytest.raises(ChatModelFailed, match="slow_down") as raised:
            complete(model)
        assert raised.value.wait > 100
    assert len(server.asked) == 1


def test_an_endpoint_that_fails_all_the_time_is_left_alone(
    server: ChatServer, model: ChatEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remora_server.engine.breaker.REST_SECONDS", (3600.0, 3600.0))
    model._breaker = type(model._breaker)()
    server.behaviour = answers(error(500))

    for _ in range(FAILURES + 3):
        with pytest.raises(ChatModelFailed, match="answered 500"):
            complete(model)
    assert len(server.asked) == FAILURES * ATTEMPTS


def test_callers_without_patience_take_the_endpoint_from_nobody(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = lambda _asked: server.hang()
    for timeout in (0.05, 0.05, 0.05, 0.05, 0.0):
        with pytest.raises(ChatModelFailed, match=r"in time|no time left"):
            complete(model, timeout=timeout)
    assert model.failure == ""

    server.behaviour = lambda _asked: None
    assert complete(model).text


def test_callers_with_the_time_of_a_request_find_that_the_endpoint_hangs(
    server: ChatServer, models: Callable[..., ChatEndpoint]
) -> None:
    model = models(server, timeout=0.2)
    server.behaviour = lambda _asked: server.hang()

    for _ in range(FAILURES):
        with pytest.raises(ChatModelFailed, match="in time"):
            complete(model, timeout=0.2)
    asked = len(server.asked)

    assert "in time" in model.failure
    with pytest.raises(ChatModelFailed):
        complete(model, timeout=0.2)
    assert len(server.asked) == asked


def test_an_endpoint_that_refuses_all_requests_is_left_alone(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(error(400, "no_such_model"))
    for _ in range(FAILURES + 2):
        with pytest.raises(ChatModelFailed, match="no_such_model"):
            complete(model)

    assert len(server.asked) == 2 * FAILURES, "each is asked with both names of the bound"


def test_a_request_that_is_refused_for_what_it_says_takes_the_endpoint_from_nobody(
    server: ChatServer, model: ChatEndpoint
) -> None:
    complete(model)
    server.behaviour = answers(error(400, "content_filter"))
    for _ in range(FAILURES + 1):
        with pytest.raises(ChatModelFailed, match="content_filter"):
            complete(model)
    assert "content_filter" in model.failure

    server.behaviour = lambda _asked: None
    assert complete(model).text
    assert model.failure == ""


def test_a_pause_that_the_endpoint_asks_for_outlasts_other_failures(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = answers(error(429, "slow_down", retry_after="5000"), error(500))
    with ThreadPoolExecutor(2) as pool:
        failures = [pool.submit(complete, model) for _ in range(2)]
        for failure in failures:
            with pytest.raises(ChatModelFailed):
                failure.result(PATIENCE)

    asked = len(server.asked)
    with pytest.raises(ChatModelFailed) as raised:
        complete(model)
    assert raised.value.wait > 100
    assert len(server.asked) == asked


def test_a_hanging_endpoint_holds_nobody_beyond_the_time_limit(
    server: ChatServer, models: Callable[..., ChatEndpoint]
) -> None:
    server.behaviour = lambda _asked: server.hang()

    with pytest.raises(ChatModelFailed, match="in time"):
        complete(models(server, timeout=0.1))
    with pytest.raises(ChatModelFailed, match="in time"):
        complete(models(server), timeout=0.1)


def test_a_slow_reply_holds_nobody_beyond_the_time_limit(
    server: ChatServer, models: Callable[..., ChatEndpoint]
) -> None:
    slow = completion("x" * 10_000)
    slow.slowly = True
    server.behaviour = answers(slow)

    with pytest.raises(ChatModelFailed, match="in time"):
        complete(models(server, timeout=0.2))


def test_an_endpoint_that_is_down_is_a_failure_and_works_when_it_is_up(server: ChatServer, model: ChatEndpoint) -> None:
    server.down()
    with pytest.raises(ChatModelFailed, match="there is no connection"):
        complete(model)
    assert model.failure

    server.up()
    assert complete(model).text
    assert model.failure == ""


def test_closing_ends_every_wait(server: ChatServer, model: ChatEndpoint) -> None:
    server.behaviour = lambda _asked: server.hang()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(complete, model)
        assert server.has_been_asked(1)
        closing = threading.Thread(target=model.close)
        closing.start()
        with pytest.raises(ChatModelFailed, match="the server stops"):
            waiting.result(PATIENCE)
        closing.join(PATIENCE)
    with pytest.raises(ChatModelFailed, match="the server stops"):
        complete(model)
