"""Exports and imports as processes over a real server: interrupted, killed, resumed, large, wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.stalling import stalling
from tests.commands.terminal import (
    begin,
    conversation_lines,
    done,
    measured,
    remora,
    without_token_counts,
    write_export,
)  # fmt: skip
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora_server.commands import export

STALLED_BYTES = 600_000
"""A page of an export of `many` and less than half of them."""

TEXT = "the night train to Lisbon leaves at ten " * 5


@pytest.fixture
def sidecar() -> Iterator[Sidecar]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        running = Sidecar(Path(directory), "--model=none")
        running.start()
        yield running
        running.kill()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of many messages in conversations of several sizes."""
    path = tmp_path_factory.mktemp("exports") / "many.jsonl"
    lines = [line for number in range(40) for line in conversation_lines(f"c{number}", 1 + number * 8, TEXT)]
    write_export(path, lines)
    return path


def conversations(sidecar: Sidecar) -> int:
    with Remora(sidecar.endpoint, timeout=PATIENCE) as client:
        return client.count_conversations()


def is_exported_as(sidecar: Sidecar, path: Path) -> bool:
    exported = done(sidecar.endpoint, "export", "-")
    assert b'"token_count":' in exported
    return without_token_counts(exported) == path.read_bytes()


def end(process: subprocess.Popen[bytes], number: signal.Signals) -> int:
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    return process.returncode


