"""The README's table of benchmarks, from the files of `make bench W=... OUT=benchmarks/published/....json`.

`python -m benchmarks.table` writes it between the marks; `--check` fails if it is not what the files say. A figure that
is in no file has no row.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PUBLISHED = ROOT / "benchmarks" / "published"
BEGIN, END = "<!-- benchmarks: begin (make bench-table) -->", "<!-- benchmarks: end -->"


@dataclass(frozen=True)
class Shown:
    """How a figure is shown: what it is, and its value as text."""

    what: str
    value: str


FIGURES: dict[str, Shown] = {
    "locomo_dev_hybrid_r10": Shown("evidence among the first 10 hits: LoCoMo's development half", "{:.1f} %"),
    "locomo_dev_hybrid_late_r10": Shown("the same, profile `hybrid_late`", "{:.1f} %"),
    "locomo_dev_hybrid_evidence_1024": Shown("evidence within contexts of 1,024 tokens, the same half", "{:.1f} %"),
    "recall_p95_ms_1k": Shown("search among 1,000 messages, p95, without encoding the query", "{:.1f} ms"),
    "recall_p95_ms_50k": Shown("the same among 50,000", "{:.1f} ms"),
    "encode_query_fp32_over_onnxruntime": Shown("encoding of a query by the built-in model", "{:.2f} × onnxruntime"),
    "context_p50_over_list50_p50": Shown(
        "context of 4,000 tokens from 1,000 messages, p50", "{:.1f} × a read of 50 messages"
    ),
    "context_slope": Shown("the same from 10,000 messages", "{:.2f} × from 100"),
    "receipt_overhead": Shown("server CPU time of a context with its receipt", "{:.2f} × without"),
    "append_c1_p50_over_fdatasync": Shown("append of a message, 1 client, p50", "{:.1f} × a bare `fdatasync`"),
    "append_c1_p50_over_fdatasync_in_place": Shown(
        "the same, against an `fdatasync` of a file that does not grow", "{:.1f} ×"
    ),
    "append_go_c1_p50_over_fdatasync": Shown(
        "append of a message by a client in Go (grpc-go), p50", "{:.1f} × a bare `fdatasync`"
    ),
    "append_go_c1_p50_over_fdatasync_in_place": Shown(
        "the same, against an `fdatasync` of a file that does not grow", "{:.1f} ×"
    ),
    "append_c32_rate_over_fastapi_sqlite": Shown("appends per second, 32 clients", "{:.1f} × FastAPI with SQLite"),
    "append_c32_rate_over_tuned": Shown(
        "appends per second, 32 clients", "{:.1f} × FastAPI with SQLite, tuned: uvloop, group commits"
    ),
    "append_c1_cpu_over_fastapi_sqlite": Shown("server CPU time of an append", "{:.2f} × FastAPI with SQLite"),
    "append_p99_in_checkpoint_over_without": Shown("p99 of appends while a checkpoint runs", "{:.1f} × without one"),
    "bytes_written_per_message": Shown("bytes written to disk for a message of 500 bytes", "{:,.0f}"),
    "list50_c32_rate_over_fastapi_sqlite": Shown(
        "reads of the newest 50 messages per second, 32 clients", "{:.1f} × FastAPI with SQLite"
    ),
    "list50_c32_rate_over_tuned": Shown(
        "reads of the newest 50 messages per second, 32 clients", "{:.1f} × FastAPI with SQLite, tuned"
    ),
    "list50_c1_cpu_over_fastapi_sqlite": Shown(
        "server CPU time of a read of 50 messages", "{:.2f} × FastAPI with SQLite"
    ),
    "client_append_cpu_over_stub": Shown("CPU time of the Python client for an append", "{:.2f} × the generated stub"),
    "client_list50_cpu_over_stub": Shown(
        "CPU time of the Python client for a read of 50 messages", "{:.2f} × the generated stub"
    ),
    "ready_seconds_empty": Shown("start of an empty store, until the first answer", "{:.2f} s"),
    "ready_seconds_after_kill": Shown("start after a SIGKILL with 16 MiB of journal to replay", "{:.2f} s"),
    "rss_idle_mb_no_model": Shown("memory at rest, without an embedding model", "{:.0f} MiB"),
    "rss_mb_100k_messages": Shown("memory with 100,000 messages stored", "{:.0f} MiB"),
    "record_put_c1_p50_over_fdatasync": Shown(
        "put of a record of 600 bytes, 1 client, p50", "{:.1f} × a bare `fdatasync`"
    ),
    "record_put_get_cpu_over_sqlite": Shown("server CPU time of a put and a get", "{:.2f} × FastAPI with SQLite"),
    "record_get_hot_p50_over_get_conversation": Shown("get of a record in memory, p50", "{:.2f} × a `GetConversation`"),
    "record_get_p99_over_get_conversation_p99_while_writing": Shown(
        "the same beside writers, p99", "{:.2f} × a `GetConversation`"
    ),
    "record_cold_get_p50_1m_over_1k": Shown(
        "get of a record on disk among 1,000,000, p50", "{:.1f} × the same among 1,000"
    ),
    "record_put_rate_1m_over_1k": Shown("puts per second with 1,000,000 records stored", "{:.2f} × with 1,000"),
    "record_filtered_list_cold_ms_at_100k": Shown("filtered list over 100,000 records, first time", "{:.0f} ms"),
    "record_filtered_list_hot_p50_ms_at_100k": Shown("filtered list over 100,000 records, again", "{:.0f} ms"),
    "record_prefix_scan_hot_p50_ms_at_100k": Shown("prefix scan over 100,000 records, again", "{:.1f} ms"),
}
"""What is shown of which figure, in this order."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the table, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the table is out of date")
    given = parser.parse_args(arguments)
    text = README.read_text("utf-8")
    fresh = with_table(text, table(_reports()))
    if given.check and text != fresh:
        print("README.md: the table of benchmarks is out of date; run `make bench-table`", file=sys.stderr)
        return 1
    README.write_text(fresh, "utf-8")
    return 0


