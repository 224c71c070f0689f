"""Backups of a server that goes on serving, and what is restored of them."""

from __future__ import annotations

import json
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.commands.terminal import begin, done, remora
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE, eventually
from tests.tokens import token_file

from remora import Message, Remora
from remora.errors import (
    BackupNotFoundError,
    OperatorOnlyError,
    UnauthenticatedError,
)
from remora_server.commands.failures import CommandFailed
from remora_server.commands.unfinished import unfinished
from remora_server.main import main

WRITERS = 8
TOGETHER = 3
"""Messages of one request."""


@contextmanager
def serving(directory: Path, *arguments: str, token: str | None = None) -> Iterator[Sidecar]:
    directory.mkdir(exist_ok=True)
    sidecar = Sidecar(directory, "--model=none", *arguments, token=token)
    sidecar.start()
    try:
        yield sidecar
    finally:
        sidecar.kill()


def operator(sidecar: Sidecar) -> Remora:
    token = (sidecar.directory / "data" / "operator.token").read_text()
    return Remora(sidecar.endpoint, token=token, timeout=PATIENCE)


def back_up(sidecar: Sidecar, destination: Path) -> dict[str, object]:
    """Back up, and return the manifest."""
    done(sidecar.endpoint, "backup", destination, "--data", sidecar.directory / "data")
    manifest: dict[str, object] = json.loads((destination / "manifest.json").read_text())
    return manifest


