"""Embedding through an endpoint: a real server on a real port, which does everything that endpoints do wrong."""

from __future__ import annotations

import logging
import math
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.engine.embedding_server import EmbeddingServer, listing, texts_of, vector
from tests.engine.endpoint_server import Answer, Asked, error
from tests.patience import PATIENCE

from remora_server import _native
from remora_server.domain.search import EmbeddingFailed
from remora_server.embedding_models import open_endpoint
from remora_server.engine import endpoint_requests
from remora_server.engine.breaker import FAILURES
from remora_server.engine.endpoint_embedder import UNANSWERED, EndpointEmbedder
from remora_server.engine.endpoint_requests import PROBE
from remora_server.settings.embedding import EndpointSettings

SECRET = "a secret text"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


@pytest.fixture
def embedders() -> Iterator[Callable[..., EndpointEmbedder]]:
    """Opens embedders, which are closed in the end."""
    opened: list[EndpointEmbedder] = []

    def make(server: EmbeddingServer, *, dimension: int = 0, waiters: int = 4, **options: object) -> EndpointEmbedder:
        given = EndpointSettings(base_url=server.url, model="letters", vectors="letters", query_timeout=PATIENCE)
        opened.append(open_endpoint(replace(given, **options), dimension, waiters))
        return opened[-1]

    yield make
    for embedder in opened:
        embedder.close()


@pytest.fixture
def embedder(server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]) -> EndpointEmbedder:
    return embedders(server)


def unit(text: str, dimension: int = 8) -> list[float]:
    values = vector(text, dimension)
    norm = math.hypot(*values)
    return [value / norm for value in values]


def floats(encoded: bytes) -> list[float]:
    return list(struct.unpack(f"<{len(encoded) // 4}f", encoded))


def embedded(embedder: EndpointEmbedder, *texts: str) -> list[list[float]]:
    return [floats(made.values) for made in embedder.embed(texts)]


def are(found: Sequence[Sequence[float]], *texts: str) -> bool:
    """Whether these are the vectors of the texts; an empty text stands for none."""
    expected = [unit(text) if text else [] for text in texts]
    return all(one == pytest.approx(other, abs=1e-6) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("knows_base64", [True, False])
def test_each_text_gets_its_own_vector_of_unit_length(
    server: EmbeddingServer, embedder: EndpointEmbedder, knows_base64: bool
) -> None:
    server.knows_base64 = knows_base64

    assert are(embedded(embedder, "tea", "coffee"), "tea", "coffee")
    assert are(embedded(embedder, "more tea"), "more tea")

    formats = [asked.body.get("encoding_format") for asked in server.asked]
    assert formats == (["base64", "base64"] if knows_base64 else ["base64", None, None])
    assert server.asked[0].path == "/v1/embeddings"
    assert {asked.body["model"] for asked in server.asked} == {"letters"}
    assert len({asked.peer for asked in server.asked}) == 1, "a connection is used again"


def test_an_endpoint_that_ignores_base64_is_understood(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    server.behaviour = lambda asked: listing([vector(text, 8) for text in texts_of(asked)], as_base64=False)

    assert are(embedded(embedder, "tea", "coffee"), "tea", "coffee")
    assert len(server.asked) == 1


def test_the_indexes_of_a_reply_count_not_its_order(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    server.behaviour = lambda asked: listing(
        [vector(text, 8) for text in texts_of(asked)], as_base64=True, order=[2, 0, 1]
    )

    assert are(embedded(embedder, "a", "bb", "ccc"), "a", "bb", "ccc")


def test_requests_have_no_more_texts_and_tokens_than_they_may(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]
) -> None:
    embedder = embedders(server, batch_texts=3, batch_tokens=40)
    texts = ["one two three " * 6] * 4 + ["tea"] * 8 + ["many words " * 60]

    assert are(embedded(embedder, *texts), *texts)

    assert server.texts == texts
    counts = [sum(_native.count_tokens("cl100k_base", texts_of(asked))) for asked in server.asked]
    assert all(len(texts_of(asked)) == 1 or count <= 40 for asked, count in zip(server.asked, counts, strict=True))
    assert max(len(texts_of(asked)) for asked in server.asked) == 3
    assert len(server.asked) < len(texts)


def test_a_text_is_cut_to_what_the_model_reads(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]
) -> None:
    embedder = embedders(server, max_tokens=10)
    text = "many different words stand in this long sentence " * 20

    embedder.embed([text, "short"])

    cut, short = server.texts
    assert _native.count_tokens("cl100k_base", [cut]) == [10]
    assert text.startswith(cut)
    assert short == "short"


def test_a_text_of_nothing_is_not_asked_for(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    assert are(embedded(embedder, "", "tea", " \n"), "", "tea", "")
    assert server.texts == ["tea"]
    assert embedder.embed([]) == []


def test_dimensions_and_headers_are_sent(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder], tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("first\n")
    embedder = embedders(server, dimensions=8, headers={"x-team": "memory"}, api_key_file=key)

    embedder.embed(["tea"])
    key.write_text("second")
    embedder.embed(["tea"])

    assert [asked.headers["authorization"] for asked in server.asked] == ["Bearer first", "Bearer second"]
    assert {asked.headers["x-team"] for asked in server.asked} == {"memory"}
    assert {asked.body["dimensions"] for asked in server.asked} == {8}


def test_a_key_may_have_a_header_of_its_own(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]
) -> None:
    embedders(server, api_key="k", api_key_variable="K", api_key_header="api-key").embed(["tea"])

    assert server.asked[0].headers["api-key"] == "k"
    assert "authorization" not in server.asked[0].headers


def test_a_key_that_cannot_be_read_is_told(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder], tmp_path: Path
) -> None:
    embedder = embedders(server, api_key_file=tmp_path / "none")

    with pytest.raises(EmbeddingFailed, match="key"):
        embedder.embed(["tea"])
    assert server.asked == []


