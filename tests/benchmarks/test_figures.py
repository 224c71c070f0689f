"""The names under which figures are written: what compares runs goes by them."""

from pathlib import Path

import pytest
from benchmarks.slices import Figure, Measured, Row, Slice
from benchmarks.workloads import (
    append,
    client,
    langgraph_saver,
    record_lists,
    record_scans,
    records,
    records_stored,
    voltagent,
    window,
)

WORKLOADS = Path(append.__file__).parent


def row(engine: str, load: str, seconds: float = 1.0, cpu_seconds: float = 0.5) -> Row:
    return Row(engine, load, [Slice(Measured([(0.0, seconds)], cpu_seconds), 0.0002, 0.0002)])


def rows(*engines: str) -> list[Row]:
    return [row(engine, load) for engine in engines for load in ("c1", "c32")]


def test_appends_are_compared_under_their_names() -> None:
    engines = ("remora", "remora+grpc-go", "fastapi+sqlite", "fastapi-tuned")
    disk = ("write+fdatasync", "write+fdatasync in place")

    assert append.figures(rows(*engines, *disk)).keys() == {
        "append_c1_p50_over_fdatasync",
        "append_c1_p50_over_fdatasync_in_place",
        "append_go_c1_p50_over_fdatasync",
        "append_go_c1_p50_over_fdatasync_in_place",
        "append_c1_cpu_over_fastapi_sqlite",
        "append_c32_rate_over_fastapi_sqlite",
        "append_c32_rate_over_tuned",
    }


def test_reads_are_compared_under_their_names() -> None:
    assert window.figures(rows("remora", "fastapi+sqlite", "fastapi-tuned")).keys() == {
        "list50_c32_rate_over_fastapi_sqlite",
        "list50_c32_rate_over_tuned",
        "list50_c1_cpu_over_fastapi_sqlite",
    }


def test_the_client_is_compared_with_the_stub_under_its_names() -> None:
    measured = [
        row("stub", "append", cpu_seconds=0.25),
        row("stub", "list50", cpu_seconds=0.5),
        row("client", "append", 3.0, cpu_seconds=0.5),
        row("client", "list50", cpu_seconds=0.75),
        row("stub, asyncio", "append", cpu_seconds=0.5),
        row("stub, asyncio", "list50", cpu_seconds=0.5),
        row("client, asyncio", "append", cpu_seconds=0.625),
        row("client, asyncio", "list50", cpu_seconds=0.875),
        row("write+fdatasync", "append", 1.0),
        row("write+fdatasync in place", "append", 0.5),
    ]

    assert medians(client.figures(measured)) == {
        "client_list50_cpu_over_stub": 1.5,
        "client_append_cpu_over_stub": 2.0,
        "client_async_list50_cpu_over_stub": 1.75,
        "client_async_append_cpu_over_stub": 1.25,
        "client_append_p50_over_fdatasync": 3.0,
        "client_append_p50_over_fdatasync_in_place": 6.0,
    }


def test_records_are_compared_under_their_names() -> None:
    remora, fastapi, raw = "remora", "fastapi+sqlite", "write+fdatasync"
    measured = [
        row(raw, "put", 2.0),
        row(remora, "put", 4.0, cpu_seconds=0.25),
        row(remora, "get", 3.0, cpu_seconds=0.25),
        row(remora, "get of a conversation's", 6.0),
        row(remora, "conversation", 2.0),
        row(remora, "newest 10 steps", 5.0),
        row(remora, "newest 50 messages", 4.0),
        row(remora, "get beside writers", 7.0),
        row(remora, "conversation beside writers", 2.0),
        row(fastapi, "put", cpu_seconds=1.5),
        row(fastapi, "get", cpu_seconds=0.5),
    ]

    assert medians(records.figures(measured)) == {
        "record_put_c1_p50_over_fdatasync": 2.0,
        "record_get_hot_p50_over_get_conversation": 1.5,
        "record_get_of_conversation_hot_p50_over_get_conversation": 3.0,
        "record_newest10_hot_p50_over_list50": 1.25,
        "record_get_p99_over_get_conversation_p99_while_writing": 3.5,
        "record_put_get_cpu_over_sqlite": 0.25,
    }


def test_many_records_are_compared_with_few_under_their_names() -> None:
    few, many = "1,000 records", "1,000,000 records"
    measured = [
        row(few, "cold get", 1.0),
        row(many, "cold get", 2.0),
        row(few, "put c32", 3.0),
        row(many, "put c32", 4.0),
    ]

    assert medians(records_stored.figures(measured, few, many)) == {
        "record_cold_get_p50_1m_over_1k": 2.0,
        "record_put_rate_1m_over_1k": 0.75,
    }