def with_table(text: str, lines: str) -> str:
    """The text with other lines between the marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"README.md lacks the marks {BEGIN} and {END}")
    return f"{before}{begin}\n{lines}{end}{after}"


def table(reports: Sequence[dict[str, Any]]) -> str:
    """The table of the figures in these reports, and the machines that they were measured on."""
    return "\n".join(_lines(reports)) + "\n"


def _lines(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| what | result | quartiles | `make bench` |"
    yield "|---|---|---|---|"
    found = {name: report for report in reports for name in report["figures"]}
    for name, shown in FIGURES.items():
        if name in found:
            yield _row(shown, found[name], name)
    machines = sorted({_machine(report["machine"]) for report in reports})
    yield ""
    yield f"Measured on {'; '.join(machines)}."


def _row(shown: Shown, report: dict[str, Any], name: str) -> str:
    low, high = (_bare(shown.value, value) for value in report["spread"][name])
    value = shown.value.format(report["figures"][name])
    quartiles = "" if report["spread"][name] == [report["figures"][name]] * 2 else f"{low} to {high}"
    return f"| {shown.what} | {value} | {quartiles} | `W={report['workload']}` |"


def _bare(form: str, value: float) -> str:
    """A value in the digits of a form, without its words."""
    return (form.partition("}")[0] + "}").format(value)


def _machine(machine: dict[str, Any]) -> str:
    gibibytes = int(machine["memory"].split()[0]) / (1 << 20)
    return f"{machine['cores']} cores of {machine['cpu']}, {gibibytes:.0f} GiB, Linux {machine['kernel'].split('-')[0]}"


def _reports() -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted(PUBLISHED.glob("*.json"))]


if __name__ == "__main__":
    sys.exit(main())
