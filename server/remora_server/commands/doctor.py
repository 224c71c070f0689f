"""`remora doctor`: checks everything, and says what to do where something is wrong. Changes nothing."""

from __future__ import annotations

import argparse
import platform
import shlex
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import duckdb
import grpc
from msgspec.structs import asdict
from rich.table import Table

from remora import Remora
from remora._printable import printable
from remora.errors import ConnectionFailedError, RemoraError
from remora.v1.admin_service_pb2 import GetStatusResponse
from remora_server.chat_model import open_chat_model
from remora_server.commands.failures import CommandFailed
from remora_server.commands.machine import disk_of, open_files_limit
from remora_server.commands.operator_token import token_in
from remora_server.commands.output import add_json_flag, output, write_json
from remora_server.commands.setting_flags import add_setting_flags, load_settings
from remora_server.credentials import is_guarded, open_credentials, tls_files
from remora_server.domain.chat_models import ChatModelFailed, Prompt
from remora_server.domain.errors import one_line
from remora_server.domain.search import EmbeddingFailed
from remora_server.domain.sizes import size
from remora_server.embedding_models import ModelsError, open_endpoint
from remora_server.engine.encoder import load_embedder
from remora_server.engine.kernels import available_kernels
from remora_server.engine.model_files import ModelFilesError, find
from remora_server.release import version
from remora_server.rpc.private_files import CredentialFileError
from remora_server.rpc.transport.listeners import UNIX, ListenError, parse_listener, require_guarded
from remora_server.settings.embedding import BUILTIN, NONE, OPENAI, EndpointSettings
from remora_server.settings.memory import memory_bytes
from remora_server.settings.settings import DEFAULT, IN_MEMORY, Settings
from remora_server.storage.recovery.inspection import Finding, StoreReport, inspect_store

LEAST_OPEN_FILES = 1024
SLOW_SYNC_MICROS = 20_000
ASKING_SECONDS = 5.0
PROBE = "Which train goes to Lisbon?"
PROBE_TOKENS = 1_024
"""Some models think before they answer."""
CHAT = "chat model"


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add_setting_flags(parser)
    add_json_flag(parser)


def run(given: dict[str, Any]) -> None:
    """Check everything and show it. Raises CommandFailed if something is wrong."""
    as_json = given.pop("json")
    loaded = load_settings(given)
    wanted = any(loaded.origins[name] != DEFAULT for name in ("model", "model_dir"))
    examination = Examination(loaded.settings, needs_model=wanted)
    examination.examine()
    if as_json:
        write_json(examination.facts())
    else:
        _show(examination)
    if examination.findings:
        count = len(examination.findings)
        raise CommandFailed("something is wrong" if count == 1 else f"{count} things are wrong")


def _installing(directory: Path) -> str:
    """The command that installs the model there, as a shell takes it."""
    return f"`remora model install --dir {shlex.quote(str(directory))}`"