@pytest.mark.slow
def test_a_killed_import_is_continued_without_doubling(sidecar: Sidecar, many: Path) -> None:
    with stalling(sidecar.endpoint, asked=many.stat().st_size // 3) as endpoint:
        process = begin(endpoint, "import", many)
        eventually(lambda: conversations(sidecar) > 10)
        assert end(process, signal.SIGKILL) == -signal.SIGKILL
    assert conversations(sidecar) < 40

    code, _, said = remora(sidecar.endpoint, "import", many)

    assert code == 0
    assert "were there already" in said
    assert is_exported_as(sidecar, many)


@pytest.mark.faults
def test_an_import_goes_on_after_the_server_was_killed(sidecar: Sidecar, many: Path) -> None:
    with stalling(sidecar.endpoint, asked=many.stat().st_size // 3) as endpoint:
        process = begin(endpoint, "import", many)
        eventually(lambda: conversations(sidecar) > 10)
        sidecar.kill()
        sidecar.start()
        process.communicate(timeout=PATIENCE)

    if process.returncode != 0:
        done(sidecar.endpoint, "import", many)

    assert is_exported_as(sidecar, many)


def interrupted(sidecar: Sidecar, path: Path) -> int:
    """An export to a file that is killed on its way, after at least one page: the bytes that it says it has."""
    state = path.with_name(path.name + ".resume")
    with stalling(sidecar.endpoint, answered=STALLED_BYTES) as endpoint:
        process = begin(endpoint, "export", path)
        eventually(state.exists)
        assert end(process, signal.SIGKILL) == -signal.SIGKILL
    return int(json.loads(state.read_bytes())["bytes"])


@pytest.fixture(scope="module")
def stored(many: Path) -> Iterator[Sidecar]:
    """A server that holds what `many` does."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        running = Sidecar(Path(directory), "--model=none")
        running.start()
        done(running.endpoint, "import", many)
        yield running
        running.kill()


@pytest.fixture(scope="module")
def whole(stored: Sidecar) -> bytes:
    """What an export gives that nothing interrupts."""
    exported = done(stored.endpoint, "export", "-")
    assert len(exported) > 2 * STALLED_BYTES
    return exported


@pytest.mark.slow
def test_an_interrupted_export_is_resumed_from_its_last_whole_page(
    stored: Sidecar, whole: bytes, tmp_path: Path
) -> None:
    parts = tmp_path / "parts.jsonl"
    reached = interrupted(stored, parts)
    assert 0 < reached < len(whole)
    assert parts.read_bytes()[:reached] == whole[:reached]
    with parts.open("r+b") as stream:  # which a resumed export leaves as it is
        stream.seek(whole.index(b"night train"))
        stream.write(b"Night train")
        stream.seek(0, os.SEEK_END)
        stream.write(b'{"kind":"mess')  # what a kill in the middle of a line leaves

    assert remora(stored.endpoint, "export", parts)[0] == 1, "without --resume nothing is overwritten"
    done(stored.endpoint, "export", "--resume", parts)

    assert parts.read_bytes() == whole.replace(b"night train", b"Night train", 1)
    assert [path.name for path in tmp_path.iterdir()] == ["parts.jsonl"]


@pytest.mark.slow
def test_an_export_that_has_lost_all_that_its_state_names_begins_anew(
    stored: Sidecar, whole: bytes, tmp_path: Path
) -> None:
    parts = tmp_path / "parts.jsonl"
    interrupted(stored, parts)
    os.truncate(parts, 0)

    code, _, _ = remora(stored.endpoint, "export", "--resume", parts)

    assert code == 0
    assert parts.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["parts.jsonl"]


@pytest.mark.slow
@pytest.mark.parametrize("left", ["nothing", "the first line", "a part of the first line"])
def test_an_export_that_had_no_records_yet_begins_anew(
    stored: Sidecar, whole: bytes, tmp_path: Path, left: str
) -> None:
    parts = tmp_path / "parts.jsonl"
    parts.write_bytes(whole[: {"nothing": 0, "the first line": whole.index(b"\n") + 1}.get(left, 5)])

    done(stored.endpoint, "export", "--resume", parts)

    assert parts.read_bytes() == whole


@pytest.mark.parametrize("tenant", ["default", "another"])
@pytest.mark.parametrize("state", [None, b'{"bytes":1001,"records":2,"conversations":1,"page_token":"t"}'])
def test_an_export_whose_progress_is_not_known_is_not_overwritten(
    stored: Sidecar, whole: bytes, tmp_path: Path, tenant: str, state: bytes | None
) -> None:
    path = tmp_path / "parts.jsonl"
    path.write_bytes(whole[:1000])
    if state is not None:
        path.with_name("parts.jsonl.resume").write_bytes(state)

    code, _, error = remora(stored.endpoint, "export", "--resume", "--tenant", tenant, path)

    assert (code, error.count("\n")) == (1, 1)
    assert f"{path} cannot be continued" in error
    assert f"remove {path}, and the export begins anew, or name another file" in error
    assert path.read_bytes() == whole[:1000]


@pytest.mark.parametrize("tenant", ["default", "another"])
def test_a_complete_export_is_not_gone_on_with(stored: Sidecar, whole: bytes, tmp_path: Path, tenant: str) -> None:
    path = tmp_path / "whole.jsonl"
    path.write_bytes(whole)

    code, _, error = remora(stored.endpoint, "export", "--resume", "--tenant", tenant, path)

    assert (code, error) == (1, f"remora: {path} is a complete export and stays as it is: name another file\n")
    assert path.read_bytes() == whole


@pytest.mark.slow
def test_an_export_that_was_killed_at_its_very_end_is_resumed_by_its_own_tenant_only(
    stored: Sidecar, whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "whole.jsonl"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda *_, **__: None)
        done(stored.endpoint, "export", path)
    assert path.with_name("whole.jsonl.resume").exists()

    code, _, error = remora(stored.endpoint, "export", "--resume", "--tenant", "another", path)

    assert code == 1
    assert "is an export of another tenant or store" in error
    assert path.read_bytes() == whole
    done(stored.endpoint, "export", "--resume", path)
    assert path.read_bytes() == whole
    assert [path.name for path in tmp_path.iterdir()] == ["whole.jsonl"]


@pytest.mark.parametrize("content", [b"precious\n", b"{}", b'{"kind":"format","version":2}\n', b'{"kind":"end",\n'])
@pytest.mark.parametrize("resume", [[], ["--resume"]], ids=["anew", "resumed"])
def test_what_is_no_export_is_not_overwritten(
    stored: Sidecar, tmp_path: Path, content: bytes, resume: list[str]
) -> None:
    path = tmp_path / "precious"
    path.write_bytes(content)

    code, _, error = remora(stored.endpoint, "export", *resume, path)

    assert code == 1
    assert "name another file" in error
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "state", [b"", b"[]", b'{"bytes":"9"}', b'{"bytes":-5}', b'{"bytes":1000,"records":-1}', b'{"bytes":', b"\0" * 40]
)
def test_a_state_that_is_damaged_is_said_to_be(stored: Sidecar, whole: bytes, tmp_path: Path, state: bytes) -> None:
    path = tmp_path / "parts.jsonl"
    path.write_bytes(whole[:1000])
    path.with_name("parts.jsonl.resume").write_bytes(state)

    code, _, error = remora(stored.endpoint, "export", "--resume", path)

    assert (code, error.count("\n")) == (1, 1)
    assert "parts.jsonl.resume is damaged: remove" in error
    assert path.read_bytes() == whole[:1000]


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A server with two users, whose conversations are `of-sarah` and `of-tom`."""
    path = tmp_path_factory.mktemp("owned") / "owned.jsonl"
    lines = [line.replace(b'"sarah"', b'"tom"') for line in conversation_lines("of-tom", 2, "said")]
    write_export(path, [*conversation_lines("of-sarah", 3, "said"), *lines])
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        running = Sidecar(Path(directory), "--model=none")
        running.start()
        done(running.endpoint, "import", path)
        yield running
        running.kill()


def records(exported: bytes) -> list[tuple[str, str]]:
    """The kinds of an export's records and the conversations that they are of."""
    found = [json.loads(line) for line in exported.splitlines()[1:-1]]
    return [(each["kind"], each.get("conversation_id") or each["conversation"]["id"]) for each in found]


@pytest.mark.parametrize("scope", [("--user", "tom"), ("--conversation", "of-tom")])
def test_a_part_is_exported_alone_and_can_be_imported(owned: Sidecar, tmp_path: Path, scope: tuple[str, str]) -> None:
    path = tmp_path / "part.jsonl"
    done(owned.endpoint, "export", *scope, path)

    assert records(path.read_bytes()) == [("conversation", "of-tom"), *[("message", "of-tom")] * 2]
    assert remora(owned.endpoint, "import", path)[::2] == (0, "0 records imported; 3 were there already\n")


@pytest.mark.parametrize("made", [(), ("--user", "sarah"), ("--conversation", "of-sarah")])
@pytest.mark.parametrize("is_complete", [True, False])
def test_an_export_of_another_part_is_not_gone_on_with(
    owned: Sidecar, tmp_path: Path, made: tuple[str, ...], is_complete: bool
) -> None:
    path = tmp_path / "part.jsonl"
    done(owned.endpoint, "export", *made, path)
    content = path.read_bytes() if is_complete else path.read_bytes()[:-10]
    path.write_bytes(content)

    code, _, error = remora(owned.endpoint, "export", "--resume", "--user", "tom", path)

    assert (code, error) == (
        1,
        f"remora: {path} is an export with another --user or --conversation: give the same, or another file\n",
    )
    assert path.read_bytes() == content


@pytest.mark.slow
def test_an_export_of_another_tenant_is_not_gone_on_with(stored: Sidecar, tmp_path: Path) -> None:
    path = tmp_path / "parts.jsonl"
    interrupted(stored, path)
    content = path.read_bytes()

    code, _, error = remora(stored.endpoint, "export", "--resume", "--tenant", "another", path)

    assert (code, error.count("\n")) == (1, 1)
    assert "is an export of another tenant or store" in error
    assert path.read_bytes() == content


@pytest.mark.parametrize("arguments", [("--conversation", "nowhere"), ("--endpoint", "unix:/nowhere/socket")])
def test_an_export_that_gives_nothing_leaves_nothing(
    stored: Sidecar, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    for _ in range(2):
        code, _, error = remora(stored.endpoint, "export", *arguments, tmp_path / "out.jsonl")

        assert code == 1
        assert "exists" not in error
        assert list(tmp_path.iterdir()) == []


def test_an_export_that_would_begin_anew_and_cannot_leaves_what_is_there(
    stored: Sidecar, whole: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(whole[: whole.index(b"\n") + 1])

    code, _, _ = remora(stored.endpoint, "export", "--endpoint", "unix:/nowhere/socket", "--resume", path)

    assert code == 1
    assert path.read_bytes() == whole[: whole.index(b"\n") + 1]


@pytest.mark.slow
def test_who_waits_long_for_a_page_is_told(stored: Sidecar, tmp_path: Path) -> None:
    with stalling(stored.endpoint, answered=STALLED_BYTES) as endpoint:
        process = begin(endpoint, "export", tmp_path / "out.jsonl")
        assert process.stderr is not None
        said = process.stderr.readline()
        end(process, signal.SIGKILL)

    assert said.startswith(b"no answer for 5 s")


def test_a_state_names_nothing_that_is_not_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = tmp_path / "x", tmp_path / "x.resume"
    events: list[str] = []
    rename = Path.rename

    def synced(number: int) -> None:
        events.append(Path(f"/proc/self/fd/{number}").readlink().name)

    def renamed(self: Path, to: Path) -> Path:
        events.append("rename")
        return rename(self, to)

    monkeypatch.setattr(os, "fdatasync", synced)
    monkeypatch.setattr(Path, "rename", renamed)

    with path.open("wb") as stream:
        stream.write(b"12345")
        export._keep(state, stream, export.Reached(5, 1, 1, "t"))
        assert path.read_bytes() == b"12345"

    assert events == ["x", "x.resume.new", "rename"]


@pytest.mark.faults
def test_memory_does_not_grow_with_what_is_moved(sidecar: Sidecar, tmp_path: Path) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    write_export(small, conversation_lines("small", 10, TEXT))
    write_export(large, conversation_lines("large", 50_000, TEXT * 5))
    allowed = 24 << 20
    assert large.stat().st_size > allowed

    little = measured(sidecar.endpoint, "import", "--tenant", "a", small)
    much = measured(sidecar.endpoint, "import", "--tenant", "b", large)
    out = measured(sidecar.endpoint, "export", "--tenant", "b", tmp_path / "out.jsonl")

    assert (little.code, much.code, out.code) == (0, 0, 0)
    assert much.memory - little.memory < allowed
    assert out.memory - little.memory < allowed
    assert without_token_counts((tmp_path / "out.jsonl").read_bytes()) == large.read_bytes()


def test_a_pipe_from_one_store_to_another_needs_no_file(sidecar: Sidecar, tmp_path: Path) -> None:
    path = tmp_path / "some.jsonl"
    write_export(path, conversation_lines("c", 10, TEXT))
    done(sidecar.endpoint, "import", "--tenant", "a", path)

    code, _, said = remora(
        sidecar.endpoint,
        "import",
        "-",
        given=done(sidecar.endpoint, "export", "-", variables={"REMORA_TENANT": "a"}),
        variables={"REMORA_TENANT": "b"},
    )

    assert (code, said) == (0, "11 records imported\n")
    assert done(sidecar.endpoint, "export", "-", "--tenant", "b") == done(
        sidecar.endpoint, "export", "-", "--tenant", "a"
    )


def test_empty_lines_behind_the_end_of_an_export_are_nothing(shared: Sidecar, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(FORMAT + LINES[0] + b'{"kind":"end","records":1}\n\n\r\n')

    code, _, said = remora(shared.endpoint, "import", "--tenant", tmp_path.name, path)

    assert (code, said) == (0, "1 record imported\n")


FORMAT = b'{"kind":"format","version":1}\n'
LINES = conversation_lines("c", 3, "said")
NEITHER = "is neither the first line of an export nor OpenAI chat, a JSON object in each line"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: it is neither an export nor OpenAI chat"),
        (b"hello\n", f"line 1 {NEITHER}"),
        (b"[1]\n", f"line 1 {NEITHER}"),
        (b'[{"role": "user", "content": "hello"}]', f"line 1 {NEITHER}"),
        (b'{\n  "messages": []\n}\n', f"line 1 {NEITHER}"),
        (LINES[0], f"line 1 {NEITHER}"),
        (b'{"kind":"format","version":2}\n', "line 1 says format 2; this version of Remora reads 1"),
        (FORMAT + LINES[0] + b'{"kind":"nonsense"}\n', "line 3 has the unknown kind nonsense"),
        (FORMAT + LINES[0] + b'{"kind":"message","nonsense":1}\n', "line 3 is not a record of the kind message"),
        (FORMAT + LINES[0] + LINES[1][:-5], "line 3 is missing or cut"),
        (FORMAT + LINES[0] + LINES[1], "line 4 is missing or cut"),
        (FORMAT + LINES[0] + b'{"kind":"end","records":2}\n', "it has 1 record of 2"),
        (
            FORMAT + LINES[0] + b'{"kind":"end","records":1}\n\n' + FORMAT + LINES[0],
            "more follows the end of the export in line 3: import it from a file of its own; 1 record was imported",
        ),
        (FORMAT + LINES[1] + LINES[2], "line 2: there is no conversation"),
        (FORMAT + LINES[0] + LINES[2] + LINES[1], "line 4: records[2].message.message.sequence must be greater"),
        (
            FORMAT + LINES[0] + LINES[1].replace(b'"role":"user"', b'"role":""'),
            "line 3: records[1].message.message.role is required",
        ),
    ],
)
def test_a_line_that_is_wrong_is_named_by_its_number(
    shared: Sidecar, tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_bytes(content)

    code, _, error = remora(shared.endpoint, "import", "--tenant", tmp_path.name, path)

    assert code == 1
    assert error.startswith(f"remora: {path}")
    assert said in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        running = Sidecar(Path(directory), "--model=none")
        running.start()
        yield running
        running.kill()


def test_another_message_in_a_place_ends_the_import_at_its_line(shared: Sidecar, tmp_path: Path) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    write_export(first, LINES)
    write_export(second, [*LINES[:3], LINES[3].replace(b"said", b"sung")])
    done(shared.endpoint, "import", "--tenant", "conflict", first)

    code, _, error = remora(shared.endpoint, "import", "--tenant", "conflict", second)

    assert code == 1
    assert f"{second}: line 5: a" in error
    assert "delete that first, or import into a tenant that has none" in error
    assert "0 records were imported before" in error
    assert is_exported(shared, "conflict", first)


def test_what_stands_before_a_wrong_line_is_imported_and_counted(shared: Sidecar, tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_bytes(FORMAT + LINES[0] + LINES[1] + b"hello\n")

    code, _, error = remora(shared.endpoint, "import", "--tenant", "half", path)

    assert (code, error) == (1, f"remora: {path}: line 4 is not JSON; 2 records were imported before\n")
    assert done(shared.endpoint, "export", "--tenant", "half", "-").count(b"\n") == 4


def test_a_line_that_is_nested_beyond_what_python_parses_is_named(shared: Sidecar, tmp_path: Path) -> None:
    path = tmp_path / "deep.jsonl"
    path.write_bytes(FORMAT + b'{"kind":"message","message":' + b"[" * 100_000 + b"\n")

    code, _, error = remora(shared.endpoint, "import", "--tenant", "deep", path)

    assert (code, error) == (1, f"remora: {path}: line 2 is not JSON; 0 records were imported before\n")


def is_exported(sidecar: Sidecar, tenant: str, path: Path) -> bool:
    return without_token_counts(done(sidecar.endpoint, "export", "--tenant", tenant, "-")) == path.read_bytes()


def test_what_cannot_be_read_or_written_is_said_in_one_line(shared: Sidecar, tmp_path: Path) -> None:
    for arguments in (
        ("import", tmp_path / "nowhere"),
        ("export", tmp_path / "nowhere" / "file"),
        ("export", "--conversation", "nowhere", "-"),
        ("export", "/dev/full"),
    ):
        code, _, error = remora(shared.endpoint, *arguments)

        assert code == 1
        assert error.startswith("remora: ")
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("/",), "/ exists: go on with --resume, or name another file"),
        ((".",), ". exists: go on with --resume, or name another file"),
        ((".", "--resume"), ". is not an export and stays as it is: name another file"),
    ],
)
def test_a_folder_is_no_file_to_export_to(shared: Sidecar, arguments: tuple[str, ...], said: str) -> None:
    code, _, error = remora(shared.endpoint, "export", *arguments)

    assert (code, error) == (1, f"remora: {said}\n")


def test_an_export_of_nothing_is_complete(shared: Sidecar) -> None:
    lines = done(shared.endpoint, "export", "--tenant", "nobody", "-").splitlines()

    assert [json.loads(line) for line in lines] == [{"kind": "format", "version": 1}, {"kind": "end", "records": 0}]