Script = Callable[[EmbeddingServer, Asked], Answer]

FAILURES_OF_ENDPOINTS: Mapping[str, tuple[Script, str]] = {
    "it has failed": (lambda _, __: error(500), "answered 500"),
    "it has too much to do": (lambda _, __: error(503, "overloaded"), r"answered 503 \(overloaded\)"),
    "the key is wrong": (lambda _, __: error(401, "invalid_api_key"), r"answered 401 \(invalid_api_key\)"),
    "nobody is there": (lambda _, __: error(404), r"answered 404 \(some_error\)"),
    "it is elsewhere": (lambda _, __: error(302, location="http://127.0.0.1:1/"), "answered 302"),
    "every text is refused": (lambda _, __: error(400, "bad_model"), r"answered 400 \(bad_model\), to every text"),
    "it ends early": (lambda _, __: Answer(status=None), "connection to the endpoint broke"),
    "no JSON": (lambda _, __: Answer(body=b"<html>"), "not a list of embeddings"),
    "deep JSON": (lambda _, __: Answer(body=b"[" * 100_000), "not a list of embeddings"),
    "another shape": (lambda _, __: Answer(body=b'{"data": {"a": 1}}'), "not a list|embeddings for 1"),
    "items of no kind": (lambda _, __: Answer(body=b'{"data": ["a"]}'), "not a list of embeddings"),
    "a number beyond all": (
        lambda _, __: Answer(body=b'{"data": [{"embedding": [1' + b"0" * 400 + b"]}]}"),
        "not a list of embeddings",
    ),
    "no number": (lambda _, __: Answer(body=b'{"data": [{"embedding": ["x"]}]}'), "not a list of embeddings"),
    "no base64": (lambda _, __: Answer(body=b'{"data": [{"embedding": "?"}]}'), "not a list of embeddings"),
    "too few": (lambda _, __: listing([], as_base64=True), "0 embeddings for 1 texts"),
    "another index": (lambda _, __: Answer(body=b'{"data": [{"index": 5, "embedding": [1]}]}'), "indexes"),
    "too many values": (lambda _, __: listing([[1.0] * 4097], as_base64=True), "4097 values"),
    "a long reply": (lambda _, __: Answer(body=b" " * (8 << 20)), "longer than"),
    "not a number, always": (lambda _, __: listing([[math.nan] * 8], as_base64=True), "not finite, of every text"),
    "another dimension": (lambda here, asked: here.embeddings(asked, dimension=9), "of 9 values.*have 8.*vectors"),
}