@dataclass
class Writers:
    """Clients that append without end, several messages at once, and know what was acknowledged."""

    endpoint: str
    acknowledged: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def writing(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()

    def _write(self, number: int) -> None:
        with Remora(self.endpoint, timeout=PATIENCE) as memory:
            chat = memory.conversation(f"c{number}", user_id="u")
            count = 0
            while not self.stopping.is_set():
                count += 1
                tag = f"{number}-{count}"
                chat.append([Message("user", tag, id=f"{tag}-{part}") for part in range(TOGETHER)])
                self.acknowledged.append(tag)


def tags(endpoint: str) -> Counter[str]:
    """How many messages of each request a store holds."""
    with Remora(endpoint, timeout=PATIENCE) as memory:
        found = [memory.conversation(one.id).messages(None) for one in memory.list_conversations(limit=None)]
    return Counter(message.text for messages in found for message in messages)


@pytest.mark.slow
def test_a_backup_under_writers_holds_what_was_acknowledged_before_it_and_no_half_request(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        writers = Writers(sidecar.endpoint)
        with writers.writing():
            eventually(lambda: len(writers.acknowledged) >= 200)
            before = list(writers.acknowledged)
            manifest = back_up(sidecar, directory / "backup")
            after = len(writers.acknowledged)
            eventually(lambda: len(writers.acknowledged) > after)
        exported = done(sidecar.endpoint, "export", "-")

    done("unix:/nowhere", "restore", directory / "backup", "--data", directory / "b" / "data")
    with serving(directory / "b") as restored:
        held = tags(restored.endpoint)
        restored.kill()
        restored.start()
        assert tags(restored.endpoint) == held
        assert set(before) <= set(held)
        assert set(held.values()) == {TOGETHER}
        with Remora(restored.endpoint, timeout=PATIENCE) as memory:
            assert memory.status().store.store_id == manifest["store_id"]
            assert memory.conversation("new").append(Message("user", "hello")).revision > manifest["revision"]  # type: ignore[operator]
        restored.kill()
        restored.start()
        assert tags(restored.endpoint) == held + Counter(["hello"])
    assert len(exported) > 0


@pytest.mark.slow
def test_a_restored_store_is_exported_as_the_one_that_was_backed_up(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        with Remora(sidecar.endpoint, tenant="t", timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="u", metadata={"a": 1})
            chat.append([Message("user", "one"), Message("assistant", "two")])
            memory.user("u").working_memory.set(b"\xff")
        exported = done(sidecar.endpoint, "export", "--tenant", "t", "-")
        back_up(sidecar, directory / "backup")

    done("unix:/nowhere", "restore", directory / "backup", "--data", directory / "b" / "data")
    with serving(directory / "b") as restored:
        assert done(restored.endpoint, "export", "--tenant", "t", "-") == exported
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (directory / "b" / "data").rglob("*") if path.is_file()}
    assert modes == {0o600}


@pytest.mark.slow
def test_a_kill_in_the_middle_of_a_backup_leaves_nothing_behind(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            memory.conversation("c").append([Message("user", "hello")] * 100)
        held = tags(sidecar.endpoint)
        sidecar.kill()
        sidecar.changes = ("sync_no_snapshot",)
        sidecar.start()
        snapshots = sidecar.directory / "data" / "backups"
        process = begin(sidecar.endpoint, "backup", directory / "backup", "--data", sidecar.directory / "data")
        eventually(lambda: snapshots.exists() and any(snapshots.iterdir()))
        sidecar.kill()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert any(snapshots.iterdir())

        sidecar.changes = ()
        sidecar.start()

        assert not snapshots.exists()
        assert tags(sidecar.endpoint) == held
        back_up(sidecar, directory / "backup")
        assert list(snapshots.iterdir()) == []
        assert sorted(path.name for path in directory.iterdir()) == ["a", "backup"]


@pytest.mark.slow
def test_the_operators_token_alone_allows_backups_and_names_any_tenant(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        file = sidecar.directory / "data" / "operator.token"
        with Remora(sidecar.endpoint, tenant="acme", timeout=PATIENCE) as memory:
            memory.conversation("c").append(Message("user", "secret"))
            for forbidden in (
                memory.create_backup,
                lambda: memory.read_backup("b", 0),
                lambda: memory.delete_backup("b"),
            ):
                with pytest.raises(OperatorOnlyError):
                    forbidden()
        with Remora(sidecar.endpoint, token="guessed", timeout=PATIENCE) as memory, pytest.raises(OperatorOnlyError):
            memory.create_backup()
        first = file.read_text()

        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        sidecar.kill()
        sidecar.start()
        assert file.read_text() != first
        with Remora(sidecar.endpoint, token=first, timeout=PATIENCE) as memory, pytest.raises(OperatorOnlyError):
            memory.create_backup()


@pytest.mark.slow
def test_an_operators_token_that_everybody_can_read_is_not_used(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving(directory / "a") as sidecar:
        data = sidecar.directory / "data"
        (data / "operator.token").chmod(0o644)

        code = main(["backup", str(directory / "b"), f"--data={data}", f"--endpoint={sidecar.endpoint}"])

    assert code == 1
    assert "operator.token: `chmod 600` it and restart the server" in capsys.readouterr().err


@pytest.mark.slow
def test_where_tokens_are_asked_for_the_operator_names_the_tenant(directory: Path) -> None:
    tokens = token_file(directory / "tokens", "secret acme")
    with serving(directory / "a", f"--token-file={tokens}", token="secret") as sidecar:
        with Remora(sidecar.endpoint, token="secret", timeout=PATIENCE) as memory:
            memory.conversation("c").append(Message("user", "hello"))
            with pytest.raises(OperatorOnlyError):
                memory.create_backup()
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory, pytest.raises(UnauthenticatedError):
            memory.create_backup()
        token = (sidecar.directory / "data" / "operator.token").read_text()
        with Remora(sidecar.endpoint, token=token, tenant="acme", timeout=PATIENCE) as memory:
            assert [message.text for message in memory.conversation("c").messages()] == ["hello"]
        back_up(sidecar, directory / "backup")


@pytest.mark.slow
def test_one_backup_is_kept_and_is_read_until_it_is_deleted(directory: Path) -> None:
    with serving(directory / "a") as sidecar, operator(sidecar) as memory:
        first = memory.create_backup()
        second = memory.create_backup()

        with pytest.raises(BackupNotFoundError):
            memory.read_backup(first.id, 0)
        assert len(memory.read_backup(second.id, 0)) == min(second.bytes, 1 << 20)
        assert memory.read_backup(second.id, second.bytes) == b""
        with pytest.raises(BackupNotFoundError):
            memory.read_backup("../operator.token", 0)
        assert memory.delete_backup(second.id)
        assert not memory.delete_backup(second.id)


@pytest.mark.slow
def test_a_store_in_memory_has_no_backup_and_no_operator(directory: Path) -> None:
    with serving(directory / "a", "--data=:memory:") as sidecar:
        code, _, error = remora(sidecar.endpoint, "backup", directory / "backup", variables={"REMORA_TOKEN": "guessed"})

    assert code == 1
    assert "only the operator may do this" in error


@pytest.mark.slow
def test_the_token_of_the_directory_that_is_named_goes_before_that_of_the_environment(directory: Path) -> None:
    tenant = {"REMORA_TOKEN": "a tenant's"}
    with serving(directory / "a") as sidecar:
        data = sidecar.directory / "data"
        named = remora(sidecar.endpoint, "backup", directory / "b", "--data", data, variables=tenant)
        given = remora(sidecar.endpoint, "backup", directory / "c", "--data", data, "--token", "guessed")
        unnamed = remora(sidecar.endpoint, "backup", directory / "c", variables=tenant)
        elsewhere = remora(sidecar.endpoint, "backup", directory / "c", "--data", directory)

    assert named[0] == 0, named
    assert [given[0], unnamed[0], elsewhere[0]] == [1, 1, 1]
    assert "only the operator may do this" in given[2]
    assert "only the operator may do this" in unnamed[2]
    assert "name that directory (--data)" in unnamed[2]
    assert f"{directory / 'operator.token'} cannot be read" in elsewhere[2]


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "0", "1e9", "soon"])
def test_a_time_that_no_call_can_take_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["backup", "x", f"--seconds={text}"])

    assert ended.value.code == 2
    assert f"argument --seconds: {text} is not a number of seconds" in capsys.readouterr().err


@pytest.mark.slow
def test_a_snapshot_that_takes_longer_than_it_may_says_what_to_raise(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        arguments = ("backup", directory / "backup", "--data", sidecar.directory / "data", "--seconds", "0.0001")

        code, _, error = remora(sidecar.endpoint, *arguments)

        assert (code, error) == (1, "remora: the server made no snapshot in 0.0001 s: raise --seconds\n")
        assert [path.name for path in directory.iterdir()] == ["a"]


@pytest.fixture(scope="module")
def backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a store with one message."""
    destination = tmp_path_factory.mktemp("backups") / "backup"
    with tempfile.TemporaryDirectory(prefix="remora-") as name, serving(Path(name)) as sidecar:
        with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
            memory.conversation("c").append(Message("user", "hello"))
        back_up(sidecar, destination)
    return destination


def edited(backup: Path, **values: object) -> None:
    file = backup / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def flip(backup: Path) -> None:
    content = bytearray((backup / "remora.duckdb").read_bytes())
    content[len(content) // 2] ^= 1
    (backup / "remora.duckdb").write_bytes(content)


def lengthen(backup: Path) -> None:
    with (backup / "remora.duckdb").open("ab") as stream:
        stream.write(b"more")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (flip, "is damaged"),
        (lambda backup: (backup / "remora.duckdb").unlink(), "cannot be read"),
        (lambda backup: (backup / "manifest.json").unlink(), "is not a backup"),
        (lambda backup: (backup / "manifest.json").write_text("{"), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, manifest_version=2), "upgrade Remora"),
        (lambda backup: edited(backup, file="../../elsewhere"), "upgrade Remora"),
        (lambda backup: edited(backup, format_version=99), "upgrade Remora"),
        (lambda backup: edited(backup, schema_version=99), "upgrade Remora"),
        (lambda backup: edited(backup, revision=7), "does not hold what its manifest says"),
        (lambda backup: edited(backup, rows={}), "does not hold what its manifest says"),
        (lambda backup: edited(backup, store_id="00" * 16), "does not hold what its manifest says"),
        (lambda backup: edited(backup, store_id="00"), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, sha256=5), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, sha256="zz"), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, rows={"messages": "1"}), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, revision=-1), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, more=1), "is damaged, or of a newer version"),
        (lambda backup: (backup / "manifest.json").write_bytes(b"\xff"), "is damaged, or of a newer version"),
        (lambda backup: edited(backup, bytes=3), "bytes, its manifest says 3"),
        (lengthen, "is damaged: it has"),
        (lambda backup: (backup / "remora.duckdb").write_bytes(b""), "is damaged: it has 0 bytes"),
        (shutil.rmtree, "is not a backup"),
    ],
)
def test_a_backup_that_is_not_whole_is_refused_and_restores_nothing(
    backup: Path, tmp_path: Path, damage: object, said: str
) -> None:
    shutil.copytree(backup, tmp_path / "backup")
    assert callable(damage)
    damage(tmp_path / "backup")

    code, _, error = remora("unix:/nowhere", "restore", tmp_path / "backup", "--data", tmp_path / "data")

    assert code == 1
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "data").exists()


def test_nothing_is_restored_over_anything(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note").write_text("mine")

    code, _, error = remora("unix:/nowhere", "restore", backup, "--data", tmp_path / "data")

    assert (code, error.count("\n")) == (1, 1)
    assert "is not empty" in error
    assert [path.name for path in (tmp_path / "data").iterdir() if path.name != "LOCK"] == ["note"]


@pytest.mark.parametrize("place", [".", "data"])
def test_nothing_is_restored_into_the_backup(backup: Path, place: str) -> None:
    before = sorted(backup.rglob("*"))

    code, _, error = remora("unix:/nowhere", "restore", backup, "--data", backup / place)

    assert (code, sorted(backup.rglob("*"))) == (1, before)
    assert "is in the backup: a backup is not written to" in error


@pytest.mark.slow
def test_a_restore_that_was_killed_is_served_by_nobody_and_made_anew(backup: Path, directory: Path) -> None:
    data = directory / "data"
    program = (sys.executable, "-m", "tests.faults.changed_server", "sync_no_snapshot")
    process = begin("unix:/nowhere", "restore", backup, "--data", data, program=program)
    eventually((data / "remora.duckdb").exists)
    process.kill()
    process.communicate()
    assert (data / "FORMAT.unfinished").exists()
    sidecar = Sidecar(directory, "--model=none")
    sidecar.launch()
    assert sidecar.wait() == 1
    assert "is not a data directory of Remora" in sidecar.log.read_text()

    done("unix:/nowhere", "restore", backup, "--data", data)

    with serving(directory) as restored:
        assert tags(restored.endpoint) == Counter(["hello"])


@pytest.mark.slow
def test_a_folder_that_is_there_is_not_backed_up_over(directory: Path) -> None:
    with serving(directory / "a") as sidecar:
        (directory / "backup").mkdir()

        code, _, error = remora(sidecar.endpoint, "backup", directory / "backup", "--data", sidecar.directory / "data")

    assert (code, error.count("\n")) == (1, 1)
    assert "exists" in error
    assert list((directory / "backup").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("contents", [["precious"], [], ["manifest.json", "remora.duckdb"]])
def test_a_folder_of_the_working_name_that_no_backup_left_is_not_touched(directory: Path, contents: list[str]) -> None:
    with serving(directory / "a") as sidecar:
        (directory / "backup.partial").mkdir()
        for name in contents:
            (directory / "backup.partial" / name).write_text("mine")

        code, _, error = remora(sidecar.endpoint, "backup", directory / "backup", "--data", sidecar.directory / "data")

    assert (code, error.count("\n")) == (1, 1)
    assert "backup.partial exists and is not an unfinished backup" in error
    assert sorted(path.name for path in (directory / "backup.partial").iterdir()) == contents
    assert not (directory / "backup").exists()


@pytest.mark.slow
def test_of_two_backups_into_one_folder_the_second_is_refused_and_takes_nothing_from_the_first(
    directory: Path,
) -> None:
    with serving(directory / "a") as sidecar:
        with unfinished(directory / "backup", names=("half",)) as folder:
            (folder / "half").write_text("of the first")

            code, _, error = remora(
                sidecar.endpoint, "backup", directory / "backup", "--data", sidecar.directory / "data"
            )

            assert (code, error.count("\n")) == (1, 1)
            assert "another backup is being made" in error
        assert [path.name for path in (directory / "backup").iterdir()] == ["half"]
    assert not (directory / "backup.partial").exists()


def test_a_backup_that_failed_removes_its_own_files_and_no_others(tmp_path: Path) -> None:
    def back_up_and_fail() -> None:
        with unfinished(tmp_path / "backup", names=("own",)) as folder:
            (folder / "own").touch()
            (folder / "precious").touch()
            raise CommandFailed("the server went away")

    with pytest.raises(CommandFailed, match="the server went away"):
        back_up_and_fail()

    assert [path.name for path in tmp_path.rglob("*")] == ["backup.partial", "precious"]


@pytest.mark.slow
def test_a_snapshot_that_changed_on_its_way_is_no_backup(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = Remora.read_backup
    damaged: list[int] = []

    def flipped(self: Remora, backup_id: str, offset: int) -> bytes:
        part = bytearray(read(self, backup_id, offset))
        if part and not damaged:
            part[len(part) // 2] ^= 1
            damaged.append(offset)
        return bytes(part)

    monkeypatch.setattr(Remora, "read_backup", flipped)
    with serving(directory / "a") as sidecar:
        arguments = ["backup", directory / "backup", "--data", directory / "a" / "data", "--endpoint", sidecar.endpoint]

        assert main([str(argument) for argument in arguments]) == 1

        assert damaged
        assert "what arrived is not what the server has sent" in capsys.readouterr().err
        assert [path.name for path in directory.iterdir()] == ["a"]
        assert list((directory / "a" / "data" / "backups").iterdir()) == []
