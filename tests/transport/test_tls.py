"""TLS on TCP ports: who is let in, as which tenant, and what becomes of connections when certificates change."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest
from tests.certificates import DAY, Authority, Issued
from tests.patience import PATIENCE, eventually, with_more_and_more_time
from tests.tokens import token_file
from tests.transport.serving import Serving

from remora import AsyncRemora, Remora, RemoraError, Tls
from remora.errors import (
    ConnectionFailedError,
    DeadlineExceededError,
    InvalidFieldError,
    TenantMismatchError,
    UnauthenticatedError,
)
from remora_server.rpc.client_certificates import CertificateTenants
from remora_server.rpc.identity import Identity, Tokens
from remora_server.rpc.rereading import Rereading, Source, state_of
from remora_server.rpc.transport.tls import TlsFileError, TlsFiles
from remora_server.rpc.transport.transports import ServerOptions

Serve: TypeAlias = "Callable[..., Serving]"

HELLO = {"role": "user", "content": "hello"}
UNVERIFIED = r"has a TLS certificate that cannot be verified \(.*\); Tls\(ca_file="
ALICE, BOB = "alice.agents.example", "spiffe://example/bob"


@pytest.fixture
def directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        yield Path(directory)


@pytest.fixture
def authority(directory: Path) -> Authority:
    return Authority(directory)


@pytest.fixture
def stranger(directory: Path) -> Authority:
    return Authority(directory, "stranger")


@pytest.fixture
def serve(directory: Path, authority: Authority) -> Iterator[Serve]:
    """Serves with a certificate, or one for localhost; with `mutual`, for clients of the authority."""
    running = []

    def start(
        issued: Issued | None = None,
        *,
        mutual: bool = False,
        identity: Identity | None = None,
        options: ServerOptions = ServerOptions(threads=2),  # noqa: B008 - it is frozen
    ) -> Serving:
        issued = issued or authority.server()
        tls = TlsFiles(issued.cert, issued.key, authority.file if mutual else None).open()
        running.append(Serving(directory, identity, tls, options))
        return running[-1]

    yield start
    for serving in running:
        serving.close()


def client(serving: Serving, tls: Tls | None, *, token: str | None = None, tenant: str | None = None) -> Remora:
    return Remora(tcp(serving), tls=tls, token=token, tenant=tenant, timeout=PATIENCE)


def tcp(serving: Serving) -> str:
    return serving.endpoints[1]


def shown(authority: Authority, issued: Issued) -> Tls:
    """A client that trusts the authority and shows a certificate."""
    return Tls(ca_file=authority.file, cert_file=issued.cert, key_file=issued.key)


def texts(memory: Remora) -> list[str]:
    return [message.text for message in memory.conversation("c").messages()]


def require_stranger(serving: Serving, tls: Tls | None, told: str) -> None:
    """A client is not let in and told why, and those who may come in are none the worse for it."""

    def ask(seconds: float) -> None:
        with Remora(tcp(serving), tls=tls, timeout=seconds) as memory, pytest.raises(ConnectionFailedError, match=told):
            memory.count_tokens("hello")

    with_more_and_more_time(ask, DeadlineExceededError)


async def require_async_stranger(serving: Serving, tls: Tls | None, told: str) -> None:
    """As `require_stranger`."""
    seconds = 0.2
    while True:
        async with AsyncRemora(tcp(serving), tls=tls, timeout=seconds) as memory:
            with pytest.raises((ConnectionFailedError, DeadlineExceededError)) as raised:
                await memory.count_tokens("hello")
        if isinstance(raised.value, ConnectionFailedError):
            assert re.search(told, str(raised.value))
            return
        seconds = min(4 * seconds, PATIENCE)


def test_a_client_that_trusts_the_authority_is_served(serve: Serve, authority: Authority) -> None:
    with client(serve(), Tls(ca_file=authority.file)) as memory:
        memory.conversation("c", user_id="u").append(HELLO)

        assert texts(memory) == ["hello"]


def test_the_async_client_is_served(serve: Serve, authority: Authority) -> None:
    endpoint = tcp(serve())

    async def count() -> int:
        async with AsyncRemora(endpoint, tls=Tls(ca_file=authority.file), timeout=PATIENCE) as memory:
            return (await memory.count_tokens("hello")).total

    assert asyncio.run(count()) == 1


def test_a_unix_socket_stays_as_it_is(serve: Serve) -> None:
    with Remora(serve(mutual=True).endpoints[0], timeout=PATIENCE) as memory:
        assert memory.count_tokens("hello").total == 1


def test_large_messages_pass_in_both_directions(serve: Serve, authority: Authority) -> None:
    text = "word " * 200_000
    with client(serve(), Tls(ca_file=authority.file)) as memory:
        memory.conversation("c", user_id="u").append({"role": "user", "content": text})

        assert texts(memory) == [text]


def test_a_client_refuses_a_server_of_another_authority(serve: Serve, stranger: Authority) -> None:
    require_stranger(serve(), Tls(ca_file=stranger.file), UNVERIFIED)


def test_a_client_refuses_a_certificate_that_has_expired(serve: Serve, authority: Authority) -> None:
    require_stranger(serve(authority.server(ends_in=-DAY)), Tls(ca_file=authority.file), UNVERIFIED)


def test_a_client_refuses_a_certificate_of_another_host_unless_that_is_whom_it_wants(
    serve: Serve, authority: Authority
) -> None:
    serving = serve(authority.server("memory.example"))

    require_stranger(serving, Tls(ca_file=authority.file), r"for another name; Tls\(server_name=")
    with client(serving, Tls(ca_file=authority.file, server_name="memory.example")) as memory:
        assert memory.count_tokens("hello").total == 1


@pytest.mark.slow
def test_a_client_without_tls_gets_nowhere(serve: Serve, authority: Authority) -> None:
    serving = serve()

    require_stranger(serving, None, "if it speaks TLS, the client needs tls=")
    with client(serving, Tls(ca_file=authority.file)) as memory:
        assert memory.count_tokens("hello").total == 1


def test_a_server_without_tls_is_named_as_such(directory: Path, authority: Authority) -> None:
    serving = Serving(directory)

    require_stranger(serving, Tls(ca_file=authority.file), "speaks no TLS; leave out `tls`")
    serving.close()


def test_the_async_client_is_told_the_same(serve: Serve, authority: Authority, stranger: Authority) -> None:
    serving = serve(mutual=True)

    asyncio.run(require_async_stranger(serving, Tls(ca_file=stranger.file), UNVERIFIED))
    asyncio.run(require_async_stranger(serving, Tls(ca_file=authority.file), "ended the TLS connection"))


def test_a_client_of_the_authority_is_let_in(serve: Serve, authority: Authority) -> None:
    with client(serve(mutual=True), shown(authority, authority.client(ALICE))) as memory:
        assert memory.count_tokens("hello").total == 1


@pytest.mark.parametrize("case", ["none", "another authority", "expired", "a server's"])
def test_a_client_without_a_good_certificate_is_not_let_in(
    serve: Serve, authority: Authority, stranger: Authority, case: str
) -> None:
    serving = serve(mutual=True)
    issued = {
        "none": None,
        "another authority": stranger.client(ALICE),
        "expired": authority.client(ALICE, ends_in=-DAY),
        "a server's": authority.server(ALICE),
    }[case]

    told = Tls(ca_file=authority.file) if issued is None else shown(authority, issued)
    require_stranger(serving, told, r"ended the TLS connection; if it requires certificates")
    with client(serving, shown(authority, authority.client(ALICE))) as memory:
        assert memory.count_tokens("hello").total == 1


def test_a_certificate_says_its_tenant(serve: Serve, authority: Authority) -> None:
    tenants = CertificateTenants.parse([f"{ALICE} a", f"{BOB} b"])
    serving = serve(mutual=True, identity=Identity(certificates=tenants))
    with (
        client(serving, shown(authority, authority.client(ALICE))) as alice,
        client(serving, shown(authority, authority.client(BOB))) as bob,
    ):
        alice.conversation("c", user_id="u").append(HELLO)
        bob.conversation("c", user_id="u").append({"role": "user", "content": "of bob"})

        assert (texts(alice), texts(bob)) == (["hello"], ["of bob"])


def test_a_certificate_names_no_tenant_but_its_own(serve: Serve, authority: Authority) -> None:
    tenants = CertificateTenants.parse([f"{ALICE} a", f"{BOB} b"])
    serving = serve(mutual=True, identity=Identity(certificates=tenants))

    alice = shown(authority, authority.client(ALICE))
    with (
        client(serving, alice, tenant="b") as memory,
        pytest.raises(TenantMismatchError, match=r"^the client certificate"),
    ):
        memory.count_tokens("hello")


@pytest.mark.parametrize("names", [("carol.agents.example",), (ALICE, BOB)], ids=["unknown", "of two tenants"])
def test_a_certificate_without_one_tenant_is_refused(
    serve: Serve, authority: Authority, names: tuple[str, ...]
) -> None:
    tenants = CertificateTenants.parse([f"{ALICE} a", f"{BOB} b"])
    serving = serve(mutual=True, identity=Identity(certificates=tenants))

    with (
        client(serving, shown(authority, authority.client(*names))) as memory,
        pytest.raises(UnauthenticatedError, match=r"^the client certificate has .*--tls-client-tenants"),
    ):
        memory.count_tokens("hello")


def test_a_token_stands_beside_a_certificate(serve: Serve, authority: Authority) -> None:
    identity = Identity(Tokens.parse(["of-a a", "of-b b"]), certificates=CertificateTenants.parse([f"{ALICE} a"]))
    serving = serve(mutual=True, identity=identity)
    alice, carol = (shown(authority, authority.client(name)) for name in (ALICE, "carol"))

    def outcome(tls: Tls, token: str | None) -> type[RemoraError] | None:
        with client(serving, tls, token=token) as memory:
            try:
                memory.count_tokens("hello")
            except RemoraError as error:
                return type(error)
        return None

    assert outcome(alice, None) is None
    assert outcome(alice, "of-a") is None
    assert outcome(alice, "of-b") is TenantMismatchError
    assert outcome(alice, "of-nobody") is UnauthenticatedError
    assert outcome(carol, "of-b") is None
    assert outcome(carol, None) is UnauthenticatedError


@pytest.mark.parametrize(
    "sent", [b"\x00" * 64, b"\x16\x03\x01\xff\xff" + b"x" * 100, b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"]
)
def test_what_is_no_tls_is_let_go(serve: Serve, authority: Authority, sent: bytes) -> None:
    serving = serve()
    with connected(serving) as peer:
        peer.sendall(sent)
        peer.shutdown(socket.SHUT_WR)

        read_to_the_end(peer)
    with client(serving, Tls(ca_file=authority.file)) as memory:
        assert memory.count_tokens("hello").total == 1


@pytest.mark.slow
def test_who_says_nothing_is_let_go(serve: Serve) -> None:
    with connected(serve()) as peer:
        read_to_the_end(peer)


def test_who_says_nothing_keeps_nobody_out(serve: Serve, authority: Authority) -> None:
    serving = serve(options=ServerOptions(threads=2, connections=2))
    silent = [connected(serving) for _ in range(8)]

    with client(serving, Tls(ca_file=authority.file)) as memory:
        assert memory.count_tokens("hello").total == 1
    for peer in silent:
        peer.close()


@pytest.mark.parametrize(
    ("version", "name"), [(ssl.TLSVersion.TLSv1_2, "TLSv1.2"), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
)
def test_both_versions_of_tls_are_spoken(
    serve: Serve, authority: Authority, version: ssl.TLSVersion, name: str
) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    context.set_alpn_protocols(["h2"])
    context.minimum_version = context.maximum_version = version
    with connected(serve()) as peer, context.wrap_socket(peer, server_hostname="localhost") as secured:
        assert (secured.version(), secured.selected_alpn_protocol()) == (name, "h2")


def test_who_does_not_choose_http2_is_let_go(serve: Serve, authority: Authority) -> None:
    context = ssl.create_default_context(cafile=authority.file)
    with connected(serve()) as peer, context.wrap_socket(peer, server_hostname="localhost") as secured:
        read_to_the_end(secured)


def test_new_certificates_are_for_new_connections_and_end_no_stream(directory: Path, authority: Authority) -> None:
    files, renewed = rotated(directory, authority.server()), Authority(directory, "renewed")
    tls = files.open()
    serving = Serving(directory, tls=tls)
    credentials = grpc.ssl_channel_credentials(authority.file.read_bytes())
    with grpc.secure_channel(tcp(serving), credentials) as channel, client(serving, Tls(ca_file=authority.file)) as old:
        watch: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/grpc.health.v1.Health/Watch")
        watched = watch(b"")
        next(watched)
        old.count_tokens("before")

        replace(files, renewed.server())
        files.reread(tls)

        assert old.count_tokens("hello").total == 1
        assert watched.is_active()
        with client(serving, Tls(ca_file=renewed.file)) as new:
            assert new.count_tokens("hello").total == 1
        require_stranger(serving, Tls(ca_file=authority.file), UNVERIFIED)
        watched.cancel()
    serving.close()


def test_the_end_of_the_server_is_told_over_tls(directory: Path, authority: Authority) -> None:
    issued = authority.server()
    serving = Serving(directory, tls=TlsFiles(issued.cert, issued.key).open())
    with grpc.secure_channel(tcp(serving), grpc.ssl_channel_credentials(authority.file.read_bytes())) as channel:
        watch: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream("/grpc.health.v1.Health/Watch")
        watched = watch(b"")
        next(watched)

        serving.close()

        with pytest.raises(grpc.RpcError) as raised:
            list(watched)
    assert (raised.value.code(), raised.value.details()) == (grpc.StatusCode.UNAVAILABLE, "the server is stopping")


def test_certificates_that_cannot_be_used_change_nothing(directory: Path, authority: Authority) -> None:
    files = rotated(directory, authority.server())
    tls = files.open()
    serving = Serving(directory, tls=tls)

    files.cert.write_bytes(authority.server().cert.read_bytes())
    with pytest.raises(TlsFileError, match=r"^tls_key: .*: it is not the key of the certificate$"):
        files.reread(tls)

    with client(serving, Tls(ca_file=authority.file)) as memory:
        assert memory.count_tokens("hello").total == 1
    serving.close()


@pytest.mark.slow
def test_a_token_that_is_replaced_is_good_no_more(
    serve: Serve, directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = token_file(directory / "tokens", "old a")
    tokens = Tokens.read(file)
    state = state_of((file,))
    serving = serve(identity=Identity(tokens))
    source = Source((file,), state, lambda: tokens.take(Tokens.read(file)))
    rereading = Rereading([source], serving.server.forget_callers)
    rereading.start()

    def accepts(token: str) -> bool:
        with Remora(serving.endpoints[0], token=token, timeout=PATIENCE) as memory:
            try:
                memory.count_tokens("hello")
            except UnauthenticatedError:
                return False
        return True

    assert accepts("old")
    token_file(directory / "next", "new a").replace(file)
    assert eventually(lambda: accepts("new"))
    assert not accepts("old")
    file.write_text("no line of tokens here at all")
    assert eventually(lambda: "what was read before stays in use" in caplog.text)
    assert accepts("new")
    rereading.close()


@pytest.mark.parametrize(
    ("setting", "spoil", "why"),
    [
        ("tls_cert", lambda files: files.cert.unlink(), "No such file"),
        ("tls_cert", lambda files: files.cert.write_text("nothing"), "holds no certificate in PEM"),
        ("tls_key", lambda files: files.key.unlink(), "No such file"),
        ("tls_key", lambda files: files.key.write_bytes(files.cert.read_bytes()), "holds no private key in PEM"),
        ("tls_key", lambda files: files.key.chmod(0o644), "every user of this machine can read or change"),
        ("tls_client_ca", lambda files: files.client_ca.write_text(""), "holds no certificate in PEM"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_setting(
    directory: Path, authority: Authority, setting: str, spoil: Callable[[TlsFiles], object], why: str
) -> None:
    issued = authority.server()
    files = TlsFiles(issued.cert, issued.key, authority.file)

    spoil(files)

    with pytest.raises(TlsFileError) as raised:
        files.open()
    assert str(raised.value).startswith(f"{setting}: ")
    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("days", "complaint"),
    [(-1, "expired on 20"), (1, "expires on 20"), (30, "")],
)
def test_a_certificate_that_has_expired_or_soon_will_is_complained_of(
    authority: Authority, days: int, complaint: str
) -> None:
    issued = authority.server(ends_in=days * DAY + DAY / 2)

    found = TlsFiles(issued.cert, issued.key).expiry_complaint()

    assert complaint in found if complaint else not found


def test_a_client_says_which_of_its_files_is_wrong(directory: Path) -> None:
    tls = Tls(ca_file=directory / "none.pem")
    with (
        Remora("localhost:1", tls=tls) as memory,
        pytest.raises(InvalidFieldError, match=r"^tls\.ca_file cannot"),
    ):
        memory.count_tokens("hello")


@pytest.mark.parametrize("content", [b"", b"no certificate\n"])
@pytest.mark.parametrize("field", ["ca_file", "cert_file", "key_file"])
def test_a_client_refuses_a_file_that_holds_nothing_of_its_kind(
    directory: Path, authority: Authority, field: str, content: bytes
) -> None:
    wrong = directory / "wrong.pem"
    wrong.write_bytes(content)
    client = authority.client("me")
    files: dict[str, Path] = {"cert_file": client.cert, "key_file": client.key, field: wrong}
    tls = Tls(files.get("ca_file"), files["cert_file"], files["key_file"])

    with (
        Remora("localhost:1", tls=tls) as memory,
        pytest.raises(InvalidFieldError, match=rf"^tls\.{field} holds no (certificate|private key) in PEM"),
    ):
        memory.count_tokens("hello")


def test_a_client_with_an_empty_file_of_authorities_trusts_no_public_ones(
    serve: Serve, authority: Authority, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(authority.file))
    (directory / "empty.pem").touch()

    with (
        client(serve(), Tls(ca_file=directory / "empty.pem")) as memory,
        pytest.raises(InvalidFieldError, match="holds no certificate"),
    ):
        memory.count_tokens("hello")


def test_a_client_is_told_that_its_key_is_another_ones(serve: Serve, authority: Authority) -> None:
    tls = Tls(ca_file=authority.file, cert_file=authority.client("me").cert, key_file=authority.client("it").key)

    require_stranger(serve(), tls, r"the key is not that of the certificate; check those of Tls\(")


def test_a_client_certificate_needs_its_key(directory: Path) -> None:
    with pytest.raises(InvalidFieldError, match=r"^cert_file needs key_file"):
        Tls(cert_file=directory / "cert.pem")


def test_a_client_has_no_tls_over_a_unix_socket() -> None:
    with pytest.raises(InvalidFieldError, match=r"^tls is for host:port"):
        Remora("unix:/s", tls=Tls())


def rotated(directory: Path, issued: Issued) -> TlsFiles:
    """Files of their own for a certificate."""
    files = TlsFiles(directory / "tls.crt", directory / "tls.key")
    replace(files, issued)
    return files


def replace(files: TlsFiles, issued: Issued) -> None:
    shutil.copy(issued.cert, files.cert)
    shutil.copy(issued.key, files.key)


def connected(serving: Serving) -> socket.socket:
    host, _, port = tcp(serving).rpartition(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def read_to_the_end(peer: socket.socket) -> None:
    try:
        while peer.recv(1024):
            pass
    except ConnectionResetError:
        pass  # an end, too