@pytest.mark.parametrize("name", FAILURES_OF_ENDPOINTS)
def test_a_failure_of_the_endpoint_is_told_without_contents_and_passes(
    server: EmbeddingServer, embedder: EndpointEmbedder, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    script, cause = FAILURES_OF_ENDPOINTS[name]
    embedder.embed(["tea"])
    server.behaviour = lambda asked: script(server, asked)

    with caplog.at_level(logging.INFO, logger=endpoint_requests.__name__):
        for _ in range(3):
            with pytest.raises(EmbeddingFailed, match=cause) as raised:
                embedder.embed([SECRET])
            assert embedder.status().failure == str(raised.value)
        server.behaviour = lambda _asked: None
        assert are(embedded(embedder, SECRET), SECRET)

    assert embedder.status().failure == ""
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"], "each change is logged once"
    assert SECRET not in caplog.text
    assert all(SECRET not in str(vars(record)) for record in caplog.records)


def test_an_endpoint_that_is_not_there_is_told_and_found_again(
    server: EmbeddingServer, embedder: EndpointEmbedder
) -> None:
    server.down()
    with pytest.raises(EmbeddingFailed, match="no connection"):
        embedder.embed(["tea"])

    server.up()
    assert are(embedded(embedder, "tea"), "tea")

    server.down()
    server.up()
    assert are(embedded(embedder, "coffee"), "coffee"), "a connection that broke is not used again"


@pytest.mark.parametrize("slowly", [False, True])
def test_nobody_waits_longer_than_they_want(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder], slowly: bool
) -> None:
    slow = Answer(body=b" " * 4000, slowly=True)
    server.behaviour = lambda _asked: slow if slowly else server.hang()
    embedder = embedders(server, timeout=0.2, query_timeout=0.2)

    with pytest.raises(EmbeddingFailed, match="in time"):
        embedder.embed(["tea"])
    with pytest.raises(EmbeddingFailed, match="in time"):
        embedder.embed_query("tea", time.monotonic() + PATIENCE)
    with pytest.raises(EmbeddingFailed, match="in time"):
        embedders(server).embed_now(["tea"], time.monotonic() + 0.2)


