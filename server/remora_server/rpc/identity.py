"""Identifies callers: by the tenant of a bearer token or of a client certificate or, if neither is required, by the
tenant that the caller names.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from remora_server import failpoints
from remora_server.domain import tenants
from remora_server.domain.calls import DEFAULT_TENANT
from remora_server.domain.errors import InvalidField, TenantMismatch, Unauthenticated
from remora_server.rpc.client_certificates import CertificateTenants
from remora_server.rpc.private_files import CHMOD, CredentialFileError, ExposedError, read_private

Metadata: TypeAlias = Sequence[tuple[str, str | bytes]]

AUTHORIZATION, TENANT = "authorization", "remora-tenant"


_LINES = "name a file with a token and its tenant in each line (--token-file)"


class TokenFileError(CredentialFileError):
    """A token file cannot be read or may be read by everybody, or a line of it is not `token tenant`."""

    def __init__(self, what: str, remedy: str = _LINES) -> None:
        super().__init__(what, remedy)


class Tokens:
    """Bearer tokens and their tenants.

    Only digests are kept. A token is looked up by its digest, so that the time of a lookup says nothing of the tokens.
    """

    def __init__(self, tenants: Mapping[bytes, str]) -> None:
        self._tenants = tenants

    @classmethod
    def read(cls, file: Path) -> Tokens:
        """Tokens from a file (see `parse`). Raises TokenFileError, which names the file."""
        try:
            return cls.parse(read_private(file).decode().splitlines())
        except TokenFileError as error:
            raise TokenFileError(f"{file}: {error}", error.remedy) from error
        except ExposedError:
            raise TokenFileError(f"every user of this machine can read or change {file}", CHMOD) from None
        except OSError as error:
            raise TokenFileError(f"{file} cannot be read as a token file: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TokenFileError(f"{file} cannot be read as a token file: it is not UTF-8") from error

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Tokens:
        """Tokens from lines `token tenant`; empty lines and lines that begin with # are ignored.

        Raises TokenFileError, which names the line but not the token.
        """
        found: dict[bytes, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or _digest(words[0]) in found:
                raise TokenFileError(f"line {number} is not a new token, a blank and its tenant")
            _require_sendable(number, *words)
            found[_digest(words[0])] = words[1]
        if not found:
            raise TokenFileError("there is no token in it")
        return cls(found)

    def take(self, other: Tokens) -> None:
        """Take over the tokens of another instance."""
        self._tenants = other._tenants

    def tenant(self, authorization: str) -> str:
        """The tenant of an `authorization` header. Raises Unauthenticated."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthenticated
        tenant = self._tenants.get(_digest(token.strip()))
        if tenant is None:
            raise Unauthenticated("the token is none that the server knows")
        return tenant


def _require_sendable(number: int, token: str, tenant: str) -> None:
    if not token.isascii() or not token.isprintable():
        raise TokenFileError(f"line {number}: the token is not printable ASCII")
    wrong = tenants.complaint(tenant)
    if wrong:
        raise TokenFileError(f"line {number}: the tenant {wrong}")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class OperatorToken:
    """The token of whoever runs the server. Only its digest is kept."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest

    @classmethod
    def of(cls, token: str) -> OperatorToken:
        return cls(_digest(token))

    def is_shown(self, authorization: str) -> bool:
        """Whether an `authorization` header has it."""
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(_digest(token.strip()), self._digest)


class Caller(Struct, frozen=True):
    """Who makes a call."""

    tenant_id: str
    is_operator: bool = False


class Identity(Struct, frozen=True):
    """Tells a caller's tenant. Without tokens and without a certificate that tells it, the caller names it.

    `names` are those in the verified certificate of the caller's connection; None if it needed no certificate, as on a
    Unix socket.
    """

    tokens: Tokens | None = None
    operator: OperatorToken | None = None
    certificates: CertificateTenants | None = None

    def is_operator(self, metadata: Metadata) -> bool:
        """Whether the caller shows the operator's token."""
        return self.operator is not None and self.operator.is_shown(_value(metadata, AUTHORIZATION))

    def caller(self, metadata: Metadata, names: Sequence[str] | None = None) -> Caller:
        """The caller of a call. The same arguments give the same caller until a file changes. Raises the errors of
        `tenant`.
        """
        return Caller(self.tenant(metadata, names), self.is_operator(metadata))

    def tenant(self, metadata: Metadata, names: Sequence[str] | None = None) -> str:
        """The caller's tenant. The operator may name any tenant. Raises Unauthenticated, TenantMismatch and
        InvalidField.
        """
        failpoints.hit("caller_identified")
        named = _value(metadata, TENANT)
        authorization = _value(metadata, AUTHORIZATION)
        tenant = None if self.is_operator(metadata) else self._shown_tenant(authorization, names)
        if tenant is not None:
            if named not in ("", tenant):
                shown = "token" if self.tokens is not None and authorization else "client certificate"
                raise TenantMismatch(shown, named, f"leave the name out, or give that tenant's {shown}")
            return tenant
        wrong = tenants.complaint(named)
        if wrong:
            raise InvalidField(TENANT, wrong)
        return named or DEFAULT_TENANT

    def _shown_tenant(self, authorization: str, names: Sequence[str] | None) -> str | None:
        """The tenant by token or certificate, which must agree; None if neither is required."""
        certified = self._certified_tenant(names)
        if self.tokens is None or (certified is not None and not authorization):
            return certified
        tenant = self.tokens.tenant(authorization)
        if certified not in (None, tenant):
            raise TenantMismatch("client certificate", tenant, "leave the token out, or give one of its tenant")
        return tenant

    def _certified_tenant(self, names: Sequence[str] | None) -> str | None:
        """The tenant by certificate. A certificate without one needs a token. Raises Unauthenticated."""
        if self.certificates is None or names is None:
            return None
        tenant = self.certificates.tenant(names)
        if tenant is None and self.tokens is None:
            raise Unauthenticated(self.certificates.complaint(names))
        return tenant


def _value(metadata: Metadata, name: str) -> str:
    for key, value in metadata:
        if key == name:
            return value if isinstance(value, str) else ""
    return ""