class Examination:
    """What was checked: facts by part, findings, notes (which may be intended), and what could not be checked."""

    def __init__(self, settings: Settings, *, needs_model: bool) -> None:
        """`needs_model` says whether a built-in model that is not installed is wrong: somebody chose it, or its
        directory.
        """
        self._settings = settings
        self._needs_model = needs_model
        self.parts: dict[str, dict[str, object]] = {}
        self.findings: list[Finding] = []
        self.notes: list[Finding] = []
        self.unchecked: list[str] = []

    def examine(self) -> None:
        """Check everything."""
        self._versions()
        self._kernels()
        self._model()
        self._chat_model()
        self._store()
        self._disk()
        self._limits()
        self._listeners()
        self._credentials()

    def facts(self) -> dict[str, object]:
        """The report as JSON values, for scripts."""
        return {
            "healthy": not self.findings,
            **self.parts,
            "findings": [asdict(finding) for finding in self.findings],
            "notes": [asdict(note) for note in self.notes],
            "unchecked": self.unchecked,
        }

    def _find(self, part: str, what: str, remedy: str) -> None:
        self.findings.append(Finding(part, what, remedy))

    def _note(self, part: str, what: str, remedy: str) -> None:
        self.notes.append(Finding(part, what, remedy))

    def _versions(self) -> None:
        self.parts["versions"] = {
            "remora": version(),
            "python": platform.python_version(),
            "duckdb": duckdb.__version__,
            "grpc": grpc.__version__,
            "protobuf": metadata.version("protobuf"),
            "system": platform.platform(),
        }

    def _kernels(self) -> None:
        available, wanted = available_kernels(), self._settings.kernels
        chosen = available[-1] if wanted == "auto" else wanted
        self.parts["kernels"] = {"chosen": chosen, "available": available}
        if chosen not in available:
            self._find("kernels", f"this processor cannot run {chosen}", f"choose one of {', '.join(available)}")

    def _model(self) -> None:
        directory, models = self._settings.model_dir, self._settings.models
        self.parts["model"] = {
            "default": models.default,
            "directory": str(directory),
            "found": find(directory) is not None,
        }
        if models.tenants:
            self.parts["model"]["tenants"] = dict(models.tenants)
        if models.default == NONE:
            self._note("model", "none is configured: searches go by words alone", "nothing, if that is intended")
        if BUILTIN in models.names():
            self._builtin_model(directory)
        for name, endpoint in models.endpoints_in_use().items():
            self._endpoint(name, endpoint)
        for name in sorted(models.endpoints.keys() - models.names()):
            self._note(
                "model", f"the model {name} embeds nothing", "name it in `model` or `tenant_models`, or leave it out"
            )

    def _builtin_model(self, directory: Path) -> None:
        try:
            embedder = load_embedder(directory, self._settings.precision)
        except ModelFilesError as error:
            self._find("model", str(error), _installing(directory))
            return
        if embedder is None:
            what = f"no embedding model is installed in {directory}: searches go by words alone"
            tell = self._find if self._needs_model else self._note
            tell("model", what, _installing(directory))
            self.unchecked.append("the embedding model (it is not installed)")
            return
        self.parts["model"] |= {
            "name": embedder.model,
            "dimension": embedder.dimension,
            "precision": embedder.precision,
            "digests": "as published",
        }

    def _endpoint(self, name: str, settings: EndpointSettings) -> None:
        """Have an endpoint embed a text."""
        part, begun = f"model {name}", time.perf_counter()
        self.parts[part] = {"provider": OPENAI, "url": settings.base_url, "model": settings.model}
        if settings.api_key_variable is not None and not settings.api_key:
            self._find(part, f"the variable of its key, {settings.api_key_variable}, is not set", "set it")
            return
        if settings.is_open_to_others:
            self._note(
                part, "its key and all texts cross the network in clear", "use https, unless the network is safe"
            )
        embedder = open_endpoint(settings, 0, waiters=1)
        try:
            [made] = embedder.embed_now([PROBE], time.monotonic() + 2 * ASKING_SECONDS)
        except EmbeddingFailed as error:
            self._find(part, f"{settings.base_url} makes no vectors: {error}", "check its URL, model and key")
        else:
            milliseconds = round((time.perf_counter() - begun) * 1e3)
            self.parts[part] |= {
                "vectors": embedder.model,
                "dimension": len(made.values) // 4,
                "milliseconds": milliseconds,
            }
            if milliseconds > settings.query_timeout * 1e3:
                what = (
                    f"a query takes {milliseconds} ms, and searches wait {settings.query_timeout} s: they go by words"
                )
                self._note(part, what, "raise query_timeout, or bring the endpoint nearer")
        finally:
            embedder.close()

    def _chat_model(self) -> None:
        """Have the chat model complete a prompt."""
        settings = self._settings.chat
        if settings is None:
            return
        self.parts[CHAT] = {"url": settings.base_url, "model": settings.model}
        if settings.is_open_to_others:
            self._note(
                CHAT, "its key and all texts cross the network in clear", "use https, unless the network is safe"
            )
        try:
            model = open_chat_model(settings)
        except ModelsError as error:
            self._find(CHAT, str(error), "set it")
            return
        try:
            model.complete(Prompt("Answer in one word.", PROBE), PROBE_TOKENS, 2 * ASKING_SECONDS)
        except ChatModelFailed as error:
            self._find(CHAT, f"{settings.base_url} does not answer: {error}", "check its URL, model and key")
        finally:
            model.close()

    def _store(self) -> None:
        data = self._settings.data
        if data is None:
            self.parts["store"] = {"directory": IN_MEMORY}
            self._note("store", "everything is in memory and lost with the process", "nothing, if that is intended")
            self.unchecked.append("the store (there is none on disk)")
            return
        report = inspect_store(data)
        self.parts["store"] = _store_facts(report)
        self.findings += report.findings
        if not report.present and not report.findings:
            remedy = "nothing, if the path is right: the first `remora serve` makes it; else name another (--data)"
            self._note("store", f"there is none in {data} yet", remedy)
            self.unchecked.append(f"the store (there is none in {data})")
        if report.served:
            self._ask_server(report.store_id)

    def _ask_server(self, store_id: str) -> None:
        """The files of a served store cannot be read, so the server is asked."""
        endpoint = next((each for each in self._settings.listen if each.startswith(UNIX)), self._settings.listen[0])
        if self._settings.tls is not None and not endpoint.startswith(UNIX):
            what = f"a process serves it, and only with TLS ({endpoint}): it was not asked"
            self._note("store", what, "to have it asked, let it listen on a Unix socket, too (--listen)")
            self.unchecked.append("the store (a server uses its files)")
            return
        try:
            with Remora(endpoint, token=self._token(), timeout=ASKING_SECONDS) as memory:
                status = memory.status()
        except (RemoraError, grpc.RpcError) as error:
            what = f"a process serves it and does not answer at {endpoint}"
            if not isinstance(error, ConnectionFailedError) or error.tls_fault:  # others tell to start a server
                what = f"{what}: {one_line(error)}"
            self._find("store", what, "say where it listens (--listen), or see its log")
            return
        if status.store.store_id != store_id:
            what = f"a process serves it, and another store is served at {endpoint}"
            self._find("store", what, "say where the process listens (--listen)")
            return
        self.parts["server"] = {"endpoint": endpoint, **_server_facts(status)}
        if not status.store.writable:
            remedy = "make room if the disk is full; otherwise see its log, and restart it"
            self._find("store", f"its server takes no writes: {status.store.failure}", remedy)
        if status.model.failure:
            what = f"the server's model {status.model.name} does not embed: {status.model.failure}"
            self._find("model", what, "nothing, if it passes: messages are embedded as soon as it does")
        what = f"it is served at {endpoint}: its server was asked, its files were not read"
        self._note("store", what, "to check the files, stop the server, or restore a backup and check that")
        self.unchecked.append("the store's files (a server uses them)")

    def _token(self) -> str | None:
        """A token that the server accepts: the operator's; None where it cannot be read."""
        with suppress(CommandFailed):
            return None if self._settings.data is None else token_in(self._settings.data)
        return None

    def _disk(self) -> None:
        if self._settings.data is None:
            return
        disk, data = disk_of(self._settings.data), self._settings.data
        self.parts["disk"] = {"directory": str(data), **asdict(disk)}
        if not disk.writable:
            self._find(
                "disk", f"{data} cannot be written", "ask as the user who serves it, or give that user the right"
            )
        if disk.free_bytes < 2 * self._settings.segment_bytes:
            self._find("disk", f"{disk.free_bytes >> 20} MiB are free: writes are refused soon", "make room")
        if disk.sync_micros > SLOW_SYNC_MICROS:
            self._note("disk", f"a sync takes {disk.sync_micros / 1000:.0f} ms, and so does a write", "a faster disk")
        if disk.kind in ("tmpfs", "ramfs"):
            self._note("disk", f"{data} is in memory ({disk.kind})", "put it on a disk, if it is to last")

    def _limits(self) -> None:
        settings, files = self._settings, open_files_limit()
        memory = min(settings.memory_limit, memory_bytes())
        searches = max(settings.recall_bytes, settings.search_bytes)
        bounds = (settings.window_bytes, settings.record_bytes, settings.vector_bytes, searches)
        wanted = sum(bounds) + settings.queue_bytes + settings.database_bytes
        self.parts["limits"] = {"open_files": files, "memory_bytes": memory, "memory_set_bytes": wanted}
        if files < LEAST_OPEN_FILES:
            self._find("limits", f"the process may open {files} files only", f"`ulimit -n {LEAST_OPEN_FILES}` or more")
        if wanted > memory:
            self._find(
                "settings",
                f"the settings allow {wanted >> 20} MiB of memory, and there are {memory >> 20}",
                "leave window_bytes, record_bytes, vector_bytes, recall_bytes, search_bytes and database_bytes to "
                "memory_limit, or lower them",
            )

    def _listeners(self) -> None:
        self.parts["settings"] = {"listen": list(self._settings.listen)}
        guarded = is_guarded(self._settings)
        try:
            listeners = [parse_listener(endpoint) for endpoint in self._settings.listen]
            require_guarded(listeners, guarded=guarded or self._settings.insecure)
        except ListenError as error:
            self._find("settings", str(error), "change `listen`, or give tokens")
        else:
            if self._settings.insecure and not guarded:
                self._note("settings", "other machines are let in without a token", "give tokens (--token-file)")

    def _credentials(self) -> None:
        try:
            open_credentials(self._settings)
        except CredentialFileError as error:
            self._find("settings", str(error), error.remedy)
            return
        files = tls_files(self._settings)
        complaint = "" if files is None else files.expiry_complaint()
        if complaint:
            self._find("settings", complaint, "renew it; the server reads the new one while it runs")


