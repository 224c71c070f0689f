"""A served store whose messages are embedded by endpoints, which fail: what is found meanwhile, and in the end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import grpc
import pytest
from tests.engine.embedding_server import EmbeddingServer, listing, texts_of
from tests.engine.endpoint_server import Answer, Asked, error
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.embeddings import Embedding
from remora.errors import ModelUnavailableError, ModelUnreachableError, RemoraError
from remora.messages import Message
from remora.search import SearchResult
from remora.v1 import store_service_pb2 as store
from remora.v1.admin_service_pb2 import ModelStatus
from remora.v1.store_item_pb2 import ItemVector, StoreItem
from remora.v1.store_service_pb2_grpc import StoreServiceStub
from remora_server.engine.breaker import FAILURES
from remora_server.storage.database.database import FILE_NAME

pytestmark = pytest.mark.slow

LONG = 3600.0
"""The deadline of a call that ends by itself: who used it up would find no end."""
TEXTS = ("tea with milk", "a red boat", "the old piano", "green lanterns", "no more words")


def endpoint(server: EmbeddingServer, model: str = "letters", **options: object) -> dict[str, object]:
    """The settings of a model behind an endpoint."""
    return {"provider": "openai", "base_url": server.url, "model": model, "query_timeout": PATIENCE, **options}


@contextmanager
def serving(
    directory: Path,
    models: Mapping[str, object],
    tenants: Mapping[str, str] | None = None,
    *changes: str,
    threads: int = 16,
) -> Iterator[Sidecar]:
    """A server whose default model is the first of `models`; `tenants` have others. It is killed in the end."""
    settings = {
        "model": next(iter(models), "none"),
        "threads": threads,
        "embedding_models": models,
        "tenant_models": {tenant: {"messages": model} for tenant, model in (tenants or {}).items()},
    }
    config = directory / "remora.yaml"
    config.write_text(json.dumps(settings), "utf-8")
    sidecar = Sidecar(directory, "--config", str(config))
    sidecar.changes = changes
    sidecar.start()
    try:
        yield sidecar
    finally:
        sidecar.kill()


@contextmanager
def client(sidecar: Sidecar, tenant: str | None = None) -> Iterator[Remora]:
    with Remora(sidecar.endpoint, tenant=tenant, timeout=PATIENCE) as memory:
        yield memory


def say(memory: Remora, *texts: str) -> None:
    memory.conversation("talk", user_id="sarah").append([{"role": "user", "content": text} for text in texts])


def search(memory: Remora, text: str, **options: object) -> SearchResult:
    return memory.user("sarah").search(text, index_wait=0.0, **options)  # type: ignore[arg-type]


def by_vector(memory: Remora, text: str) -> list[str]:
    """The texts of all messages that have a vector of the model, best first."""
    return [hit.message.text for hit in search(memory, text, profile="vector", k=100)]


def all_is_embedded(memory: Remora) -> bool:
    return memory.status().model.pending == 0 and search(memory, "anything").index.pending == 0


def model_of(memory: Remora) -> ModelStatus:
    return memory.status().model


def rows(sidecar: Sidecar, query: str) -> list[tuple[object, ...]]:
    """What the database of a stopped server holds."""
    with duckdb.connect(str(sidecar.directory / "data" / FILE_NAME), read_only=True) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as running:
        yield running


def test_while_the_endpoint_is_down_words_find_and_later_vectors(directory: Path, server: EmbeddingServer) -> None:
    server.down()
    with serving(directory, {"letters": endpoint(server)}) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)

        found = search(memory, "piano", profile="hybrid_late")
        assert found[0].message.text == "the old piano"
        assert (found.profile, found.index.words_only, found.index.words_only_reason) == (
            "hybrid",
            True,
            "model_unreachable",
        )
        assert (found.index.model, found.index.pending) == ("letters", len(TEXTS))
        context = memory.conversation("talk").context(max_tokens=1000, query="piano", recall=True)
        assert context.index is not None
        assert context.index.words_only_reason == "model_unreachable"
        with pytest.raises(ModelUnreachableError, match="there is no connection to the endpoint"):
            search(memory, "piano", profile="vector", timeout=LONG)
        eventually(lambda: model_of(memory).failure == "there is no connection to the endpoint")
        assert model_of(memory).pending == len(TEXTS)

        server.up()
        eventually(lambda: all_is_embedded(memory))
        assert by_vector(memory, "the old piano")[0] == "the old piano"
        assert set(by_vector(memory, "the old piano")) == set(TEXTS)
        found = search(memory, "piano", profile="hybrid_late")
        assert (found.profile, found.index.words_only, found.index.words_only_reason) == ("hybrid", False, None)
        assert (model_of(memory).failure, model_of(memory).dimension) == ("", server.dimension)


def test_a_repeat_of_a_write_needs_no_model(directory: Path, server: EmbeddingServer) -> None:
    item = StoreItem(namespace=["users"], key="sarah", value=b"{}", vectors=[ItemVector(path="text", text="tea")])
    put = store.PutItemsRequest(items=[item], request_id="put")
    execute = store.ExecuteOperationsRequest(operations=[store.Operation(put=item)], request_id="execute")
    with (
        serving(directory, {"letters": endpoint(server)}) as sidecar,
        grpc.insecure_channel(sidecar.endpoint) as channel,
    ):
        service = StoreServiceStub(channel)
        first = service.PutItems(put, timeout=PATIENCE), service.ExecuteOperations(execute, timeout=PATIENCE)
        server.down()

        assert service.PutItems(put, timeout=PATIENCE) == first[0]
        assert service.ExecuteOperations(execute, timeout=PATIENCE) == first[1]
        with pytest.raises(grpc.RpcError, match="there is no connection to the endpoint"):
            service.PutItems(store.PutItemsRequest(items=[item], request_id="other"), timeout=PATIENCE)


def test_whatever_passes_is_tried_again_until_all_is_embedded(directory: Path, server: EmbeddingServer) -> None:
    failures = [
        error(500),
        error(429, retry_after="2"),
        Answer(status=None),
        listing([[1.0] * 3], as_base64=True),
    ]
    server.behaviour = lambda _asked: failures.pop(0) if failures else None
    with serving(directory, {"letters": endpoint(server)}) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        eventually(lambda: all_is_embedded(memory))
        assert set(by_vector(memory, "tea")) == set(TEXTS)
    assert failures == []
    refused, again = [asked.time for asked in server.asked][1:3]
    assert again - refused >= 2, "what it asks for is kept to"


def test_no_search_waits_for_an_endpoint_that_says_nothing(directory: Path, server: EmbeddingServer) -> None:
    server.behaviour = lambda _asked: server.hang()
    settings = endpoint(server, query_timeout=0.2, timeout=0.5)
    with serving(directory, {"letters": settings}, None, "rest_without_end") as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        for _ in range(20):
            assert search(memory, "piano").index.words_only_reason == "model_unreachable"
        queries = [asked for asked in list(server.asked) if texts_of(asked) == ["piano"]]
        assert len(queries) <= FAILURES, "a breaker keeps them from asking"
        memory.conversation("talk").messages()


def test_calls_that_need_no_vectors_go_on_while_searches_wait(directory: Path, server: EmbeddingServer) -> None:
    server.behaviour = lambda asked: server.hang() if texts_of(asked)[0].startswith("question") else None
    settings = endpoint(server, query_timeout=PATIENCE)
    with serving(directory, {"letters": settings}, threads=4) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        with ThreadPoolExecutor(8) as callers:
            asked = [callers.submit(search, memory, f"question {number}") for number in range(8)]
            eventually(lambda: sum(each.done() for each in asked) == 6)
            assert {each.result().index.words_only_reason for each in asked if each.done()} == {"model_unreachable"}
            for number in range(20):
                say(memory, f"more {number}")
                assert memory.conversation("talk").messages(limit=1)[-1].text == f"more {number}"
            assert [each.done() for each in asked].count(False) == 2, "these still wait for the endpoint"
            server.down()
            assert all(each.result().index.words_only_reason == "model_unreachable" for each in asked)


def test_a_server_ends_while_the_endpoint_says_nothing(directory: Path, server: EmbeddingServer) -> None:
    server.behaviour = lambda _asked: server.hang()
    with serving(directory, {"letters": endpoint(server, timeout=600)}) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        assert server.has_been_asked(1)
        assert sidecar.stop() == 0


def refuse(*bad: str) -> Callable[[Asked], Answer | None]:
    return lambda asked: error(400, "too_long") if set(bad) & set(texts_of(asked)) else None


def check_a_refused_message_is_left_to_words(directory: Path, server: EmbeddingServer, *changes: str) -> None:
    server.behaviour = refuse("the old piano")
    with serving(directory, {"letters": endpoint(server)}, None, *changes) as sidecar:
        with client(sidecar) as memory:
            say(memory, *TEXTS)
            eventually(lambda: len(by_vector(memory, "tea")) == len(TEXTS) - 1)
            eventually(lambda: model_of(memory).refused == 1 and all_is_embedded(memory))
            assert "the old piano" in [hit.message.text for hit in search(memory, "piano")]
        sidecar.kill()
        before = server.texts.count("the old piano")
        sidecar.start()
        with client(sidecar) as memory:
            say(memory, "one more")
            eventually(lambda: "one more" in by_vector(memory, "one more") and all_is_embedded(memory))
            assert server.texts.count("the old piano") == before, "it is not asked for again"
            memory.conversation("talk").append([{"role": "user", "content": "the new piano"}])
            eventually(lambda: "the new piano" in by_vector(memory, "the new piano"))


def test_a_refused_message_is_left_to_words(directory: Path, server: EmbeddingServer) -> None:
    check_a_refused_message_is_left_to_words(directory, server)


def check_each_tenant_has_its_model(directory: Path, server: EmbeddingServer, *changes: str) -> None:
    tenants = {"big": "large", "quiet": "silent"}
    with EmbeddingServer(dimension=20) as other:
        models = {"small": endpoint(server), "large": endpoint(other, "ada"), "silent": {"provider": "none"}}
        with serving(directory, models, tenants, *changes) as sidecar:
            for tenant in ("some", "big", "quiet"):
                with client(sidecar, tenant) as memory:
                    say(memory, *(f"{tenant}: {text}" for text in TEXTS))
            for tenant, model, dimension in (("some", "letters", server.dimension), ("big", "ada", other.dimension)):
                with client(sidecar, tenant) as memory:
                    eventually(lambda memory=memory: all_is_embedded(memory))  # type: ignore[misc]
                    found = search(memory, "the old piano")
                    assert found.index.model == model
                    assert by_vector(memory, f"{tenant}: the old piano")[0] == f"{tenant}: the old piano"
                    [made] = memory.embed("tea")
                    assert (made.model, len(made.values)) == (model, dimension)
                    assert (model_of(memory).name, model_of(memory).dimension) == (model, dimension)
                    assert (model_of(memory).provider, model_of(memory).pending) == ("openai", 0)
                    assert list(memory.status().models) == [], "other tenants' models are not shown"
            with client(sidecar, "quiet") as memory:
                found = search(memory, "the old piano")
                assert (found.index.words_only_reason, found.index.pending) == ("no_model", 0)
                assert model_of(memory).name == ""
            with client(sidecar, "quiet") as memory, pytest.raises(ModelUnavailableError):
                memory.embed("tea")
            with_token = (sidecar.directory / "data" / "operator.token").read_text().strip()
            with Remora(sidecar.endpoint, token=with_token, timeout=PATIENCE) as operator:
                assert [model.name for model in operator.status().models] == ["ada", "letters"]
        spoken = {text.split(":")[0] for text in other.texts if ":" in text}
        assert spoken == {"big"}, "no tenant's texts go to another's model"
        assert {text.split(":")[0] for text in server.texts if ":" in text} == {"some"}


def test_each_tenant_has_its_model(directory: Path, server: EmbeddingServer) -> None:
    check_each_tenant_has_its_model(directory, server)


def test_vectors_of_callers_are_found_whatever_the_model(directory: Path, server: EmbeddingServer) -> None:
    models = {"letters": endpoint(server), "silent": {"provider": "none"}}
    with serving(directory, models, {"quiet": "silent"}) as sidecar:
        for tenant in ("some", "quiet"):
            with client(sidecar, tenant) as memory:
                own = Message("user", "theirs", embedding=Embedding.of("mine", [0.0, 1.0]))
                memory.conversation("talk", user_id="sarah").append([own, {"role": "user", "content": "ours"}])
                found = memory.user("sarah").search(Embedding.of("mine", [0.0, 2.0]))
                assert [(hit.message.text, hit.score) for hit in found] == [("theirs", 1.0)]
                assert (found.index.model, found.index.pending) == ("mine", 0)
        with client(sidecar, "some") as memory:
            eventually(lambda: all_is_embedded(memory))
            assert by_vector(memory, "ours") == ["ours"]
        assert "theirs" not in server.texts


def check_a_changed_model_embeds_again(directory: Path, server: EmbeddingServer, *changes: str) -> None:
    with serving(directory, {"letters": endpoint(server)}, None, *changes) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        eventually(lambda: all_is_embedded(memory))
        assert set(by_vector(memory, "tea")) == set(TEXTS)
    with EmbeddingServer(dimension=server.dimension) as other:
        gate = threading.Semaphore(2)

        def two_messages_at_first(asked: Asked) -> Answer | None:
            if set(texts_of(asked)) & set(TEXTS):
                gate.acquire()
            return None

        other.behaviour = two_messages_at_first
        new = {"newer": endpoint(other, "newer", batch_texts=1)}
        with serving(directory, new, None, *changes) as sidecar:
            with client(sidecar) as memory:
                eventually(lambda: model_of(memory).pending == len(TEXTS) - 2)
                eventually(lambda: search(memory, "tea").index.pending == len(TEXTS) - 2)
                half = by_vector(memory, "tea")
                assert len(half) == 2, "vectors of the model before are not compared"
                found = search(memory, "piano")
                assert "the old piano" in [hit.message.text for hit in found]
                assert (found.index.model, found.index.words_only) == ("newer", False)
            sidecar.kill()
            for _ in TEXTS * 2:
                gate.release()
            sidecar.start()
            with client(sidecar) as memory:
                eventually(lambda: all_is_embedded(memory))
                assert set(by_vector(memory, "tea")) == set(TEXTS)
            assert sidecar.stop() == 0
        assert rows(sidecar, "SELECT count(*) FROM embeddings WHERE model = 'newer'") == [(len(TEXTS),)]


def test_a_changed_model_embeds_again_through_a_kill(directory: Path, server: EmbeddingServer) -> None:
    check_a_changed_model_embeds_again(directory, server)


def test_an_endpoint_whose_model_was_replaced_is_told_apart(directory: Path, server: EmbeddingServer) -> None:
    with serving(directory, {"letters": endpoint(server)}) as sidecar, client(sidecar) as memory:
        say(memory, *TEXTS)
        eventually(lambda: all_is_embedded(memory))
        assert sidecar.stop() == 0
    server.dimension += 1
    with serving(directory, {"letters": endpoint(server)}) as sidecar, client(sidecar) as memory:
        say(memory, "one more")
        assert search(memory, "tea").index.words_only_reason == "model_unreachable"
        assert "of 9 values" in model_of(memory).failure
    named = {"letters": endpoint(server, vectors="other letters")}
    with serving(directory, named) as sidecar, client(sidecar) as memory:
        eventually(lambda: all_is_embedded(memory))
        assert set(by_vector(memory, "tea")) == {*TEXTS, "one more"}


PLANTED = {
    "forget_refusals": check_a_refused_message_is_left_to_words,
    "one_model_for_all": check_each_tenant_has_its_model,
    "one_name_for_all_vectors": check_a_changed_model_embeds_again,
}


@pytest.mark.faults
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(
    directory: Path, server: EmbeddingServer, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.patience.PATIENCE", 5.0)

    with pytest.raises((AssertionError, RemoraError)):
        PLANTED[fault](directory, server, fault)
