"""The settings of TLS: what belongs together, and what a server says whose files cannot be used."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.certificates import DAY, Authority, Issued
from tests.faults.sidecar import REMORA
from tests.patience import PATIENCE, eventually
from tests.ports import free_port
from tests.test_main import refused, serving
from tests.tokens import token_file

from remora import Remora, RemoraError, Tls
from remora._tls_failures import TlsFailure
from remora.errors import ConnectionFailedError, TlsFault, UnauthenticatedError
from remora_server.commands.connecting import _REMEDIES
from remora_server.main import main
from remora_server.settings.settings import SettingsError, load
from remora_server.settings.tls import TlsSettings

BOTH = {"tls_cert": "/c", "tls_key": "/k", "listen": "localhost:1"}


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        yield Path(directory)


def test_there_is_no_tls_by_default() -> None:
    assert load({}, {}).settings.tls is None


def test_the_settings_of_tls_come_together() -> None:
    found = load({**BOTH, "tls_client_ca": "/a", "tls_client_tenants": "/t"}, {}).settings.tls

    assert found == TlsSettings(Path("/c"), Path("/k"), Path("/a"), Path("/t"))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tls_cert": "/c"}, "--tls-cert: tls_cert needs tls_key"),
        ({"tls_key": "/k"}, "--tls-key: tls_key needs tls_cert"),
        ({"tls_client_ca": "/a"}, "--tls-client-ca: tls_client_ca needs tls_cert"),
        ({**BOTH, "tls_client_tenants": "/t"}, "--tls-client-tenants: tls_client_tenants needs tls_client_ca"),
        ({**BOTH, "listen": "unix:/s"}, "--tls-cert: tls_cert is for TCP ports, and listen names none"),
    ],
)
def test_what_is_missing_is_named(given: dict[str, str], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        load(given, {})


@pytest.mark.slow
def test_a_server_whose_key_is_another_ones_does_not_start(directory: Path) -> None:
    authority = Authority(directory)
    cert, key = authority.server().cert, authority.server().key

    code, error = refused(directory, "--listen=localhost:0", f"--tls-cert={cert}", f"--tls-key={key}")

    assert (code, error.count("\n")) == (1, 1)
    assert f"tls_key: {key}: it is not the key of the certificate" in error


@pytest.mark.slow
def test_the_transport_without_tls_is_refused(directory: Path) -> None:
    issued = Authority(directory).server()

    code, error = refused(
        directory, "--transport=grpcio", "--listen=localhost:0", f"--tls-cert={issued.cert}", f"--tls-key={issued.key}"
    )

    assert code == 1
    assert "remora: the transport grpcio has no TLS: choose the native one (--transport)" in error.splitlines()


@pytest.mark.slow
def test_tls_alone_lets_nobody_in_from_other_machines(directory: Path) -> None:
    issued = Authority(directory).server()

    code, error = refused(directory, "--listen=0.0.0.0:0", f"--tls-cert={issued.cert}", f"--tls-key={issued.key}")

    assert code == 1
    assert "--tls-client-ca" in error


@pytest.mark.slow
def test_a_server_reads_what_is_rotated_and_drops_no_client(directory: Path) -> None:
    old, new, mounted = Authority(directory), Authority(directory, "new"), directory / "mounted"
    tenants, tokens = directory / "tenants", token_file(directory / "tokens", "t acme")
    tenants.write_text("alice a\n")
    issued, client, port = old.server(), old.client("alice"), free_port()
    mount(mounted, issued)
    arguments = [
        f"--tls-cert={mounted / 'tls.crt'}",
        f"--tls-key={mounted / 'tls.key'}",
        f"--tls-client-ca={old.file}",
        f"--token-file={tokens}",
    ]
    shown = Tls(ca_file=old.file, cert_file=client.cert, key_file=client.key)

    def is_refused(kind: type[Exception], tls: Tls) -> bool:
        with Remora(f"localhost:{port}", tls=tls, timeout=1.0) as memory:
            try:
                memory.count_tokens("hello")
            except kind:
                return True
            except RemoraError:  # a busy machine
                return False
        return False

    with (
        serving(directory, f"--listen=0.0.0.0:{port}", f"--tls-client-tenants={tenants}", *arguments),
        Remora(f"localhost:{port}", tls=shown, timeout=PATIENCE) as memory,
    ):
        assert memory.count_tokens("hello").total == 1

        mount(mounted, new.server())

        eventually(lambda: is_refused(ConnectionFailedError, shown))
        assert memory.count_tokens("hello").total == 1

        tenants.write_text("bob b\n")

        newer = Tls(ca_file=new.file, cert_file=client.cert, key_file=client.key)
        assert eventually(lambda: is_refused(UnauthenticatedError, newer))


def mount(mounted: Path, issued: Issued) -> None:
    """Show a certificate as Kubernetes mounts a secret: both files change at once, because a link is turned."""
    folder, link = Path(f"{mounted}-{issued.cert.stem}"), Path(f"{mounted}-link")
    folder.mkdir()
    issued.cert.rename(folder / "tls.crt")
    issued.key.rename(folder / "tls.key")
    link.symlink_to(folder)
    link.replace(mounted)


def test_commands_connect_with_tls(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority, port = Authority(directory), free_port()
    issued, client = authority.server(), authority.client("me")
    files = [f"--tls-cert={issued.cert}", f"--tls-key={issued.key}", f"--tls-client-ca={authority.file}"]
    known = [f"--ca-file={authority.file}", f"--cert-file={client.cert}", f"--key-file={client.key}"]
    with serving(directory, f"--listen=localhost:{port}", *files):
        assert main(["log", f"--endpoint=localhost:{port}", *known]) == 0

    assert main(["log", f"--endpoint=localhost:{port}", f"--cert-file={client.cert}"]) == 2
    assert "--cert-file needs --key-file" in capsys.readouterr().err


@pytest.mark.slow
def test_commands_name_their_flags_where_tls_fails(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority, stranger, port = Authority(directory), Authority(directory, "stranger"), free_port()
    issued, client = authority.server("memory.example"), authority.client("me")
    files = [f"--tls-cert={issued.cert}", f"--tls-key={issued.key}", f"--tls-client-ca={authority.file}"]
    known, shown = [f"--ca-file={authority.file}"], [f"--cert-file={client.cert}", f"--key-file={client.key}"]

    def told(*arguments: str) -> str:
        assert main(["log", f"--endpoint=127.0.0.1:{port}", *arguments]) == 1
        return capsys.readouterr().err

    with serving(directory, f"--listen=127.0.0.1:{port}", *files):
        assert "if it speaks TLS, the client needs --ca-file FILE" in told()
        assert "; --ca-file FILE names who signed it" in told(f"--ca-file={stranger.file}", *shown)
        assert "; --server-name NAME says which name it must have" in told(*known, *shown)
        assert "--cert-file FILE and --key-file FILE show a valid one" in told(*known, "--server-name=memory.example")
        assert main(["log", f"--endpoint=127.0.0.1:{port}", "--server-name=memory.example", *known, *shown]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("asks", [False, True], ids=["speaks no TLS", "asks for a certificate"])
def test_a_handshake_that_fails_is_told_in_one_line(directory: Path, *, asks: bool) -> None:
    authority, port = Authority(directory), free_port()
    server = authority.server()
    files = [f"--tls-cert={server.cert}", f"--tls-key={server.key}", f"--tls-client-ca={authority.file}"]
    with serving(directory, f"--listen=127.0.0.1:{port}", *(files if asks else ())):
        command = [str(REMORA), "log", f"--endpoint=127.0.0.1:{port}", f"--ca-file={authority.file}"]
        environment = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)

    assert ended.returncode == 1
    told = "ended the TLS connection" if asks else "speaks no TLS; leave out --ca-file"
    assert ended.stderr.startswith(f"remora: the server at 127.0.0.1:{port} {told}")
    assert ended.stderr.count("\n") == 1


def test_commands_name_their_flags_where_those_of_tls_are_wrong(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert main(["log", f"--endpoint=127.0.0.1:{listening.getsockname()[1]}", "--ca-file=/none"]) != 0
    assert "--ca-file cannot be read: /none" in capsys.readouterr().err

    assert main(["log", f"--endpoint=unix:{directory}/s", "--ca-file=/none"]) == 2
    assert "TLS is for host:port, not for a Unix socket; leave out its flags" in capsys.readouterr().err


@pytest.mark.parametrize("fault", [fault for fault in TlsFault if fault is not TlsFault.DISAGREED])
def test_a_fault_of_tls_has_a_remedy_in_the_client_and_one_with_flags(fault: TlsFault) -> None:
    assert TlsFailure(fault, "").remedy
    assert not re.search(r"Tls\(|`|_file", _REMEDIES[fault])


def test_a_certificate_that_has_expired_is_found(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    issued = Authority(directory).server(ends_in=-DAY)

    code = main(
        [
            "doctor",
            "--model=none",
            f"--data={directory / 'data'}",
            "--listen=localhost:0",
            f"--tls-cert={issued.cert}",
            f"--tls-key={issued.key}",
        ]
    )

    assert code == 1
    assert "the certificate of tls_cert expired on 20" in " ".join(capsys.readouterr().out.split())