def test_nobody_waits_for_a_name_server_that_says_nothing(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()

    def silent(*_arguments: object, **_options: object) -> list[object]:
        answered.wait(PATIENCE)
        return []

    monkeypatch.setattr("socket.getaddrinfo", silent)
    embedder = embedders(server, query_timeout=0.2)

    began = time.monotonic()
    with pytest.raises(EmbeddingFailed, match="in time"):
        embedder.embed_query("tea", None)

    assert time.monotonic() - began < PATIENCE / 2
    answered.set()


def test_who_waits_is_let_go_at_the_end(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    server.behaviour = lambda _asked: server.hang()
    with ThreadPoolExecutor(1) as worker:
        waiting = worker.submit(embedder.embed, ["tea"])
        assert server.has_been_asked(1)

        embedder.close()

        with pytest.raises(EmbeddingFailed, match="stops"):
            waiting.result(PATIENCE)
    with pytest.raises(EmbeddingFailed, match="stops"):
        embedder.embed(["tea"])


def test_what_the_endpoint_asks_for_is_kept_to(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    server.behaviour = lambda _asked: error(429, retry_after="7")

    with pytest.raises(EmbeddingFailed) as first:
        embedder.embed(["tea"])
    with pytest.raises(EmbeddingFailed) as second:
        embedder.embed(["tea"])
    with pytest.raises(EmbeddingFailed):
        embedder.embed_query("tea", None)

    assert first.value.wait == 7
    assert 0 < second.value.wait <= 7
    assert len(server.asked) == 1, "nothing is asked before"


@pytest.mark.parametrize("header", ["soon", "-3", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_a_wait_that_is_none_is_passed_over(server: EmbeddingServer, embedder: EndpointEmbedder, header: str) -> None:
    server.behaviour = lambda _asked: error(429, retry_after=header)

    with pytest.raises(EmbeddingFailed) as raised:
        embedder.embed(["tea"])

    assert raised.value.wait == 0


def refusing(server: EmbeddingServer, *bad: str) -> Callable[[Asked], Answer | None]:
    """A request with one of these texts is refused as a whole."""
    return lambda asked: error(400, "too_long") if set(bad) & set(texts_of(asked)) else None


@pytest.mark.parametrize(
    "bad", [{"t0"}, {"t6"}, {"t3", "t4"}, {"t0", "t6", "t2"}, {f"t{number}" for number in range(7)}]
)
@pytest.mark.parametrize("knows_base64", [True, False])
def test_a_text_that_is_refused_holds_up_no_other(
    server: EmbeddingServer, embedder: EndpointEmbedder, bad: set[str], knows_base64: bool
) -> None:
    server.knows_base64 = knows_base64
    server.behaviour = refusing(server, *bad)
    texts = [f"t{number}" for number in range(7)]

    assert are(embedded(embedder, *texts), *("" if text in bad else text for text in texts))
    assert embedder.status().failure == ""


def failing(server: EmbeddingServer, *bad: str) -> Callable[[Asked], Answer | None]:
    """A request with one of these texts breaks the endpoint."""
    return lambda asked: error(500) if set(bad) & set(texts_of(asked)) else None


@pytest.mark.parametrize("bad", [{"t0"}, {"t6", "t2"}])
def test_a_text_that_an_endpoint_fails_with_holds_up_no_other_for_good(
    server: EmbeddingServer, embedder: EndpointEmbedder, bad: set[str]
) -> None:
    server.behaviour = failing(server, *bad)
    texts = [f"t{number}" for number in range(7)]

    for _ in range(UNANSWERED - 1):
        with pytest.raises(EmbeddingFailed, match="answered 500"):
            embedder.embed(texts)
        assert are(embedded(embedder, "another"), "another")

    assert are(embedded(embedder, *texts), *("" if text in bad else text for text in texts))
    assert embedder.status().failure == ""


def test_no_text_is_given_up_while_the_endpoint_fails_with_all(
    server: EmbeddingServer, embedder: EndpointEmbedder
) -> None:
    server.behaviour = lambda _asked: error(500)
    for _ in range(3 * UNANSWERED):
        with pytest.raises(EmbeddingFailed):
            embedder.embed(["tea", "coffee"])

    server.behaviour = lambda _asked: None
    assert are(embedded(embedder, "tea", "coffee"), "tea", "coffee")


@pytest.mark.parametrize("status", [400, 500])
def test_no_text_is_given_up_where_the_endpoint_goes_down_meanwhile(
    server: EmbeddingServer, embedder: EndpointEmbedder, status: int
) -> None:
    def down_after_the_first_probe(asked: Asked) -> Answer | None:
        if texts_of(asked) == [PROBE] and server.texts.count(PROBE) == 1:
            return None
        return error(status)

    server.behaviour = down_after_the_first_probe
    for _ in range(UNANSWERED):
        with pytest.raises(EmbeddingFailed):
            embedder.embed(["tea", "coffee"])
    assert server.texts.count(PROBE) > 1

    server.behaviour = lambda _asked: None
    assert are(embedded(embedder, "tea", "coffee"), "tea", "coffee")


@pytest.mark.parametrize("status", [400, 500])
def test_of_a_text_that_is_too_long_the_beginning_is_embedded(
    server: EmbeddingServer, embedder: EndpointEmbedder, status: int
) -> None:
    long = "one word after another " * 100
    server.behaviour = lambda asked: error(status) if max(map(len, texts_of(asked))) > 600 else None
    for _ in range(UNANSWERED - 1 if status == 500 else 0):
        with pytest.raises(EmbeddingFailed):
            embedder.embed(["tea", long])

    tea, begun = embedded(embedder, "tea", long)

    assert are([tea], "tea")
    [asked] = [text for text in texts_of(server.asked[-1]) if text != "tea"]
    assert long.startswith(asked)
    assert 300 < len(asked) <= 600
    assert are([begun], asked)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.0])
def test_a_vector_without_direction_is_none(server: EmbeddingServer, embedder: EndpointEmbedder, value: float) -> None:
    def broken(asked: Asked) -> Answer:
        vectors = [[value] * 8 if text == "bad" else vector(text, 8) for text in texts_of(asked)]
        return listing(vectors, as_base64=True)

    server.behaviour = broken

    assert are(embedded(embedder, "tea", "bad", "coffee"), "tea", "", "coffee")


def test_the_dimension_is_that_of_what_is_stored(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]
) -> None:
    embedder = embedders(server, dimension=4)

    with pytest.raises(EmbeddingFailed, match=r"of 8 values.*have 4"):
        embedder.embed(["tea"])

    assert embedder.status().dimension == 4
    server.dimension = 4
    assert len(embedded(embedder, "tea")[0]) == 4


def test_a_query_that_comes_again_is_not_asked_again(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    first = embedder.embed_query("tea", None)

    assert embedder.embed_query("tea", None) == first
    assert embedder.embed_query("coffee", None) != first
    assert server.texts == ["tea", "coffee"]


def test_a_query_in_the_cache_needs_no_endpoint(server: EmbeddingServer, embedder: EndpointEmbedder) -> None:
    kept = embedder.embed_query("tea", None)
    server.down()

    assert embedder.embed_query("tea", None) == kept


def test_queries_do_not_wait_for_an_endpoint_that_failed_before(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remora_server.engine.breaker.REST_SECONDS", (3600.0, 3600.0))
    server.behaviour = lambda _asked: server.hang()
    embedder = embedders(server, query_timeout=0.1)

    for number in range(FAILURES + 5):
        with pytest.raises(EmbeddingFailed, match="in time"):
            embedder.embed_query(f"tea {number}", None)
    assert len(server.asked) <= FAILURES
    with pytest.raises(EmbeddingFailed, match="in time") as raised:
        embedder.embed_query("tea", None)
    assert raised.value.wait > 1000, "it says when the endpoint is asked again"

    server.behaviour = lambda _asked: None
    embedder._options = replace(embedder._options, query_timeout=PATIENCE)
    embedder.embed(["a message"])
    assert floats(embedder.embed_query("tea", None).values) == pytest.approx(unit("tea"), abs=1e-6)


def test_a_caller_in_a_hurry_does_not_speak_against_the_endpoint(
    server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]
) -> None:
    embedder = embedders(server, query_timeout=PATIENCE)
    for number in range(2 * FAILURES):
        with pytest.raises(EmbeddingFailed):
            embedder.embed_query(f"tea {number}", time.monotonic() - 1)
    assert embedder.status().failure == ""

    assert floats(embedder.embed_query("tea", None).values) == pytest.approx(unit("tea"), abs=1e-6)


def test_no_more_calls_wait_than_may(server: EmbeddingServer, embedders: Callable[..., EndpointEmbedder]) -> None:
    leave = threading.Event()

    def held(_asked: Asked) -> None:
        leave.wait(PATIENCE)

    server.behaviour = held
    embedder = embedders(server, waiters=2)
    with ThreadPoolExecutor(2) as workers:
        waiting = [workers.submit(embedder.embed_query, text, None) for text in ("tea", "coffee")]
        assert server.has_been_asked(2)

        with pytest.raises(EmbeddingFailed, match="too many calls wait"):
            embedder.embed_query("milk", None)
        with pytest.raises(EmbeddingFailed, match="too many calls wait"):
            embedder.embed_now(["milk"], None)

        leave.set()
        assert all(query.result(PATIENCE).values for query in waiting)
    assert embedder.embed_query("milk", None).values