def test_filtered_lists_are_reported_in_milliseconds() -> None:
    measured = [row("remora", record_lists.COLD, 0.25), row("remora", record_lists.HOT, 0.125)]

    assert medians(record_lists.figures(measured)) == {
        "record_filtered_list_cold_ms_at_100k": 250.0,
        "record_filtered_list_hot_p50_ms_at_100k": 125.0,
    }


def test_reads_across_partitions_are_reported_in_milliseconds() -> None:
    loads = [(record_scans.COLD, 0.5), (record_scans.HOT, 0.25), (record_scans.STATUS, 0.125)]

    assert medians(record_scans.figures([row("local store", load, seconds) for load, seconds in loads])) == {
        "record_prefix_scan_cold_ms_at_100k": 500.0,
        "record_prefix_scan_hot_p50_ms_at_100k": 250.0,
        "workflow_runs_by_status_p50_ms_at_100k": 125.0,
    }


def test_voltagents_adapters_are_compared_under_their_names() -> None:
    loads = [
        "addMessage", "addMessages(100)", "getMessages(50)", "createConversation", "updateWorkflowState",
        "storeBatch(1000)", "search of 10000", "search of 100000", "semantic read",
    ]  # fmt: skip
    measured = [
        *(row("remora", load, 3.0) for load in loads),
        *(row("inmemory", load, 6.0) for load in loads),
        *(row("libsql", load, 12.0) for load in loads),
        row("remora", "empty call", 1.5),
    ]

    assert medians(voltagent.figures(measured)) == {
        **{f"voltagent_empty_call_over_libsql_{name}": 0.125 for name in voltagent.STORAGE},
        "voltagent_add_message_over_libsql": 0.25,
        "voltagent_add_messages_100_over_libsql": 0.25,
        "voltagent_get_messages_50_over_libsql": 0.25,
        "voltagent_create_conversation_over_libsql": 0.25,
        "voltagent_update_workflow_state_over_libsql": 0.25,
        "voltagent_vector_store_batch_over_libsql": 0.25,
        "voltagent_vector_search_10k_over_inmemory": 0.5,
        "voltagent_vector_search_100k_over_inmemory": 0.5,
        "voltagent_semantic_read_over_libsql": 0.25,
    }


def test_checkpointers_are_compared_under_their_names() -> None:
    loads = {"aput": 3.0, "aget_tuple": 2.0, "20 aput": 0.5, "20 aget_tuple": 0.5, "empty RPC": 0.5}
    measured = [row("remora", load, seconds) for load, seconds in loads.items()]
    measured += [row("async_sqlite", load) for load in ("aput", "aget_tuple", "20 aput", "20 aget_tuple")]

    assert medians(langgraph_saver.figures([*measured, row("write+fdatasync", "500 bytes")])) == {
        "saver_aput_p50_over_async_sqlite": 3.0,
        "saver_aget_tuple_p50_over_async_sqlite": 2.0,
        "saver_aput_p50_over_rpc_and_fdatasync": 2.0,
        "saver_aget_tuple_p50_over_rpc": 4.0,
        "saver_20_concurrent_aput_rate_over_async_sqlite": 2.0,
        "saver_20_concurrent_aget_rate_over_async_sqlite": 2.0,
    }


def medians(figures: dict[str, Figure]) -> dict[str, float]:
    return {name: figure.median for name, figure in figures.items()}


def test_what_was_not_measured_has_no_figure() -> None:
    assert append.figures(rows("remora")) == {}
    assert records.figures(rows("remora")) == {}


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("checkpoints", "append_p50_in_checkpoint_over_without"),
        ("checkpoints", "append_p99_in_checkpoint_over_without"),
        ("growth", "bytes_written_per_message"),
        ("growth", "append_slope"),
        ("footprint", "ready_seconds_empty"),
        ("footprint", "ready_seconds_after_kill"),
        ("footprint", "rss_idle_mb_no_model"),
        ("footprint", "rss_mb_100k_messages"),
        ("scale", "rss_mb_1m_messages"),
        ("scale", "ready_seconds_1m_messages_after_kill"),
        ("voltagent", "voltagent_turn_rpcs"),
        ("langgraph_saver", "saver_growth_bytes_over_sqlite"),
    ],
)
def test_what_takes_a_server_is_written_under_its_name(module: str, name: str) -> None:
    assert f'"{name}":' in (WORKLOADS / f"{module}.py").read_text("utf-8")
