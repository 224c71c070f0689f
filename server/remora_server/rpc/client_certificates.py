"""The tenants of client certificates, by the names in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from remora_server.domain import tenants
from remora_server.rpc.private_files import CredentialFileError

LISTED_NAMES = 3
"""How many names of a certificate a refusal repeats."""
_LINES = "name a file with a certificate's DNS name or URI and its tenant in each line (--tls-client-tenants)"


class TenantFileError(CredentialFileError):
    """A file of tenants cannot be read, or a line of it is not `name tenant`."""

    def __init__(self, what: str, remedy: str = _LINES) -> None:
        super().__init__(what, remedy)


class CertificateTenants:
    """Names in certificates, and their tenants."""

    def __init__(self, tenants: Mapping[str, str]) -> None:
        self._tenants = tenants

    @classmethod
    def read(cls, file: Path) -> CertificateTenants:
        """Tenants from a file (see `parse`). Raises TenantFileError, which names the file."""
        try:
            return cls.parse(file.read_text("utf-8").splitlines())
        except TenantFileError as error:
            raise TenantFileError(f"{file}: {error}", error.remedy) from error
        except OSError as error:
            raise TenantFileError(f"{file} cannot be read as a file of tenants: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise TenantFileError(f"{file} cannot be read as a file of tenants: it is not UTF-8") from error

    @classmethod
    def parse(cls, lines: Iterable[str]) -> CertificateTenants:
        """Tenants from lines `name tenant`; empty lines and lines that begin with # are ignored.

        Raises TenantFileError, which names the line.
        """
        found: dict[str, str] = {}
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) != 2 or _comparable(words[0]) in found:
                raise TenantFileError(f"line {number} is not a new name, a blank and its tenant")
            wrong = tenants.complaint(words[1])
            if wrong:
                raise TenantFileError(f"line {number}: the tenant {wrong}")
            found[_comparable(words[0])] = words[1]
        if not found:
            raise TenantFileError("there is no name in it")
        return cls(found)

    def take(self, other: CertificateTenants) -> None:
        """Take over the tenants of another instance."""
        self._tenants = other._tenants

    def tenant(self, names: Sequence[str]) -> str | None:
        """The tenant of a certificate with these names; None if no name has a tenant, or two have different ones."""
        found = self._found(names)
        return found.pop() if len(found) == 1 else None

    def complaint(self, names: Sequence[str]) -> str:
        """Why a certificate with these names has no tenant."""
        if not names:
            return "the client certificate has no tenant, because it has no DNS name and no URI"
        has = "names of different tenants" if self._found(names) else "no name with a tenant"
        return f"the client certificate has {has} ({_listed(names)}) in the file of the server's --tls-client-tenants"

    def _found(self, names: Sequence[str]) -> set[str]:
        return {self._tenants[name] for name in names if name in self._tenants}


def _listed(names: Sequence[str]) -> str:
    return ", ".join((*names[:LISTED_NAMES], *["..."][: len(names) - LISTED_NAMES]))


def _comparable(name: str) -> str:
    """DNS names ignore the case of letters; URIs, which have a colon, do not."""
    return name if ":" in name else name.lower()