def _store_facts(report: StoreReport) -> dict[str, object]:
    facts: dict[str, object] = {
        "directory": str(report.directory),
        "present": report.present,
        "served": report.served,
        "store_id": report.store_id,
        "format_version": report.format_version or None,
    }
    if not report.served:
        facts |= {"database": asdict(report.database), "journal": asdict(report.journal)}
    return facts


def _server_facts(status: GetStatusResponse) -> dict[str, object]:
    server, store, journal = status.server, status.store, status.journal
    return {
        "version": server.version,
        "start_time": server.start_time.ToJsonString(),
        "resident_bytes": server.resident_bytes,
        "writable": store.writable,
        "revision": store.revision,
        "applied_revision": store.applied_revision,
        "conversations": store.conversations,
        "messages": store.messages,
        "database_bytes": store.database_bytes,
        "journal_bytes": journal.bytes,
        "sync_micros": journal.sync_micros,
        "to_embed": status.model.pending,
    }


def _show(examination: Examination) -> None:
    console = output()
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for part, facts in examination.parts.items():
        shown = [(name, _plain(name, value)) for name, value in facts.items()]
        for number, (name, value) in enumerate(pair for pair in shown if pair[1]):
            table.add_row(part if number == 0 else "", _title(name), printable(value))
    console.print(table)
    for mark, findings in (("note", examination.notes), ("WRONG", examination.findings)):
        for finding in findings:
            console.print(f"\n{mark}: {printable(finding.part)}: {printable(finding.what)}")
            console.print(f"  what to do: {printable(finding.remedy)}")
    if not examination.findings:
        console.print(f"\n{printable(_verdict(examination))}")


def _title(name: str) -> str:
    """The name of a fact without its unit, which is beside the value."""
    return name.removesuffix("_bytes").removesuffix("_micros").replace("_", " ")


def _verdict(examination: Examination) -> str:
    if not examination.unchecked:
        return "everything was checked, and nothing is wrong"
    return f"nothing wrong was found; not checked: {', '.join(examination.unchecked)}"


def _plain(name: str, value: object) -> str:
    """A fact for people; empty if there is nothing to say."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        parts = ((inner, _plain(inner, part)) for inner, part in value.items() if part)
        return ", ".join(f"{inner.replace('_', ' ')} {part}" for inner, part in parts if part)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return _number(name, value) if isinstance(value, int) else str(value)


def _number(name: str, value: int) -> str:
    if name.endswith("bytes"):
        return size(value)
    if name.endswith("_micros"):
        return f"{value / 1000:.2f} ms"
    return f"{value:,}"
